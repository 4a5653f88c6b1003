"""From seeds to verdicts: every seed is accepted with its address or refused with a reason, none is passed over.

Lazy from end to end: a caller may admit each thousand verdicts and drop them. Whether an accepted seed is new is not
known here; the frontier says so when it is admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from nephila.model.task import Level
from nephila.urls import Address, UrlRefused

from .seed import Seed, SeedSource
from .spelling import SeedUrl, spell


@dataclass(frozen=True, slots=True)
class SeedAccepted:
    """A seed that may be admitted, at depth 0."""

    address: Address
    bare: bool
    """Given without a scheme: when https cannot be reached, `http_twin(address.url)` is to be tried (see `twin`)."""
    origin: str
    level: Level
    lists: bool = False
    """Its entries are the seeds (`Seed.lists`)."""


@dataclass(frozen=True, slots=True)
class SeedRefused:
    """A seed that cannot be crawled, and why."""

    text: str
    """As it was given, secrets and all: what is shown or logged comes from `SeedReport.examples`."""
    reason: str
    """Machine-readable: `SeedFault` or the reason of a `UrlRefused`, e.g. ``malformed``, ``too_long``."""
    detail: str
    """One sentence for people."""
    origin: str


SeedVerdict = SeedAccepted | SeedRefused


def read_seeds(sources: Iterable[SeedSource], identify: Callable[[str], Address | UrlRefused]) -> Iterator[SeedVerdict]:
    """The verdicts of all seeds of all sources, in order; `identify` is `Identifier.identify`."""
    for source in sources:
        for seed in source:
            yield _judge(seed, identify)


def _judge(seed: Seed, identify: Callable[[str], Address | UrlRefused]) -> SeedVerdict:
    spelled = spell(seed.text)
    if not isinstance(spelled, SeedUrl):
        return SeedRefused(seed.text, str(spelled.fault), spelled.detail, seed.origin)
    answer = identify(spelled.address_url)
    if isinstance(answer, UrlRefused):
        return SeedRefused(seed.text, answer.reason, answer.detail, seed.origin)
    return SeedAccepted(answer, spelled.fallback is not None, seed.origin, seed.level, seed.lists)
