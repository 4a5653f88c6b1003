"""robots.txt, read and matched a second time (RFC 9309): by other code than the crawler's, for those who check it.

Made to be plain rather than fast: a list of rules, each tried on every path. It shares nothing with `politeness`; both
are held against the same test suites of other engines, and against each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_KEYS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), "agent"),
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "disallow"),
    "allow": "allow",
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), "delay"),
}
"""What real files write, and what engines in use take it for: a key may go on after these words."""
_OTHER_KEYS = frozenset({"disallowaitraining", "allowaitraining"})
"""Keys that begin like one of ours and mean something else."""

_SPACE = " \t\v\f\r\n\0"
_DELAY = re.compile(r"(\d{1,12}([.,]\d{0,12})?|[.,]\d{1,12})", re.ASCII)
LONGEST_DELAY_S = 86_400.0
"""A Crawl-delay binds for a day: by then robots.txt is read again."""
_NAME = re.compile(r"[a-z_-]+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = _UNRESERVED | frozenset("!&()+,;=:@/?%#")
"""Characters that stand for themselves in a path, ``*`` and ``$`` apart, which are told from wildcards."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One Allow or Disallow line."""

    allow: bool
    text: str
    """As it was written."""
    line: int
    parts: tuple[str, ...]
    """What stands between the stars, in one spelling."""
    anchored: bool
    """Whether ``$`` ends it."""
    weight: int

    def matches(self, path: str) -> bool:
        """Whether the pattern fits the beginning of a path (all of it, where anchored)."""
        first, *rest = self.parts
        if not path.startswith(first):
            return False
        if not rest:
            return not self.anchored or len(path) == len(first)
        place = len(first)
        for part in rest[:-1]:
            place = path.find(part, place)
            if place < 0:
                return False
            place += len(part)
        last = rest[-1]
        if self.anchored:
            return len(path) - len(last) >= place and path.endswith(last)
        return path.find(last, place) >= 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What a robots.txt says to one agent."""

    rules: tuple[Rule, ...] = ()
    crawl_delay_ms: int = 0

    def forbids(self, target: str) -> Rule | None:
        """The rule that keeps the agent from a path with its query; None where it may go."""
        path = _spelled(target.encode("utf-8", "replace").decode("latin-1"))
        if path.partition("?")[0] == "/robots.txt":
            return None  # RFC 9309, 2.2.2: implicitly allowed
        best: Rule | None = None
        for rule in self.rules:
            heavier = best is None or (rule.weight, rule.allow) > (best.weight, best.allow)
            if heavier and rule.matches(path):
                best = rule
        return best if best is not None and not best.allow else None


def read_robots(body: bytes, agent: str) -> Reading:
    """Read a robots.txt for an agent, named by its product token. Any bytes give an answer."""
    lines = _lines(body)
    wanted = agent.encode("utf-8", "replace").decode("latin-1").lower()
    return _read_for(lines, wanted) or _read_for(lines, "*") or Reading()


def _read_for(lines: list[tuple[int, str, str]], wanted: str) -> Reading | None:
    """What the groups for one name say together; None where no group has that name."""
    rules: list[Rule] = []
    delays: list[float] = []
    found = member = ruled = False
    for number, key, value in lines:
        if key == "agent":
            if ruled:
                member = ruled = False
            member = member or wanted in _names(value)
            found = found or member
        elif key == "delay":
            if member and (match := _DELAY.match(value)):
                delays.append(float(match[0].replace(",", ".")))
        else:
            ruled = True
            if member and value:
                rules.append(_rule(value, number, allow=key == "allow"))
                folder, slash, file = value.rpartition("/")
                if key == "allow" and slash and file.startswith("index.htm"):
                    rules.append(_rule(f"{folder}/$", number, allow=True))  # as every engine in use reads it
    return Reading(tuple(rules), round(min(max(delays, default=0.0), LONGEST_DELAY_S) * 1000)) if found else None


def _lines(body: bytes) -> list[tuple[int, str, str]]:
    """Number, key and value of the lines that mean something; those before the first agent mean nothing."""
    if body[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in body:
        body = body.decode("utf-16", "replace").encode()
    found: list[tuple[int, str, str]] = []
    for number, raw in enumerate(body.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        line = raw.decode("latin-1").partition("#")[0].strip(_SPACE)
        name, colon, value = line.partition(":")
        if not colon:
            words = line.split()
            if len(words) != 2 or line.strip(" \t") != line:
                continue
            name, value = words
        name = name.strip(_SPACE).lower()
        key = next((meaning for spelling, meaning in _KEYS.items() if name.startswith(spelling)), "")
        if key and name not in _OTHER_KEYS and (found or key == "agent"):
            found.append((number, key, value.strip(_SPACE)))
    return found


def _names(value: str) -> set[str]:
    """Who a User-agent line speaks to: the whole name, its first word, or its letters up to a version."""
    value = value.lower()
    if value == "*" or (value.startswith("*") and value[1].isspace()):
        return {"*"}
    word = re.split(r"[\s/]", value, maxsplit=1)[0]
    letters = _NAME.match(value)
    return {value, word, letters[0] if letters else value} - {"*"}


def _rule(text: str, line: int, *, allow: bool) -> Rule:
    anchored = text.endswith("$")
    bare = text[:-1] if anchored else text
    parts = tuple(_spelled(part) for part in bare.split("*"))
    weight = sum(map(len, parts)) + len(parts) - 1 + anchored
    return Rule(allow, text.encode("latin-1").decode("utf-8", "replace"), line, parts, anchored, weight)


def _spelled(text: str) -> str:
    """One spelling of a path: unreserved characters bare, all others that may not stand bare in upper-case escapes."""
    unescaped = _ESCAPE.sub(_unescaped, text)
    return "".join([c if c in _PLAIN else f"%{ord(c):02X}" for c in unescaped])


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else f"%{match[1].upper()}"
