"""What a worker has told a crawl's shards of links, so that it need not say the same with every page.

Most links of a page are in a menu, and were told with the page before. To a URL that is known a further link can do
four things: bring it rank (R1), bring it nearer to the seeds, ask for another class, or be the first that its host has
from a domain (F5). The last three are known here, and such a link is told. What is left is rank, and that is told for
one page in `ONE_IN`, drawn by chance, and then counts `ONE_IN` times: the expected cash is the same, as it is where a
rank is raised by chance (`frontier.rank`). So most pages tell the engine of what is new, and nothing else.

What must stay true: what is new is never left out. So only what the engine has taken is remembered, by all 64 bits
that the engine knows it by; and everything is forgotten when a primary was replaced, which may have forgotten
something, when a cycle begins, and when a person lifts what kept URLs out: those were refused. Whatever else an
engine may lose is told again in time, one page in `ONE_IN`.

Memory is bounded: a URL has one place in a table of fixed size, and pushes out who had it before. Who was pushed out is
told once more, and that is all that it costs.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xxhash import xxh32_intdigest

from nephila.model.task import Candidate

from .shards import domain_of

DOUBLINGS = 3
"""`lua/policy.lua` counts the links of a page by as much."""
ONE_IN = 1 << DOUBLINGS
"""Measured on one shard with 33 known links a page of 60, eight pages settled together (callgrind): 3.83 million
instructions of the server a page where all are told, 3.60 for one page in two, 3.24 in four and 3.04 in eight."""

_PLACES = 21
"""Bits: two million URLs, sixteen megabytes where all places are taken."""
_MASK = (1 << _PLACES) - 1
_DEPTH = 31
"""What an entry has of the depth that was told, and 0 for an empty place: the rest of its place tells the URL."""
_TOLD_ABOVE = 15
"""From this depth on every link is told: how deep it is the engine has to look up (`lua/known.lua`)."""
_HOSTS = 50_000
"""Hosts of which it is remembered whose domains have spoken for them; some six megabytes."""


class Era(NamedTuple):
    """What was told in one must not be taken for told in the next."""

    cycle: int
    """Its end is taken back by a link."""
    moves: int
    """How often it was noticed that another server answers for some shards: it may lack something."""
    lifted: int
    """How often a block, or a policy of depth, was taken back: what it kept out was never taken. Known within a second
    (in a large fleet, a minute)."""


class Sifted(NamedTuple):
    """The links of a page, by what is told of them."""

    fresh: Sequence[Candidate]
    """What has to be told."""
    again: Sequence[Candidate]
    """What was told before, and brings rank: it counts `ONE_IN` times."""
    left_out: int


class Told:
    """The memory of one worker."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}
        """Of hosts: the bits of domains that have spoken for them."""
        self._era: Era | None = None
        self.forget()

    def sift(self, url: str, visits: int, host: str, bit: int, links: Iterable[Candidate]) -> Sifted:
        """The links of a page of a host; `bit` stands for its domain among those that link to others."""
        names, heard, seen = self._names, self._heard, dict[str, bool]()
        fresh, known = list[Candidate](), list[Candidate]()
        for link in links:
            (_, target, _, fingerprint), depth, level, *_ = link
            name = int.from_bytes(fingerprint[:8], "big")
            entry = names[name & _MASK]
            if level is None and (entry ^ name) >> _PLACES == 0 and 0 < entry & _DEPTH <= depth + 1:
                spoken = seen.get(target)
                if spoken is None:
                    is_of_us = target == host or domain_of(target) == domain_of(host)
                    spoken = seen[target] = is_of_us or bool(heard.get(target, 0) >> bit & 1)
                if spoken:
                    known.append(link)
                    continue
            fresh.append(link)
        if known and xxh32_intdigest(url.encode(), visits & 0xFFFF_FFFF) % ONE_IN == 0:
            return Sifted(fresh, known, 0)
        return Sifted(fresh, (), len(known))

    def note(self, host: str, bit: int, links: Iterable[Candidate]) -> None:
        """The engine has taken these, from a page of a host, all of them in this era."""
        names, heard = self._names, self._heard
        if len(heard) > _HOSTS:
            heard.clear()
        for (_, target, _, fingerprint), depth, *_ in links:
            if depth < _TOLD_ABOVE:
                name = int.from_bytes(fingerprint[:8], "big")
                names[name & _MASK] = name >> _PLACES << _PLACES | depth + 1
            if target != host:
                heard[target] = heard.get(target, 0) | 1 << bit

    def enter(self, era: Era) -> None:
        """Forget what was told in another era."""
        if self._era not in {None, era}:
            self.forget()
        self._era = era

    @property
    def era(self) -> Era | None:
        """The present one."""
        return self._era

    def forget(self) -> None:
        """Tell everything anew."""
        self._names = memoryview(mmap.mmap(-1, 8 << _PLACES)).cast("Q")  # takes memory as it is written to
        self._heard.clear()
