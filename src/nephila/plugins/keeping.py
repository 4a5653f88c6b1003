"""One plugin under supervision: called, counted, told of, and switched off when it is no good.

Failures in a row switch a plugin off, and so do overruns in all, in a row or not: each costs somebody a deadline of
waiting, so that what a plugin can cost the crawl is bounded. A plugin that ships and reads what strangers wrote is
never switched off (`Patience.endless`): there it is the documents that are bad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.model.events import Event, EventKind

from .answers import BadAnswerError, Plain
from .calling import Caller, QuickCaller
from .offspring import OverranError, RaisedError, SwitchedOffError
from .points import Point

FAILURES = (OverranError, RaisedError, BadAnswerError, SwitchedOffError)
"""Why there is no answer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When a plugin is switched off; 0 means never."""

    failures: int = 5
    """In a row."""
    overruns: int = 20
    """In all."""

    @classmethod
    def endless(cls) -> Patience:
        """Never."""
        return cls(0, 0)


class Kept:
    """A plugin and what it has done."""

    def __init__(
        self, name: str, plugin: object, points: frozenset[Point], caller: Caller, patience: Patience, clock: Clock
    ) -> None:
        self.name = name
        self.plugin = plugin
        self.points = points
        self._caller = caller
        self._patience = patience
        self._clock = clock
        self.events: EventSink | None = None
        """Whom to tell; set when there is somebody."""
        self.is_off = False
        self.calls = self.failures = self.overruns = self.lost = 0
        self._in_a_row = 0
        self.changed: Callable[[], object] = lambda: None
        """Called when there is something new to keep books of."""

    async def ask(self, point: Point, *arguments: Any, asked: int = 0, url: str = "") -> Plain:  # noqa: ANN401 - nouns
        """Call the plugin. Raises one of `FAILURES`, counted and told, where it failed; then it has said nothing."""
        if self.is_off:
            raise SwitchedOffError
        try:
            answer = await self._caller.call(point, arguments, asked)
        except SwitchedOffError:
            raise
        except FAILURES as error:
            self.failed(error, url)
            raise
        self.calls += 1
        self._in_a_row = 0
        return answer

    def ask_now(self, point: Point) -> Plain:
        """The same for a plugin that is called on the loop, without waiting."""
        if self.is_off:
            raise SwitchedOffError
        if not isinstance(self._caller, QuickCaller):
            raise TypeError(f"{self.name} is not called on the loop")
        try:
            answer = self._caller.call_now(point, (), 0)
        except FAILURES as error:
            self.failed(error, "")
            raise
        self.calls += 1
        self._in_a_row = 0
        return answer

    @property
    def is_called_here(self) -> bool:
        """Whether `ask_now` works."""
        return isinstance(self._caller, QuickCaller)

    def failed(self, error: Exception, url: str) -> None:
        """Count a failure, tell of it, and switch off where it was one too many."""
        self.calls += 1
        self.failures += 1
        self._in_a_row += 1
        overran = isinstance(error, OverranError)
        self.overruns += overran
        self._tell(EventKind.PLUGIN_FAILED, f"{'overran' if overran else 'failed'}: {error}", url)
        if self.failures == 1:
            self._warn(f"the plugin {self.name} failed, and the crawl goes on without its answer: {error}")
        patience = self._patience
        if (patience.failures and self._in_a_row >= patience.failures) or (
            patience.overruns and self.overruns >= patience.overruns
        ):
            self._switch_off(error)
        self.changed()

    def lose(self, count: int) -> None:
        """Records or events did not reach it."""
        self.lost += count
        self.changed()

    async def close(self) -> None:
        """Let it close; what goes wrong is told as always."""
        try:
            await self._caller.close()
        except FAILURES as error:
            self.failed(error, "")

    def _switch_off(self, error: Exception) -> None:
        if self.is_off:
            return
        self.is_off = True
        self._caller.retire()
        told = f"the plugin {self.name} is switched off for this run after {self.failures} failures, the last: {error}"
        self._tell(EventKind.PLUGIN_OFF, told, "")
        self._warn(told)

    def _warn(self, sentence: str) -> None:
        if self.events is not None:
            at = self._clock.wall_ms()
            self.events.emit(Event(EventKind.WARNING, at, reason="plugin", detail=sentence))

    def _tell(self, kind: EventKind, detail: str, url: str) -> None:
        if self.events is not None:
            self.events.emit(Event(kind, self._clock.wall_ms(), url=url, reason=self.name, detail=detail))
