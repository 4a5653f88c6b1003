"""Which rule decides on a path."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nephila.politeness import Rules
from nephila.politeness.robots_match import RuleLine


def rules(*lines: str) -> Rules:
    """Rules from lines such as ``+/a`` (allow) and ``-/b`` (disallow)."""
    return Rules(
        [RuleLine(line[0] == "+", line[1:].encode().decode("latin-1"), at) for at, line in enumerate(lines, 1)]
    )


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        (
            "/fish",
            ["/fish", "/fish.html", "/fish/x", "/fishheads", "/fish.php?id=1"],
            ["/Fish", "/catfish", "/?id=fish", "/"],
        ),
        ("/fish*", ["/fish", "/fish.html", "/fish/x"], ["/Fish", "/catfish"]),
        ("/fish/", ["/fish/", "/fish/x", "/fish/?id"], ["/fish", "/fish.html"]),
        ("/*.php", ["/x.php", "/d/x.php?y", "/x.php/y", "/x.php5"], ["/", "/x.PHP", "/x.phh"]),
        ("/*.php$", ["/x.php", "/d/x.php"], ["/x.php?y", "/x.php/", "/x.php5"]),
        ("/fish*.php", ["/fish.php", "/fishheads/x.php?y"], ["/Fish.php", "/fish"]),
        ("/$", ["/"], ["/x", "/?"]),
        ("/x$", ["/x"], ["/x$", "/xx"]),
        ("*", ["/", "/x"], []),
        ("*/p", ["/p", "/x/p"], ["/x"]),
        ("/a*b*c$", ["/abc", "/aXbYbZc", "/abcc"], ["/acb", "/abcd"]),
        ("/*a*a", ["/aa", "/xaxa"], ["/a"]),
        ("/**x", ["/x", "/yx"], ["/y"]),
        ("fish", [], ["/fish"]),
        ("/?", ["/?", "/?x"], ["/", "/x?"]),
        ("", [], ["/", "/x"]),
    ],
)
def test_wildcards_and_end_marks(pattern: str, matches: list[str], others: list[str]) -> None:
    """P1: RFC 9309, 2.2.3, with the examples that all engines share."""
    ruled = rules("-" + pattern)
    assert [path for path in matches + others if not ruled.allows(path).allowed] == matches


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/ä", "/%C3%A4"),
        ("/%c3%a4", "/%C3%A4"),
        ("/%7Ejoe", "/~joe"),
        ("/~joe", "/%7ejoe"),
        ("/%62%61%7A", "/baz"),
        ("/a<b", "/a%3Cb"),
        ("/a%3cb", "/a%3Cb"),
        ("/a%2Ab", "/a*b"),
        ("/a%2ab", "/a%2Ab"),
        ("/a%24", "/a$"),
        ("/a$b", "/a$b"),
        ("/a$b", "/a%24b"),
        ("/*?f[", "/x?f%5B0%5D=1"),
        ("/a b", "/a%20b"),
        ("/ä", "/ä"),
    ],
)
def test_octets_are_compared_in_one_spelling(pattern: str, path: str) -> None:
    """P1: RFC 9309, 2.2.2: percent-encoding makes no difference where it means none."""
    assert not rules("-" + pattern).allows(path).allowed


@pytest.mark.parametrize(
    ("pattern", "path"), [("/a%2Fb", "/a/b"), ("/a/b", "/a%2Fb"), ("/a%2Ab", "/aXb"), ("/a%3Fb", "/a?b")]
)
def test_encoded_separators_are_no_separators(pattern: str, path: str) -> None:
    """P1: reserved characters keep their spelling, and an encoded star is a star."""
    assert rules("-" + pattern).allows(path).allowed


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        (["-/", "+/p"], "/page", True),
        (["+/folder", "-/folder"], "/folder/page", True),
        (["-/folder", "+/folder"], "/folder/page", True),
        (["+/page", "-/*.htm"], "/page.htm", False),
        (["+/$", "-/"], "/", True),
        (["+/$", "-/"], "/page.htm", False),
        (["-/ca/top/", "+/ca/top/$", "-/a/much/longer/rule"], "/ca/top/", True),
        (["-/x*", "+/xy"], "/xyz", True),
        (["+/x*", "-/xy"], "/xyz", True),
        (["+/p/index.html", "-/"], "/p/", True),
        (["+/p/index.html", "-/"], "/p/x", False),
        (["-/p/index.html"], "/p/", True),
        (["-/"], "/robots.txt", True),
        (["-/"], "/robots.txt?x", True),
        (["-/"], "/robots.txt.bak", False),
        (["-/robots.txt"], "/robots.txt", True),
    ],
)
def test_the_longest_rule_wins_and_of_two_the_one_that_allows(lines: list[str], path: str, allowed: bool) -> None:
    """P1: RFC 9309, 2.2.2."""
    assert rules(*lines).allows(path).allowed is allowed


ALPHABET = "ab/*$"
LINES = st.lists(st.tuples(st.booleans(), st.text(ALPHABET, max_size=6).map("/".__add__)), max_size=8)


def oracle(lines: list[tuple[bool, str]], path: str) -> bool:
    """The rule as the RFC tells it: try all, take the longest, by the regular expression that a pattern is."""
    best = (0, True)
    for allow, pattern in lines:
        text = pattern.removesuffix("$")
        # Where it is no end mark, a dollar is an ordinary octet, which the RFC compares (and counts) encoded.
        parts = [re.escape(part.replace("$", "%24")) for part in text.split("*")]
        end = r"\Z" if pattern.endswith("$") else ""
        length = len(text.replace("$", "%24")) + pattern.endswith("$")
        if re.match(".*".join(parts) + end, path.replace("*", "%2A").replace("$", "%24")):
            best = max(best, (length, allow))
    return best[1]


@given(LINES, st.text(ALPHABET, max_size=8).map("/".__add__))
@example([(False, "/ab"), (True, "/ab$"), (False, "/ab/ab/ab")], "/ab")
@settings(max_examples=200, deadline=None)
def test_the_index_finds_what_trying_all_rules_finds(lines: list[tuple[bool, str]], path: str) -> None:
    """P1: the shortcuts decide as the plain reading does."""
    ruled = Rules([RuleLine(allow, pattern, at) for at, (allow, pattern) in enumerate(lines, 1)])
    assert ruled.allows(path).allowed is oracle(lines, path)


@given(LINES, st.text(ALPHABET, max_size=8).map("/".__add__), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_rules_does_not_matter(lines: list[tuple[bool, str]], path: str, random: object) -> None:
    """P1: not the first match, the longest."""
    forth = Rules([RuleLine(allow, pattern, 1) for allow, pattern in lines])
    back = Rules([RuleLine(allow, pattern, 1) for allow, pattern in reversed(lines)])
    assert forth.allows(path).allowed is back.allows(path).allowed


def test_many_prefixes_are_looked_up_and_not_tried() -> None:
    """P1: large files decide as small ones do."""
    many = rules(*(f"-/dir{number}/" for number in range(5000)), "+/dir77/open")
    assert not many.allows("/dir77/x").allowed
    assert many.allows("/dir77/open/x").allowed
    assert many.allows("/dir").allowed
    assert many.allows("/dir77/x").line == 78


def test_hostile_wildcards_cost_one_walk_along_the_path() -> None:
    """Q5: a backtracking matcher would not come back from these."""
    path = "/" + "a" * 2000
    assert rules("-/" + "*a" * 1000 + "*b").allows(path).allowed
    assert not rules("-/" + "*a" * 1000 + "$").allows(path).allowed
    assert rules("-/" + "a*" * 3000).allows(path).allowed


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        ([f"-/*x{number}*y" for number in range(24_000)], "/" + "x" * 2_000, True),
        ([f"-/*x{number}*y" for number in range(24_000)], "/a/x777/b/y", False),
        ([f"-/*aaaa*{number}b" for number in range(24_000)], "/" + "a" * 2_000, False),
        (["-/z" + "*" * 500_000 + "q"], "/z" + "a" * 2_000, True),
        (["-/" + "a*" * 250_000], "/" + "a" * 2_000, True),
        ([f"-/{'a*' * 500}{number}b" for number in range(500)], "/" + "a" * 2_000, True),
    ],
    ids=["by characters", "found", "halfway", "stars", "one long", "long ones"],
)
def test_any_file_is_checked_in_a_few_milliseconds(lines: list[str], path: str, allowed: bool) -> None:
    """Q5, P1: one whose patterns all fit halfway is not tried to its end, and that is taken for a no."""
    ruled = rules(*lines)

    def took() -> float:
        begun = time.process_time()
        assert ruled.allows(path).allowed is allowed
        return time.process_time() - begun

    assert min(took() for _ in range(3)) < 0.05, "seconds; trying all of them takes three times as long"


def test_many_patterns_decide_as_few_do() -> None:
    """P1: looking them up by their characters finds what trying them all finds."""
    chance = random.Random(3)
    texts = ["".join(chance.choices("ab/*", k=chance.randrange(1, 9))) + chance.choice(["", "$"]) for _ in range(300)]
    lines = [(chance.random() < 0.5, "/" + text) for text in texts]
    many = Rules([RuleLine(allow, pattern, at) for at, (allow, pattern) in enumerate(lines, 1)])
    for _ in range(300):
        path = "/" + "".join(chance.choices("ab/", k=chance.randrange(12)))
        assert many.allows(path).allowed is oracle(lines, path), path
