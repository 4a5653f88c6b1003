"""Reading robots.txt as it is found in the wild (P1; RFC 9309, 2.1 and 2.2.1).

A file is a list of groups: User-agent lines, then rules. A group ends where a User-agent line follows a *rule*; any
other line in between (Crawl-delay, Sitemap, things nobody knows) does not end it, which is where many parsers go wrong.
All groups that name our agent count as one; only when there is none do the groups for ``*`` count. Keys are read as
leniently as Google's parser reads them: upper and lower case, a space for the hyphen, the misspellings of "disallow"
that real files hold, a missing colon.

What must stay true: any bytes give a `RobotsFile`, in time and memory linear in their number; an HTML page simply holds
no rules.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from .robots_match import RuleLine, Rules

_USER_AGENT = ("user-agent", "useragent", "user agent")
_ALLOW = ("allow",)
_DISALLOW = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
"""The misspellings are those that Google's open parser takes, by their number in real files."""
_SITEMAP = ("sitemap", "site-map")
LONGEST_DELAY_S = 86_400.0
"""Of a Crawl-delay: the file is read again after a day, and milliseconds for seconds may be a slip of the pen."""
_CRAWL_DELAY = ("crawl-delay", "crawldelay", "crawl delay")
_SIGNALS = frozenset({"content-signal", "content-signals", "content-usage", "disallowaitraining", "allowaitraining"})
"""Preferences on the use of content: Cloudflare's signals, the IETF's aipref drafts, draft-canel-robots-ai-control."""

_SPACE = b" \t\v\f\r\n\0"
_TWO_WORDS = re.compile(rb"^(\S+)[ \t]+(\S+)$")
_NUMBER = re.compile(r"\d{1,12}(?:[.,]\d{0,12})?|[.,]\d{1,12}", re.ASCII)
_PRODUCT_TOKEN = re.compile(r"[a-z_-]+")
_WORD_END = re.compile(r"[\s/]")
_SHORTEST_LINE = len("allow:")
"""A shorter line says nothing, and a hostile file may have half a million of them."""
_EVERYBODY = frozenset({"*"})


@dataclass(slots=True)
class _Group:
    """One group while it is read. Delays and signals hold for the agents named above them, rules for all of them."""

    agents: list[frozenset[str]] = field(default_factory=list)
    rules: list[RuleLine] = field(default_factory=list)
    delays: list[tuple[int, float]] = field(default_factory=list)
    """How many agents had been named, and the seconds asked of them."""
    signals: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """A robots.txt, read; `rules_for` tells what it says to one agent."""

    sitemaps: tuple[str, ...]
    """As written: they belong to no group."""
    signals: tuple[str, ...]
    """Those that stand outside of all groups."""
    _groups: tuple[_Group, ...]

    def rules_for(self, agent_token: str) -> Rules:
        """The rules for an agent by its product token, e.g. ``Nephila``; upper and lower case are the same."""
        token = agent_token.encode("utf-8", "replace").decode("latin-1").lower()
        return self._merged(token) or self._merged("*") or Rules(signals=self.signals)

    def _merged(self, token: str) -> Rules | None:
        rules: list[RuleLine] = []
        delays: list[float] = []
        signals = list(self.signals)
        named = False
        for group in self._groups:
            places = [place for place, names in enumerate(group.agents) if token in names]
            if not places:
                continue
            named = True
            rules += group.rules
            delays += [seconds for count, seconds in group.delays if places[0] < count]
            signals += [signal for count, signal in group.signals if places[0] < count]
        if not named:
            return None
        # A site that asks for two delays means the longer one at some time; nobody minds our being slower.
        return Rules(rules, max(delays, default=None), tuple(dict.fromkeys(signals)))


def parse_robots(body: bytes) -> RobotsFile:
    """Read a robots.txt, whatever it is."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in body:
        body = body.decode("utf-16", "replace").encode()
    reader = _Reader()
    for number, line in enumerate(body.removeprefix(codecs.BOM_UTF8).splitlines(), start=1):
        if len(line) < _SHORTEST_LINE:
            continue
        key, value = _field(line)
        if key:
            reader.take(key, value, number)
    return RobotsFile(tuple(reader.sitemaps), tuple(reader.signals), tuple(reader.groups))


class _Reader:
    """Takes the lines one after the other and knows which group they belong to."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self.sitemaps: list[str] = []
        self.signals: list[str] = []
        # Rules before the first User-agent line hold for nobody: this first group is not among `groups`.
        self._group = _Group()

    def take(self, key: str, value: str, line: int) -> None:
        """Take one line; a key that means nothing to us leaves no trace."""
        if key in _SIGNALS:
            self._take_signal(f"{key}: {_text(value)}")
        elif key.startswith(_USER_AGENT):
            self._take_agent(value)
        elif key.startswith(_DISALLOW):
            self._group.rules.append(RuleLine(allow=False, pattern=value, line=line))
        elif key.startswith(_ALLOW):
            self._group.rules.append(RuleLine(allow=True, pattern=value, line=line))
        elif key.startswith(_CRAWL_DELAY) and (seconds := _seconds(value)) is not None:
            self._group.delays.append((len(self._group.agents), seconds))
        elif key.startswith(_SITEMAP) and value:
            self.sitemaps.append(_text(value))

    def _take_agent(self, value: str) -> None:
        if self._group.rules or not self.groups:
            self._group = _Group()
            self.groups.append(self._group)
        self._group.agents.append(_agent_names(value))

    def _take_signal(self, signal: str) -> None:
        if self.groups:
            self._group.signals.append((len(self._group.agents), signal))
        else:
            self.signals.append(signal)


def _field(line: bytes) -> tuple[str, str]:
    """Key in lower case and value of a line, both empty where it is none. Octets become latin-1 characters."""
    line = line.partition(b"#")[0].strip(_SPACE)
    key, colon, value = line.partition(b":")
    if not colon:
        words = _TWO_WORDS.match(line)
        if words is None:
            return "", ""
        key, value = words.groups()
    return key.strip(_SPACE).decode("latin-1").lower(), value.strip(_SPACE).decode("latin-1")


def _text(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "replace")


def _agent_names(value: str) -> frozenset[str]:
    """The tokens that a User-agent line names.

    By the RFC a token ends at the first character that is no letter, ``_`` or ``-``; but sites also name agents that
    have digits or umlauts, and some write the whole name: whichever of the three is ours, we are meant.
    """
    value = value.lower()
    if value[:1] == "*" and (len(value) == 1 or value[1].isspace()):
        return _EVERYBODY
    word = _WORD_END.split(value, maxsplit=1)[0]
    token = _PRODUCT_TOKEN.match(value)
    return frozenset({value, word, token[0] if token else value} - {"*"})


def _seconds(value: str) -> float | None:
    """A delay that makes sense: a number from the beginning of the value (``10 # seconds``, ``2.5s``, ``2,5``)."""
    number = _NUMBER.match(value)
    return min(float(number[0].replace(",", ".")), LONGEST_DELAY_S) if number else None
