"""Tells of alerts that begin and end: on the console, and to whoever has a webhook (O2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from nephila.fetch import AddressGuard
from nephila.interfaces.clock import Clock
from nephila.model.settings import Settings

from .alarms import judge
from .logbook import Alert, Figures

if TYPE_CHECKING:
    from .webhook import Webhook


class Ringing:
    """Judges figures, and tells of what has begun and what has ended. `warn` tells the crawl's listeners."""

    def __init__(self, settings: Settings, crawl: str, clock: Clock, warn: Callable[[str, str], None]) -> None:
        """`crawl` is what the crawl is called in what is posted."""
        self._settings = settings
        self._crawl = crawl
        self._clock = clock
        self._warn = warn
        self._webhook = _webhook(settings)
        self._silent = False

    async def ring(self, figures: Figures) -> None:
        """Judge: `figures.present.alerts` are those of before, and are replaced."""
        before = {alert.name: alert for alert in figures.present.alerts}
        figures.present.alerts = judge(figures, self._settings.alerts, figures.present.at)
        now = {alert.name: alert for alert in figures.present.alerts}
        begun, ended = _without(now, before), _without(before, now)
        if self._settings.alerts.tell:
            for alert in begun:
                self._warn("alert", f"{alert.name}: {alert.summary}")
            for alert in ended:
                self._warn("alert_over", f"{alert.name} is over")
        if self._webhook is not None and (begun or ended):
            await self._post(self._webhook, begun, ended)

    async def _post(self, webhook: Webhook, begun: list[Alert], ended: list[Alert]) -> None:
        document = {"crawl": self._crawl, "at": self._clock.wall_ms(), "firing": begun, "resolved": ended}
        trouble = await asyncio.to_thread(partial(webhook.post, document))
        if trouble and not self._silent:
            self._warn("webhook", f"an alert could not be posted: {trouble}")
        self._silent = bool(trouble)


def _without(some: Mapping[str, Alert], others: Mapping[str, Alert]) -> list[Alert]:
    return [alert for name, alert in some.items() if name not in others]


def _webhook(settings: Settings) -> Webhook | None:
    """Who is told of alerts, if anybody is."""
    if not settings.alerts.webhook:
        return None
    from .webhook import Webhook  # noqa: PLC0415 - it imports a client that hardly any crawl needs

    return Webhook(settings.alerts.webhook, AddressGuard(settings.fetch.allow_addresses))
