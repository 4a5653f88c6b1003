"""Which rule of a robots.txt decides on a path (P1; RFC 9309, 2.2.2 and 2.2.3).

The longest pattern that matches wins, and of two equally long ones the one that allows. ``*`` matches anything, ``$``
at the end of a pattern the end of the path; everything else is compared octet by octet after both sides were brought to
one spelling: unreserved characters bare, all others that RFC 3986 does not allow in a path percent-encoded in upper
case, and ``*`` and ``$`` encoded wherever they stand for themselves (``%2A`` in a rule means a real star).

Patterns without wildcard are looked up by length in a dictionary. The others are tried longest first: their longest
literal part must be somewhere in the path, then their parts are sought from left to right, each after the one before.
Taking the first place where a part fits is always right, because a star never minds a longer match; so no pattern,
however it was meant, costs more than one walk along the path.

What must stay true: a check is a pure function of rules and path, and costs about two microseconds for the files that
sites really have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a path may be fetched, and what says so."""

    allowed: bool
    line: int = 0
    """Of the robots.txt, counted from 1; 0 where no rule matched."""
    rule: str = ""
    """As it is written there, e.g. ``Disallow: /private/``."""


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One Allow or Disallow line."""

    allow: bool
    pattern: str
    """Its octets as latin-1 characters; an empty one matches nothing."""
    line: int

    def verdict(self) -> Verdict:
        """What it says where it is the rule that decides."""
        shown = self.pattern[:_SHOWN].encode("latin-1").decode("utf-8", "replace")
        return Verdict(self.allow, self.line, f"{'Allow' if self.allow else 'Disallow'}: {shown}")


FREE = Verdict(allowed=True)
"""No rule matches: RFC 9309, 2.2.2 allows it."""

_SHOWN = 500
"""Characters of a pattern that a verdict quotes."""
_MANY_PREFIXES = 200
"""Above this, trying all prefixes costs more than looking up each length; our own measurement."""
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = r"A-Za-z0-9\-._~/:?#@!&()+,;="
_PATH_SPOT = re.compile(rf"%[0-9A-Fa-f]{{2}}|[^{_PLAIN}%]")
_PATTERN_SPOT = re.compile(rf"%[0-9A-Fa-f]{{2}}|[^{_PLAIN}%*]")


def _spelling(spot: re.Match[str]) -> str:
    text = spot[0]
    if len(text) == 1:
        return f"%{ord(text):02X}"
    char = chr(int(text[1:], 16))
    return char if char in _UNRESERVED else text.upper()


def comparable_path(path_and_query: str) -> str:
    """The one spelling of a path that rules are compared with."""
    if not path_and_query.isascii():
        path_and_query = path_and_query.encode("utf-8", "replace").decode("latin-1")
    return _PATH_SPOT.sub(_spelling, path_and_query)


class _Pattern(NamedTuple):
    """A rule with a wildcard or an end mark, ready to be tried."""

    length: int
    allow: bool
    needle: str
    """Its longest literal part."""
    parts: tuple[str, ...]
    """What stands between the stars; the first begins the path."""
    anchored: bool
    """The last part ends the path."""
    verdict: Verdict

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a comparable path."""
        first, *rest = self.parts
        if not path.startswith(first):
            return False
        if not rest:
            return len(path) == len(first)  # there is no star, so there is an end mark
        at = len(first)
        last = rest.pop()
        for part in rest:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        if self.anchored:
            return path.endswith(last) and len(path) - len(last) >= at
        return path.find(last, at) >= 0


class Rules:
    """All that one robots.txt says to one agent."""

    def __init__(
        self, lines: Iterable[RuleLine] = (), crawl_delay_s: float | None = None, signals: tuple[str, ...] = ()
    ) -> None:
        self.crawl_delay_s = crawl_delay_s
        """Seconds between requests that the site asks for, None when it does not."""
        self.signals = signals
        """Content-Signal, Content-Usage and the like, as written (X2)."""
        plain: dict[str, RuleLine] = {}
        patterns: list[_Pattern] = []
        for text, line in _spelled(lines):
            if "*" in text or text.endswith("$"):
                patterns.append(_pattern(text, line))
            elif text not in plain or (line.allow and not plain[text].allow):
                plain[text] = line
        self._plain = {text: line.verdict() for text, line in plain.items()}
        self._lengths = sorted({len(text) for text in plain}, reverse=True)
        self._prefixes = tuple(plain) if len(plain) <= _MANY_PREFIXES else ("",)
        self._patterns = sorted(patterns, key=lambda pattern: (-pattern.length, not pattern.allow))

    def allows(self, path_and_query: str) -> Verdict:
        """Whether a URL may be fetched, by its path and query as they stand in its WHATWG serialisation."""
        path = comparable_path(path_and_query)
        if path.startswith("/robots.txt") and path.partition("?")[0] == "/robots.txt":
            return FREE  # RFC 9309, 2.2.2: implicitly allowed
        best, length = FREE, 0
        if path.startswith(self._prefixes):
            best, length = self._longest_plain(path)
        for pattern in self._patterns:
            if pattern.length < length:
                break
            if pattern.needle in path and pattern.matches(path):
                return pattern.verdict if pattern.length > length or pattern.allow else best
        return best

    def _longest_plain(self, path: str) -> tuple[Verdict, int]:
        for length in self._lengths:
            prefix = path[:length]
            verdict = self._plain.get(prefix)
            if verdict is not None:
                return verdict, len(prefix)  # a short path is its own prefix at every length
        return FREE, 0


def _spelled(lines: Iterable[RuleLine]) -> Iterator[tuple[str, RuleLine]]:
    """Each line with its comparable pattern; ``Disallow:`` forbids nothing.

    Who allows ``/news/index.html`` allows ``/news/``: not in the RFC, but every engine in use reads it so.
    """
    for line in lines:
        if not line.pattern:
            continue
        text = _comparable_pattern(line.pattern)
        yield text, line
        folder, slash, file = text.rpartition("/")
        if line.allow and slash and file.startswith("index.htm"):
            yield f"{folder}/$", line


def _comparable_pattern(pattern: str) -> str:
    """The one spelling of a pattern: its stars are wildcards, and a last ``$`` is the end mark."""
    anchor = "$" if pattern.endswith("$") else ""
    return _PATTERN_SPOT.sub(_spelling, pattern.removesuffix("$")) + anchor


def _pattern(text: str, line: RuleLine) -> _Pattern:
    parts = tuple(text.removesuffix("$").split("*"))
    return _Pattern(len(text), line.allow, max(parts, key=len), parts, text.endswith("$"), line.verdict())
