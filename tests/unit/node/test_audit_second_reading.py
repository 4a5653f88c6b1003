"""The audit's own reading of robots.txt: right in itself, and of one mind with the crawler's on whatever comes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.node.audit.second_reading import read_robots
from nephila.politeness import parse_robots

RULES = b"""\
Disallow: /nobody
User-agent: Nephila
User-agent: other
Disallow: /private/
Allow: /private/open/
Disallow: /*.print$
Crawl-delay: 2.5
User-agent: *
Disallow: /
"""


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/", None),
        ("/private/x", "/private/"),
        ("/private/open/x", None),
        ("/%70rivate/x", "/private/"),
        ("/a.print", "/*.print$"),
        ("/a.print?x", None),
        ("/robots.txt", None),
        ("/nobody", None),
    ],
)
def test_the_longest_rule_of_our_groups_decides(path: str, rule: str | None) -> None:
    """K1, P1: groups, wildcards, end marks, escapes, as RFC 9309 has them."""
    found = read_robots(RULES, "nephila").forbids(path)
    assert (found.text if found else None) == rule


def test_it_tells_the_line_and_the_delay() -> None:
    """K1, P1: what a webmaster can look up."""
    reading = read_robots(RULES, "Nephila")
    found = reading.forbids("/private/")
    assert found is not None
    assert found.line == 4
    assert reading.crawl_delay_ms == 2500
    assert read_robots(b"User-agent: *\nCrawl-delay: 1,5\n", "Nephila").crawl_delay_ms == 1500
    assert read_robots(RULES, "stranger").forbids("/x") is not None
    assert read_robots(b"", "Nephila").forbids("/x") is None


PIECES = st.sampled_from(
    ["/", "a", "b", "*", "$", "%61", "%2A", "%2f", "?", "=", "\u00e9", ".", "index.html", "%", "[", "'"]
)
PATHS = st.lists(PIECES, max_size=6).map("".join)
KEYS = st.sampled_from(
    [
        "User-agent",
        "user agent",
        "Disallow",
        "Allow",
        "disalow",
        "Crawl-delay",
        "Sitemap",
        "Noise",
        "DisallowAITraining",
    ]
)
VALUES = st.one_of(PATHS, st.sampled_from(["*", "Nephila", "nephila/2", "Other", "3", "1.5s", "", "Nephila bot"]))
LINES = st.lists(st.tuples(KEYS, st.sampled_from([":", ": ", " "]), VALUES).map("".join), max_size=14)


@settings(max_examples=600, deadline=None)
@given(LINES, PATHS)
def test_both_readings_agree(lines: list[str], path: str) -> None:
    """K1, P1: two programs, one verdict."""
    body, target = "\n".join(lines).encode(), "/" + path.replace("\u00e9", "%C3%A9")
    for agent in ("Nephila", "somebody"):
        theirs = parse_robots(body).rules_for(agent)
        ours = read_robots(body, agent)
        assert (ours.forbids(target) is None) == theirs.allows(target).allowed, (agent, body, target)
        assert ours.crawl_delay_ms == round((theirs.crawl_delay_s or 0) * 1000)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), PATHS)
def test_any_bytes_are_read(body: bytes, path: str) -> None:
    """K1, Q5: no file stops an audit, and none is read in another way than the crawler reads it."""
    theirs = parse_robots(body).rules_for("Nephila").allows("/" + path).allowed
    assert (read_robots(body, "Nephila").forbids("/" + path) is None) == theirs
