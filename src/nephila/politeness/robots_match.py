"""Which rule of a robots.txt decides on a path (P1; RFC 9309, 2.2.2 and 2.2.3).

The longest pattern that matches wins, and of two equally long ones the one that allows. ``*`` matches anything, ``$``
at the end of a pattern the end of the path; everything else is compared octet by octet after both sides were brought to
one spelling: unreserved characters bare, all others that RFC 3986 does not allow in a path percent-encoded in upper
case, and ``*`` and ``$`` encoded wherever they stand for themselves (``%2A`` in a rule means a real star).

Patterns without wildcard are looked up by length in a dictionary. The others are tried longest first: their parts are
sought from left to right, each after the one before. Taking the first place where a part fits is always right, because
a star never minds a longer match; so no pattern, however it was meant, costs more than one walk along the path. Where
there are many patterns, only those are tried of which three characters stand in the path (`_Grams`).

What must stay true: a check is a pure function of rules and path; it costs about two microseconds for the files that
sites really have, and a few milliseconds at most for any other: a file that would need more (thousands of patterns
that all fit halfway) is not tried to its end, and what it then says of that path is taken for a no.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from nephila.model.noun import noun


@noun
class Verdict:
    """Whether a path may be fetched, and what says so."""

    allowed: bool
    line: int = 0
    """Of the robots.txt, counted from 1; 0 where no rule matched."""
    rule: str = ""
    """As it is written there, e.g. ``Disallow: /private/``."""


class RuleLine(NamedTuple):
    """One Allow or Disallow line. A bare tuple: a hostile file has half a million of them."""

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
MANY_PATTERNS = 64
"""Above this, patterns are looked up by three of their characters instead of being tried one by one."""
MAX_TRIED = 1_000_000
"""Work of one check before it is given up, in characters of the path that are looked at; some milliseconds."""
_STEP = 8
"""Characters that could be looked at in the time that it takes to begin looking."""
_GRAM = 3
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = r"A-Za-z0-9\-._~/:?#@!&()+,;="
_PATH_SPOT = re.compile(rf"%[0-9A-Fa-f]{{2}}|[^{_PLAIN}%]")
_PATTERN_SPOT = re.compile(rf"%[0-9A-Fa-f]{{2}}|[^{_PLAIN}%*]")


def _respelled(text: str) -> str:
    char = chr(int(text[1:], 16))
    return char if char in _UNRESERVED else text.upper()


_HEX = "0123456789abcdefABCDEF"
_SPELLINGS = {chr(octet): f"%{octet:02X}" for octet in range(256)} | {
    f"%{one}{other}": _respelled(f"%{one}{other}") for one in _HEX for other in _HEX
}
"""What becomes of each character or escape that is not left as it is: a file may hold half a million of them."""


def _spelling(spot: re.Match[str]) -> str:
    return _SPELLINGS[spot[0]]


def comparable_path(path_and_query: str) -> str:
    """The one spelling of a path that rules are compared with."""
    if not path_and_query.isascii():
        path_and_query = path_and_query.encode("utf-8", "replace").decode("latin-1")
    return _PATH_SPOT.sub(_spelling, path_and_query)


class _Pattern(NamedTuple):
    """A rule with a wildcard or an end mark, ready to be tried."""

    length: int
    line: RuleLine
    needle: str
    """Its longest literal part."""
    parts: tuple[str, ...]
    """What stands between the stars, empty ones left out but at both ends; the first begins the path."""
    anchored: bool
    """The last part ends the path."""

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


class _Grams:
    """Patterns by a few characters that a path must hold for them to match.

    Of each pattern the rarest of three places in its longest part is taken: what all of a site's patterns begin with
    tells none of them from the others.
    """

    def __init__(self, patterns: list[_Pattern]) -> None:
        places = [_places(pattern.needle) for pattern in patterns]
        count = Counter(chain.from_iterable(places))
        self._by_gram: dict[str, list[int]] = {}
        for at, grams in enumerate(places):
            self._by_gram.setdefault(min(grams, key=count.__getitem__), []).append(at)
        self._sizes = sorted({len(gram) for gram in self._by_gram})

    def candidates(self, path: str) -> list[int]:
        """Which of the patterns may match, in their order."""
        found: list[int] = []
        for size in self._sizes:
            grams = {path[at : at + size] for at in range(len(path) - size + 1)} if size else {""}
            for gram in grams & self._by_gram.keys():
                found += self._by_gram[gram]
        found.sort()
        return found


def _places(needle: str) -> tuple[str, ...]:
    """Three places of a literal, or what there is of it."""
    if len(needle) <= _GRAM:
        return (needle,)
    last, middle = len(needle) - _GRAM, len(needle) // 2 - 1
    return needle[:_GRAM], needle[middle : middle + _GRAM], needle[last:]


class Rules:
    """All that one robots.txt says to one agent."""

    def __init__(
        self, lines: Iterable[RuleLine] = (), crawl_delay_s: float | None = None, signals: tuple[str, ...] = ()
    ) -> None:
        self.crawl_delay_s = crawl_delay_s
        """Seconds between requests that the site asks for, None when it does not."""
        self.signals = signals
        """Content-Signal, Content-Usage and the like, as written (X2)."""
        self.signal_lines = "\n".join(signals)
        """The same in one text."""
        plain: dict[str, RuleLine] = {}
        patterns: list[_Pattern] = []
        for text, line in _spelled(lines):
            if "*" in text or text.endswith("$"):
                patterns.append(_pattern(text, line))
            elif text not in plain or (line.allow and not plain[text].allow):
                plain[text] = line
        self._plain = plain
        self._lengths = sorted({len(text) for text in plain}, reverse=True)
        self._prefixes = tuple(plain) if len(plain) <= _MANY_PREFIXES else ("",)
        self._patterns = sorted(patterns, key=lambda pattern: (-pattern.length, not pattern.line.allow))
        self._grams = _Grams(self._patterns) if len(patterns) > MANY_PATTERNS else None

    def allows(self, path_and_query: str) -> Verdict:
        """Whether a URL may be fetched, by its path and query as they stand in its WHATWG serialisation."""
        path = comparable_path(path_and_query)
        if path.startswith("/robots.txt") and path.partition("?")[0] == "/robots.txt":
            return FREE  # RFC 9309, 2.2.2: implicitly allowed
        best: RuleLine | None = None
        length = 0
        if path.startswith(self._prefixes):
            best, length = self._longest_plain(path)
        room = MAX_TRIED
        for pattern in self._candidates(path):
            if pattern.length < length:
                break
            room -= len(path) + _STEP * min(len(pattern.parts), len(path))
            if room < 0:
                return _untried(pattern.line)
            if pattern.needle in path and pattern.matches(path):
                if pattern.length > length or pattern.line.allow:
                    best = pattern.line
                break
        return FREE if best is None else best.verdict()

    def _candidates(self, path: str) -> Iterable[_Pattern]:
        if self._grams is None:
            return self._patterns
        return map(self._patterns.__getitem__, self._grams.candidates(path))

    def _longest_plain(self, path: str) -> tuple[RuleLine | None, int]:
        for length in self._lengths:
            prefix = path[:length]
            line = self._plain.get(prefix)
            if line is not None:
                return line, len(prefix)  # a short path is its own prefix at every length
        return None, 0


def _untried(line: RuleLine) -> Verdict:
    """The verdict where there are more patterns than can be tried: nobody who means well has such a file."""
    return Verdict(allowed=False, line=line.line, rule="more wildcard rules that may match than can be tried")


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
    first, *rest = text.removesuffix("$").split("*")
    parts = (first, *filter(None, rest[:-1]), *rest[-1:])  # stars in a row are one: no part may be sought in vain
    return _Pattern(len(text), line, max(parts, key=len), parts, text.endswith("$"))
