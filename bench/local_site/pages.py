"""The pages of the site: which there are, where they lead, what they say. The same seed gives the same bytes.

Page `n` lies on host `n % hosts` as that host's page number `n // hosts`; number 0 is its front page. A page links to
the host's menu (its first pages), to its own children in a tree that reaches every page of the host, to other pages of
the host, and with a tenth of its links to other hosts; front pages lead to one another in a tree too, so that all is
reachable from the first host's front page.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .templates import LINKS, Link, Own, Template, Text, load_templates

SECTIONS = ("news", "products", "about", "archive/2024", "archive/2025", "people", "blog", "support", "docs")
_VOCABULARY = (
    "time year people way day man thing woman life child world school state family student group country problem "
    "hand part place case week company system program question work government number night point home water room "
    "mother area money story fact month lot right study book eye job word business issue side kind head house "
    "service friend father power hour game line end member law car city community name president team minute idea "
    "kid body information back parent face others level office door health person art war history party result "
    "change morning reason research girl guy moment air teacher force education foot boy age policy music market "
    "sense service area the of and to in is that for it as was with be by on not he his but at are this have from "
    "or had an they which one you were her all she "
)
WORDS = _VOCABULARY.split()
STREAM_CHARACTERS = 400_000


@dataclass(frozen=True)
class Plan:
    """What a site is like: all that decides its bytes, but for where it is served."""

    pages: int
    kilobytes: int = 30
    hosts: int = 100
    seed: int = 1
    base: str = "127.0.0.0"
    """Hosts are the addresses that follow."""

    @property
    def addresses(self) -> list[str]:
        """The hosts."""
        first = ipaddress.ip_address(self.base)
        return [str(first + 1 + number) for number in range(self.hosts)]


class Site:
    """A site under an origin that is known by now."""

    def __init__(self, plan: Plan, scheme: str, port: int) -> None:
        self.plan = plan
        self.per_host = max(1, plan.pages // plan.hosts)
        self._origins = [f"{scheme}://{address}:{port}" for address in plan.addresses]
        links = LINKS.get(plan.kilobytes, max(5, round(2.7 * plan.kilobytes)))
        self._menu = max(2, links // 4)
        self._branch = max(2, links // 4)
        self._away = max(2, links // 10)

    @cached_property
    def _templates(self) -> list[Template]:
        return load_templates(self.plan.kilobytes)

    @cached_property
    def _stream(self) -> str:
        draw = random.Random(self.plan.seed)
        words: list[str] = []
        length = 0
        while length < STREAM_CHARACTERS:
            word = draw.choice(WORDS)
            words.append(f"{word}." if draw.random() < 0.08 else word)
            length += len(words[-1]) + 1
        return " ".join(words)

    def path(self, number: int) -> str:
        """Of a host's page."""
        if number == 0:
            return "/"
        first, second = WORDS[number % 89], WORDS[number * 7 % 97]
        return f"/{SECTIONS[number % len(SECTIONS)]}/{first}-{second}-{number}.html"

    def find(self, path: str) -> int | None:
        """The host's page with this path, if there is one."""
        if path == "/":
            return 0
        digits = path[path.rfind("-") + 1 :].removesuffix(".html")
        if not digits.isascii() or not digits.isdecimal():
            return None
        number = int(digits)
        return number if 0 < number < self.per_host and self.path(number) == path else None

    def url(self, host: int, number: int) -> str:
        """Of any page."""
        return self._origins[host] + self.path(number)

    @property
    def seeds(self) -> list[str]:
        """The front page of every host."""
        return [f"{origin}/" for origin in self._origins]

    def targets(self, host: int, number: int, count: int, draw: random.Random) -> list[tuple[int, int]]:
        """Where the links of a page lead: host and number each."""
        found = [(host, other) for other in range(min(self._menu, self.per_host))]
        first = number * self._branch + 1
        found += [(host, child) for child in range(first, min(first + self._branch, self.per_host))]
        away = [(other, 0) for other in (2 * host + 1, 2 * host + 2) if number == 0 and other < self.plan.hosts]
        while len(away) < self._away:
            other = draw.randrange(self.plan.hosts)
            away.append((other, int(draw.random() ** 2 * self.per_host)))
        found += away
        while len(found) < count:
            found.append((host, draw.randrange(self.per_host)))
        return found[:count]

    def body(self, host: int, number: int) -> bytes:
        """The page itself."""
        whole = number * self.plan.hosts + host
        draw = random.Random(self.plan.seed << 40 | whole)
        template = self._templates[draw.randrange(len(self._templates))]
        targets = self.targets(host, number, template.links, draw)
        hrefs = iter(self._hrefs(host, targets))
        pieces: list[str | None] = list(template.pieces)
        stream, last = self._stream, STREAM_CHARACTERS - 20_000
        for place, slot in template.slots:
            match slot:
                case Link():
                    pieces[place] = next(hrefs)
                case Text(length):
                    start = int(draw.random() * last)
                    pieces[place] = stream[start : start + length]
                case Own():
                    pieces[place] = self.url(host, number)
                case _:
                    start = int(draw.random() * last)
                    pieces[place] = f"Page {whole}: {stream[start : start + 40]}"
        return "".join(pieces).encode()  # type: ignore[arg-type]  # no slot is left empty

    def _hrefs(self, host: int, targets: Sequence[tuple[int, int]]) -> list[str]:
        """As authors write them: within a host mostly from the root, sometimes in full."""
        return [
            self.path(number) if other == host and (place % 4) else self.url(other, number)
            for place, (other, number) in enumerate(targets)
        ]
