"""What a settled answer teaches about its site: aliases (D4, T3), and how it answers for missing pages (T4)."""

from __future__ import annotations

from nephila.interfaces.aliases import Aliases
from nephila.interfaces.clock import Clock
from nephila.model.alias import Sighting
from nephila.model.exchange import Fetched
from nephila.model.outcome import Done, Outcome
from nephila.model.task import Lease, PageTask
from nephila.urls import resolve

from .judgement import Judgement
from .notfound import PROBE, MissingPages


class Learning:
    """Hands on what was found. Either part may be missing, where it is switched off."""

    def __init__(self, aliases: Aliases | None, missing: MissingPages | None, clock: Clock) -> None:
        self._aliases = aliases
        self._missing = missing
        self._clock = clock

    def learn(self, lease: Lease, task: PageTask, answer: Fetched, judged: Judgement, outcome: Outcome) -> None:
        """An answer was settled: only what is final and whole teaches anything."""
        cut = answer.truncated is not None and not answer.unwanted
        if not isinstance(outcome, Done) or judged.not_modified or cut:
            return
        location = judged.location
        if location and resolve(None, location) != location:
            location = ""  # it leads nowhere, and is kept as the server wrote it
        if self._missing is not None:
            self._missing.learn(task, answer, judged, location)
        if self._aliases is not None and judged.error != PROBE:
            page = judged.page if outcome.page else None
            at = self._clock.wall_ms()
            self._aliases.observe(Sighting(task.url, lease.host, lease.domain, at, page, location))
