"""Ordering a takedown: by a command, or at the desk of the control API. Judged first, then filed, then blocked.

From then on it is on record, and nothing of it is fetched any more. Whoever holds the directory carries it out: a crawl
that runs on it, at once; else the command itself, as a run that fetches nothing. Those of a fleet are ordered in the
same way (`node.fleet.purging`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nephila.frontier.embedded import LmdbFrontierView
from nephila.model.errors import CrawlDirectoryError, StorageError
from nephila.node.addressing import identifier_of
from nephila.node.cataloguing import read_catalogue
from nephila.node.clock import SystemClock
from nephila.node.desk import Desk, is_held
from nephila.node.inspect import begun
from nephila.node.noting import Noting, unnoted
from nephila.node.operating import CrawlOperator
from nephila.urls import Address, mask_secrets

from .carrying_out import Plan, plan_of
from .record import Order, Takedown, TakedownFolder, TakedownState
from .target import Identify, Target, check_order, refuse_objects

POLL_S = 0.25


def _identify_at(desk: Desk) -> Identify:
    def identify(url: str) -> Address | None:
        found = desk.identify(url)
        return found if isinstance(found, Address) else None

    return identify


def checked_order(desk: Desk, urls: Sequence[str], domains: Sequence[str], reason: str, who: str) -> Order:
    """The order as it is kept; UsageError for one that makes no sense, or cannot be carried out there."""
    order = check_order(Order(tuple(urls), tuple(domains), reason, who), _identify_at(desk))
    desk.takedowns.check(order)
    return order


def named(order: Order) -> dict[str, object]:
    """What is to be taken down and why, as the log of changes has it."""
    urls = [mask_secrets(url) for url in order.urls]
    return {"urls": urls, "domains": list(order.domains), "reason": order.reason}


async def take_down(desk: Desk, order: Order) -> Takedown:
    """File it and block it; whoever carries it out in this process takes it up at once."""
    filed = await asyncio.to_thread(desk.takedowns.records.add, order, desk.clock.wall_ms())
    for entry in Target(order, _identify_at(desk)).blocks(filed.at):
        await desk.frontier.block(entry)
    desk.takedowns.wake()
    return filed


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a takedown would take out, as the catalogue has it now."""

    captures: int
    pages: int
    files: int
    emptied: int
    """Captures of other pages that would lose their payload."""


def foreseen_of(plan: Plan) -> Foreseen:
    """The plan in figures."""
    pages = {row.fingerprint for row in (*plan.gone, *plan.outside) if row.fingerprint}
    return Foreseen(len(plan.gone), len(pages), len(plan.files), len(plan.emptied))


class Purge:
    """Takedowns by command."""

    def __init__(self, out: Path, noting: Noting = unnoted) -> None:
        self._directory, self._settings = begun(out)
        self._noting = noting
        self._folder = TakedownFolder(self._directory.takedowns)

    def checked(self, urls: Sequence[str], domains: Sequence[str], reason: str) -> Order:
        """The order as it is kept; UsageError for one that makes no sense."""
        refuse_objects(self._settings)
        return check_order(Order(tuple(urls), tuple(domains), reason, "command line"), self._identify(0))

    def foresee(self, order: Order) -> Foreseen:
        """What it would take out. Nothing is changed."""
        view = LmdbFrontierView.open(self._directory.frontier, SystemClock(), self._settings.frontier.map_bytes)
        try:
            target = Target(order, self._identify(view.secret))
        finally:
            view.close()
        with read_catalogue(self._directory, self._settings) as catalogue:
            return foreseen_of(plan_of(target, catalogue.removal().rows(), lambda _segment: True))

    def file(self, order: Order) -> Takedown:
        """Put it on record and block it."""
        with self._noting("takedown", "", wanted=named(order)) as change:
            filed = self._folder.add(order, SystemClock().wall_ms())
            operator = CrawlOperator(self._directory.root)
            operator.block_all(lambda secret: Target(order, self._identify(secret)).blocks(filed.at))
            change.after = {**named(order), "id": filed.id}
        return filed

    def pending(self) -> list[Takedown]:
        """Those that are not carried out."""
        return self._folder.pending()

    def is_running(self) -> bool:
        """Whether a crawl runs on the directory, who then carries it out."""
        return is_held(self._directory)

    def wait(self, number: str, carry_out: Callable[[], object]) -> Takedown:
        """Wait until a crawl that runs has carried it out, or do it when none runs any more."""
        while True:
            found = self._folder.get(number)
            if found is None:
                raise StorageError(f"the record of takedown {number} is gone")
            if found.state is TakedownState.DONE:
                return found
            if self.is_running():
                time.sleep(POLL_S)
                continue
            try:
                carry_out()
            except CrawlDirectoryError:
                if not self.is_running():  # else a crawl was begun at the same moment, and carries it out
                    raise

    def _identify(self, secret: int) -> Identify:
        identifier = identifier_of(self._settings, secret)

        def identify(url: str) -> Address | None:
            found = identifier.identify(url)
            return found if isinstance(found, Address) else None

        return identify


def open_purge(out: Path, noting: Noting = unnoted) -> Purge:
    """Somebody who may take down; raises `CrawlDirectoryError` where there is no crawl."""
    return Purge(out, noting)
