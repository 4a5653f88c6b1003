"""The hosts of a simulated web: names, addresses, manners, sizes.

A host is made from its number when it is first asked for; from its name the number can be read again, so there is no
table of names. Only the sizes are laid out up front, as plain numbers, because they have to add up.

What must stay true: host 0 is open to everybody; every host is linked from an open host's home page (`guests`), so
that a closed host never hides an open one; a host whose door is not open has an address of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from .draw import Salt, draw, fraction
from .spec import RobotsKind, WebSpec

_LABELS = ("", "www", "blog", "shop", "docs", "news", "wiki")
_NAME = re.compile(r"(?:([a-z0-9]+)\.)?site([0-9]+)\.test")
_HOSTS_PER_SHARED_SERVER = 6
_GUESTS_PER_HOST = 4
_FREELY_LENT = frozenset({RobotsKind.OPEN, RobotsKind.PARTS})
"""Kinds whose rules another host's robots.txt may redirect to."""
_CLOSED_KINDS = frozenset({RobotsKind.BANNED, RobotsKind.BROKEN, RobotsKind.BUSY})


class Door(StrEnum):
    """What happens to who wants to connect."""

    OPEN = "open"
    REFUSING = "refusing"
    STALLING = "stalling"
    NAMELESS = "nameless"


@dataclass(frozen=True, slots=True)
class Host:
    """One host."""

    number: int
    name: str
    domain: str
    """The registrable domain."""
    address: str
    """Empty when nameless."""
    door: Door
    robots: RobotsKind
    robots_source: int
    """Number of the host whose robots.txt text counts for this one: itself, unless MOVED."""
    pages: int
    articles: int
    """The first so many pages are articles, the others have roles."""
    crawl_delay_ms: int
    latency_ms: float
    slow: bool
    closing: bool

    @property
    def open(self) -> bool:
        """Whether our crawler may expect to get its pages without waiting for recovery."""
        return self.door is Door.OPEN and self.robots not in _CLOSED_KINDS


