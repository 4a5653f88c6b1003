"""Where takedowns are ordered: the records of a crawl, what may be ordered there, and who is told (K2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nephila.model.settings import Settings

from .record import Order, TakedownFolder, TakedownRecords
from .target import refuse_objects


def _nobody() -> None:
    """Whoever carries it out looks by himself."""


@dataclass(frozen=True, slots=True)
class Office:
    """One for each crawl that is served."""

    records: TakedownRecords
    check: Callable[[Order], None]
    """Raises `UsageError` where such an order cannot be carried out."""
    wake: Callable[[], None] = _nobody
    """Have whoever carries them out in this process look at once."""


def office_in(folder: Path, settings: Settings, wake: Callable[[], None] = _nobody) -> Office:
    """That of a crawl directory."""
    return Office(TakedownFolder(folder), partial(refuse_objects, settings), wake)
