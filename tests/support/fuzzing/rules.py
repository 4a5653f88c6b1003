"""robots.txt: the reader, and the matcher against a plain one."""

from __future__ import annotations

from nephila.politeness.robots import parse_robots
from nephila.politeness.robots_match import FREE, RuleLine, Rules, _spelled, comparable_path

from .target import Choices, Target


def _fits(pattern: str, path: str) -> bool:
    """Whether a pattern matches, by trying every place that a star may end at."""
    anchored = pattern.endswith("$")
    pattern = pattern.removesuffix("$")
    places = {0}
    for character in pattern:
        if character == "*":
            places = set(range(min(places), len(path) + 1)) if places else places
        else:
            places = {at + 1 for at in places if at < len(path) and path[at] == character}
    return len(path) in places if anchored else bool(places)


def expected(lines: list[RuleLine], path_and_query: str) -> bool:
    """What RFC 9309 says: the longest pattern that matches wins, and of equal ones the one that allows."""
    path = comparable_path(path_and_query)
    if path.partition("?")[0] == "/robots.txt":
        return True
    fitting = [(len(text), line.allow) for text, line in _spelled(lines) if _fits(text, path)]
    return max(fitting)[1] if fitting else True


def check_robots(data: bytes) -> None:
    """A file gives rules; line ends do not matter; the matcher says what the plain one says, and by which line."""
    choices = Choices(data)
    size = choices.number(64)
    rest = choices.rest()
    path, body = "/" + rest[:size].decode("latin-1"), rest[size:]
    parsed = parse_robots(body)
    lines = body.splitlines()
    for agent in ("Nephila", "other-bot", "*"):
        rules = parsed.rules_for(agent)
        verdict = rules.allows(path)
        assert verdict.line <= len(lines)
        assert rules.allows("/robots.txt") == FREE
        assert rules.crawl_delay_s is None or rules.crawl_delay_s >= 0
        crlf = parse_robots(b"\r\n".join(lines)).rules_for(agent)
        assert (crlf.allows(path).allowed, crlf.crawl_delay_s) == (verdict.allowed, rules.crawl_delay_s)
    assert len(parsed.sitemaps) <= len(lines)


def check_matching(data: bytes) -> None:
    """Any patterns and any path: the verdict is the plain matcher's."""
    path, *patterns = data.decode("latin-1").split("\n")
    lines = [RuleLine(pattern[:1] != "-", pattern[1:], number) for number, pattern in enumerate(patterns, 1)]
    rules = Rules(lines)
    verdict = rules.allows("/" + path)
    assert verdict.allowed == expected(lines, "/" + path)
    if verdict != FREE:
        assert lines[verdict.line - 1].allow == verdict.allowed
        assert any(_fits(text, comparable_path("/" + path)) for text, _ in _spelled([lines[verdict.line - 1]]))


TARGETS = (
    Target(
        "robots",
        check_robots,
        (
            b"\x06priv/xUser-agent: *\nDisallow: /priv*/\nAllow: /priv/x$\nCrawl-delay: 2.5\nSitemap: http://a.test/s.xml\n",
            b"\x04a/b?# x\nuser agent nephila\ndisalow: /a\n\nUser-Agent: other-bot\nContent-Signal: ai-train=no\nAllow: /\n",
            b"\x03x%2\xef\xbb\xbfUser-agent: nephila/2\rDisallow: /x%252\rUser-agent: *\rDisallow:\r",
            b"\x01a\xff\xfeU\x00s\x00e\x00r\x00",
        ),
        (b"User-agent: *\n", b"Disallow: /", b"Allow: /", b"Crawl-delay: ", b"Sitemap: ", b"*", b"$", b"%2A", b"nephila", b"\r\n", b"#"),
        2048,
    ),
    Target(
        "matching",
        check_matching,
        (b"a/b.html?x=1\n-/\n+/a/*.html\n-*x=1$\n+/a", b"aaaa\n-/*a*a*a*b\n+/*a$\n-/%61a*", b"index.html\n+/index.htm\n-/*\n-/\n+$"),
        (b"*", b"$", b"/", b"%2A", b"%", b"\n-", b"\n+", b"index.html", b"*/*", b"**"),
        400,
    ),
)  # fmt: skip