class HostBook:
    """All hosts of a spec."""

    def __init__(self, spec: WebSpec) -> None:
        self.spec = spec
        self._sizes = _lay_out_sizes(spec)
        self._made: dict[int, Host] = {}
        self._by_name: dict[str, Host] = {}
        self._special_share = sum(share for share, roles in spec.page_mix.shares() if roles)

    def __len__(self) -> int:
        return self.spec.hosts

    def __iter__(self) -> Iterator[Host]:
        return (self[number] for number in range(self.spec.hosts))

    def __getitem__(self, number: int) -> Host:
        host = self._made.get(number)
        if host is None:
            host = self._made[number] = self._make(number)
        return host

    def find(self, name: str) -> Host | None:
        """The host of that name, upper or lower case, with or without the root's dot."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        name = name.lower().removesuffix(".")
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        label = match[1] or ""
        distance = _LABELS.index(label) if label in _LABELS else int(label[1:]) if label[1:].isdigit() else -1
        number = int(match[2]) + distance
        if distance < 0 or number >= self.spec.hosts:
            return None
        host = self[number]
        if host.name != name:
            return None
        self._by_name[name] = host
        return host

    def guests(self, host: Host) -> list[Host]:
        """The hosts that this one's home page introduces: its children in a tree, and those of closed children."""
        found: list[Host] = []
        first = host.number * _GUESTS_PER_HOST + 1
        for number in range(first, min(first + _GUESTS_PER_HOST, self.spec.hosts)):
            guest = self[number]
            found.append(guest)
            if not guest.open:
                found += self.guests(guest)
        return found

    def sisters(self, host: Host) -> list[Host]:
        """The other hosts of the same registrable domain: they stand side by side."""
        first = host.number
        while self._is_subhost(first):
            first -= 1
        found = [self[first]]
        while found[-1].number + 1 < self.spec.hosts and self._is_subhost(found[-1].number + 1):
            found.append(self[found[-1].number + 1])
        return [sister for sister in found if sister is not host]

    def _make(self, number: int) -> Host:
        spec = self.spec
        manner = draw(spec.seed, Salt.MANNER, number)
        name, domain = self._name(number)
        door = self._door(number)
        kind = self._robots_kind(number)
        pages = self._sizes[number]
        dither = fraction(draw(spec.seed, Salt.SIZE, number, 1))
        slow = number > 0 and self._spread(number, 0.7548776662466927) < spec.host_mix.slow
        latency = spec.timing.slow_ms if slow else spec.timing.latency_ms * (0.5 + 1.5 * fraction(manner))
        return Host(
            number=number,
            name=name,
            domain=domain,
            address=self._address(number, door),
            door=door,
            robots=kind,
            robots_source=self._lender(number) if kind is RobotsKind.MOVED else number,
            pages=pages,
            articles=max(1, pages - int(pages * self._special_share + dither)),
            crawl_delay_ms=round(1000 * spec.timing.crawl_delay_s / (1, 2, 4)[manner % 3])
            if kind is RobotsKind.DELAY
            else 0,
            latency_ms=latency,
            slow=slow,
            closing=self._spread(number, 0.5698402909980532) < spec.host_mix.closing,
        )

    def _spread(self, number: int, step: float) -> float:
        """A place in [0, 1) that goes round evenly from host to host: even small shares are met in a small web."""
        return (number * step + fraction(draw(self.spec.seed, Salt.MANNER, round(step * 1000)))) % 1.0

    def _is_subhost(self, number: int) -> bool:
        return number > 0 and fraction(draw(self.spec.seed, Salt.SUBHOST, number)) < self.spec.host_mix.subhosts

    def _name(self, number: int) -> tuple[str, str]:
        owner = number
        while self._is_subhost(owner):
            owner -= 1
        domain, distance = f"site{owner}.test", number - owner
        if distance == 0:
            return domain, domain
        label = _LABELS[distance] if distance < len(_LABELS) else f"s{distance}"
        return f"{label}.{domain}", domain

    def _door(self, number: int) -> Door:
        mix = self.spec.host_mix
        chance = self._spread(number, 0.6180339887498949)
        if number > 0:
            for door, share in (
                (Door.REFUSING, mix.refusing),
                (Door.STALLING, mix.stalling),
                (Door.NAMELESS, mix.nameless),
            ):
                if chance < share:
                    return door
                chance -= share
        return Door.OPEN

    def _robots_kind(self, number: int) -> RobotsKind:
        kinds = self.spec.host_mix.robots
        kind = kinds[(number + self.spec.seed) % len(kinds)]
        return RobotsKind.OPEN if number == 0 and kind not in _FREELY_LENT else kind

    def _lender(self, number: int) -> int:
        while number > 0 and (self._robots_kind(number) not in _FREELY_LENT or self._door(number) is not Door.OPEN):
            number -= 1
        return number

    def _address(self, number: int, door: Door) -> str:
        mix, hosts = self.spec.host_mix, self.spec.hosts
        if door is Door.NAMELESS:
            return ""
        if door is not Door.OPEN:
            return _loopback(200, number)
        if fraction(draw(self.spec.seed, Salt.ADDRESS, number)) < mix.shared_addresses:
            servers = max(1, round(hosts * mix.shared_addresses / _HOSTS_PER_SHARED_SERVER))
            if mix.max_addresses:
                servers = min(servers, max(1, mix.max_addresses // 2))
            return _loopback(100, draw(self.spec.seed, Salt.ADDRESS, number, 1) % servers)
        return _loopback(1, number % (mix.max_addresses - mix.max_addresses // 2) if mix.max_addresses else number)


def _loopback(network: int, number: int) -> str:
    """The number-th address from 127.network.1.1 on; no byte is 0 or 255."""
    high, rest = divmod(number, 250 * 250)
    return f"127.{network + high}.{rest // 250 + 1}.{rest % 250 + 1}"


def _lay_out_sizes(spec: WebSpec) -> list[int]:
    """Pages for each host: at least one, `spec.pages` in all, spread by the spec's skew."""
    skew = spec.host_mix.skew
    weights = [
        1 - skew - skew * math.log(1 - fraction(draw(spec.seed, Salt.SIZE, number))) for number in range(spec.hosts)
    ]
    spare, total, given, so_far = spec.pages - spec.hosts, sum(weights), 0, 0.0
    sizes = []
    for weight in weights:
        so_far += weight
        upto = round(spare * so_far / total)
        sizes.append(1 + upto - given)
        given = upto
    return sizes
