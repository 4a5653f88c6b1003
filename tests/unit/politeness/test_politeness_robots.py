"""Reading robots.txt as it is found in the wild."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.politeness import parse_robots


def allowed(body: str | bytes, path: str, agent: str = "Nephila") -> bool:
    body = body.encode() if isinstance(body, str) else body
    return parse_robots(body).rules_for(agent).allows(path).allowed


@pytest.mark.parametrize(
    "line",
    [
        "User-agent: Nephila",
        "USER-AGENT:nephila",
        "  user-agent \t:  NEPHILA  # that is us",
        "User-agent: Nephila/1.0",
        "User-agent: Nephila (+http://x.example)",
        "Useragent: Nephila",
        "User agent: Nephila",
        "User-agent Nephila",
    ],
)
def test_our_group_is_found_however_it_is_written(line: str) -> None:
    """P1: upper and lower case, versions, comments, a hyphen or a colon that is missing."""
    assert not allowed(f"{line}\nDisallow: /x\n\nUser-agent: *\nAllow: /x\n", "/x")


@pytest.mark.parametrize(
    "line", ["User-agent: Neph", "User-agent: Nephila-Images", "User-agent: NephilaBot", "User: Nephila"]
)
def test_other_agents_groups_are_not_ours(line: str) -> None:
    """P1: the product token must be ours, not begin like it."""
    assert allowed(f"{line}\nDisallow: /\n", "/x")


@pytest.mark.parametrize("agent", ["Crawler4All", "Spinne-ä", "2bot"])
def test_an_agent_with_other_characters_than_letters_is_named_all_the_same(agent: str) -> None:
    """P1: sites name such agents, whatever the RFC says of tokens."""
    assert not allowed(f"User-agent: {agent}/2.0\nDisallow: /\n", "/x", agent)


@pytest.mark.parametrize(
    "line",
    [
        "Disallow: /x",
        "disallow:/x",
        "DISALLOW : /x # no",
        "Disallow /x",
        "Disalow: /x",
        "Dissallow: /x",
        "Diasllow: /x",
        "Disallowed: /x",
    ],
)
def test_rules_are_read_as_leniently_as_google_reads_them(line: str) -> None:
    """P1: misspellings that real files hold."""
    assert not allowed(f"User-agent: *\n{line}\n", "/x")


@pytest.mark.parametrize(
    "line", ["Disallow", "Disallow /x y", "# Disallow: /x", "Noindex: /x", "<p>Disallow: /x", "allow: /x"]
)
def test_lines_that_are_no_rules_forbid_nothing(line: str) -> None:
    """P1: comments, other keys, prose, HTML."""
    assert allowed(f"User-agent: *\n{line}\n", "/x")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\r\n\r\n", "\n\r\n"])
def test_lines_end_as_they_like(end: str) -> None:
    """P1: CR, LF, both, and empty lines, which end no group."""
    body = end.join(["User-agent: a", "User-agent: Nephila", "Disallow: /x", "Allow: /x/y"])
    assert not allowed(body, "/x")
    assert allowed(body, "/x/y")


@pytest.mark.parametrize(
    "between",
    ["Crawl-delay: 5", "Sitemap: http://h/s.xml", "Host: h", "Content-Signal: ai-train=no", "what is this", ""],
)
def test_only_a_rule_ends_the_list_of_agents(between: str) -> None:
    """P1: other lines between User-agent lines do not break a group."""
    assert not allowed(f"User-agent: Nephila\n{between}\nUser-agent: other\nDisallow: /x\n", "/x")


def test_an_empty_rule_is_a_rule() -> None:
    """P1: it forbids nothing, but the next User-agent line begins a new group."""
    body = "User-agent: Nephila\nDisallow:\nUser-agent: *\nDisallow: /\n"
    assert allowed(body, "/x")
    assert not allowed(body, "/x", "other")


def test_groups_of_one_agent_are_merged() -> None:
    """P1: wherever in the file they stand."""
    body = (
        "User-agent: Nephila\nDisallow: /a\n\nUser-agent: *\nDisallow: /c\n\n"
        "User-agent: x\nUser-agent: nephila\nDisallow: /b\n"
    )
    assert [allowed(body, path) for path in ("/a", "/b", "/c")] == [False, False, True]
    assert [allowed(body, path, "other") for path in ("/a", "/b", "/c")] == [True, True, False]


def test_a_group_of_our_own_without_rules_sets_us_free() -> None:
    """P1: who is named is not under the rules for everybody."""
    assert allowed("User-agent: *\nDisallow: /\n\nUser-agent: Nephila\nCrawl-delay: 1\n", "/x")


def test_rules_before_any_agent_hold_for_nobody() -> None:
    """P1: a rule belongs to a group."""
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /a\n", "/x")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_hides_no_line(encoding: str) -> None:
    """P1: UTF-8 with BOM, and UTF-16, which some editors write."""
    assert not allowed("User-agent: *\nDisallow: /\n".encode(encoding), "/x")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("10 seconds", 10.0),
        ("2.5s", 2.5),
        ("2,5", 2.5),
        ("10, for all", 10.0),
        ("x", None),
        ("-1", None),
        ("", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_crawl_delay_is_a_number_of_seconds(value: str, seconds: float | None) -> None:
    """P1, P2: what makes no sense is not there."""
    assert parse_robots(f"User-agent: *\nCrawl-delay: {value}\n".encode()).rules_for("Nephila").crawl_delay_s == seconds


@pytest.mark.parametrize("value", ["86400000", "300000000000", "99999999999999999999999"])
def test_crawl_delay_binds_for_a_day_at_most(value: str) -> None:
    """P2, Q5: milliseconds for seconds are a slip of the pen, and no host is put off for years by one."""
    text = f"User-agent: *\nCrawl-delay: {value}\n".encode()
    assert parse_robots(text).rules_for("Nephila").crawl_delay_s == 86_400.0


def test_crawl_delay_binds_the_agents_named_above_it() -> None:
    """P1: of several the longest, from our groups alone."""
    file = parse_robots(
        b"User-agent: a\nCrawl-delay: 9\nUser-agent: b\nCrawl-delay: 3\nDisallow: /x\nUser-agent: b\nCrawl-delay: 2\n"
    )
    assert [file.rules_for(agent).crawl_delay_s for agent in ("a", "b", "c")] == [9.0, 3.0, None]


def test_sitemaps_belong_to_no_group() -> None:
    """X3: found wherever they stand, as written."""
    file = parse_robots("Sitemap: http://h/ä.xml\nUser-agent: x\nDisallow: /\nsite-map:/b.xml\nSitemap:\n".encode())
    assert file.sitemaps == ("http://h/ä.xml", "/b.xml")


def test_signals_are_kept_for_the_agents_they_are_meant_for() -> None:
    """X2: Content-Signal and AI-preference lines of our group, and those for everybody."""
    body = (
        b"Content-Usage: train-ai=n\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallowAITraining: /\n"
        b"Allow: /\nUser-agent: x\nContent-Signal: search=no\n"
    )
    file = parse_robots(body)
    assert file.signals == ("content-usage: train-ai=n",)
    assert file.rules_for("Nephila").signals == (
        "content-usage: train-ai=n",
        "content-signal: search=yes, ai-train=no",
        "disallowaitraining: /",
    )
    assert file.rules_for("x").signals == ("content-usage: train-ai=n", "content-signal: search=no")
    assert file.rules_for("Nephila").allows("/x").allowed


def test_a_verdict_shows_the_line_that_decided() -> None:
    """P1, T8: what `why` tells."""
    verdict = (
        parse_robots("# hello\n\nUser-agent: *\r\nDisallow: /ä\n".encode()).rules_for("Nephila").allows("/%C3%A4b")
    )
    assert (verdict.allowed, verdict.line, verdict.rule) == (False, 4, "Disallow: /ä")


@given(st.binary(max_size=300), st.text(max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_robots_file(body: bytes, path: str) -> None:
    """P1, Q5: nothing raises."""
    rules = parse_robots(b"User-agent: *\n" + body).rules_for("Nephila")
    assert isinstance(rules.allows("/" + path).allowed, bool)


def test_a_hostile_file_is_read_in_linear_time() -> None:
    """Q5: half a megabyte of agents and rules, of which neither is multiplied with the other."""
    body = b"User-agent: nephila\n" * 12_000 + b"Disallow: /a\n" * 20_000
    file = parse_robots(body)
    assert not file.rules_for("nephila").allows("/a").allowed
    assert sum(len(group.rules) for group in file._groups) == 20_000
