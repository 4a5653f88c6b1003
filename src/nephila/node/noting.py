"""What writes down that something is to be changed, before it is, and what came of it.

Whoever changes a crawl by command is handed one; it keeps the log of changes (`control.by_command`). The library's
callers need none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from nephila.urls import mask_secrets

NOTED = 20
"""URLs of an order that are named; the rest is counted."""


class OvertakenError(Exception):
    """What a change was made from does not hold any more."""

    def __init__(self) -> None:
        super().__init__("somebody else changed it at the same moment; it is tried again")


@dataclass(slots=True)
class Changing:
    """A change that is under way."""

    after: object
    """What came of it: as it was wanted, unless something else is put here."""


class Noting(Protocol):
    """Notes a change: on record when the block begins, and when it ends done, or failed where it raises."""

    def __call__(
        self, what: str, target: str, before: object = None, wanted: object = None
    ) -> AbstractContextManager[Changing]:
        """What makes no sense is to be found out before."""


@dataclass(frozen=True, slots=True)
class GivenSeeds:
    """Seeds that are given to a crawl, as they are to be noted."""

    noting: Noting
    named: Mapping[str, object]


def noted(urls: Sequence[str]) -> dict[str, object]:
    """URLs as they are noted."""
    return {"urls": [mask_secrets(url) for url in urls[:NOTED]], "count": len(urls)}


@contextmanager
def unnoted(what: str, target: str, before: object = None, wanted: object = None) -> Iterator[Changing]:
    """Note nothing."""
    del what, target, before
    yield Changing(wanted)
