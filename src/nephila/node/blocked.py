"""Which domains are blocked, as the catalogue shows it: a copy of the blocklist, which is the frontier's (T7, W3).

Whoever keeps the books of a crawl brings the one in step with the other: at the first write, when the blocklist has
changed, and now and then in any case, for a domain may come into the catalogue after it was blocked. Who changes the
blocklist on one machine does so at once. A domain is shown as blocked when all of it is; a block on one of its hosts,
or on a part of its URLs, does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from nephila.interfaces.catalogue import BlockedDomains
from nephila.interfaces.clock import Clock
from nephila.model.errors import DatabaseAwayError, DatabaseRefusedError, EngineAwayError, StorageError
from nephila.model.policy import Block
from nephila.model.settings import Settings
from nephila.urls import registrable_domain

from .cataloguing import has_catalogue, open_catalogue
from .directory import CrawlDirectory

LOOK_MS = 5_000
AGAIN_MS = 60_000
"""How often the blocklist is looked at, and how often it is written again though it has not changed."""


def blocked_names(blocks: Iterable[Block]) -> tuple[list[str], list[str]]:
    """The registrable domains that are blocked as a whole, and the suffixes below which all of them are."""
    patterns = (block.pattern for block in blocks if "://" not in block.pattern)
    names = [name for name in patterns if registrable_domain(name) == name]
    return names, [name for name in names if registrable_domain(f"x.{name}") != name and not _is_address(name)]


def _is_address(name: str) -> bool:
    return name[-1:].isdigit() or ":" in name


def show_blocked(
    directory: CrawlDirectory, settings: Settings, secret: int, read: Callable[[], Sequence[Block]]
) -> None:
    """Bring the catalogue in step after an order, whoever else has it open. Blocks; a crawl makes up for what fails.

    A database that is away does not undo the order: whoever keeps the books there brings it in step later.
    """
    if not has_catalogue(directory, settings):
        return
    with suppress(StorageError, DatabaseAwayError, DatabaseRefusedError):
        catalogue = open_catalogue(directory, replace(settings, stream=Settings().stream), secret=secret)
        try:
            catalogue.show_blocked(*blocked_names(read()))
        finally:
            catalogue.close()


class BlockedInStep:
    """Keeps a catalogue in step with a blocklist; written with the books (`bookkeeper.Flushed`)."""

    def __init__(self, blocks: Callable[[], Sequence[Block]], catalogue: BlockedDomains, clock: Clock) -> None:
        self._blocks = blocks
        self._catalogue = catalogue
        self._clock = clock
        self._shown: tuple[list[str], list[str]] | None = None
        self._looked_at = self._shown_at = self._not_before = 0

    def flush(self) -> None:
        """Look, if it is time to, and write what has changed. Blocks."""
        now = self._clock.steady_ms()
        if now < self._not_before or (self._shown is not None and now - self._looked_at < LOOK_MS):
            return
        self._looked_at = now
        try:
            found = blocked_names(self._blocks())
        except EngineAwayError:  # the books of a worker do not wait for it: it is asked later
            self._not_before = now + AGAIN_MS
            return
        again = any(found) and now - self._shown_at >= AGAIN_MS
        if found != self._shown or again:
            self._catalogue.show_blocked(*found)
            self._shown, self._shown_at = found, now
