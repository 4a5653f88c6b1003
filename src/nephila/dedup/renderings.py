"""Which hosts need a browser for their pages, kept in memory or in the environment of what was learned (J1)."""

from __future__ import annotations

from nephila.model.rendering import SiteRendering

from .host_notes import LmdbHostNotes, MemoryHostNotes
from .learned import LearnedEnvironment
from .travelling import TravellingNotes
from .untold import Untold

_NOTHING = SiteRendering()


class MemoryRenderings(MemoryHostNotes[SiteRendering]):
    """In memory, for simulations and tests."""


class LmdbRenderings(LmdbHostNotes[SiteRendering]):
    """On disk. Does not close the environment: others may use it too."""

    def __init__(self, environment: LearnedEnvironment) -> None:
        super().__init__(environment, "renderings", SiteRendering)

    def travelling(self) -> TravellingNotes[SiteRendering]:
        """Let other workers know, of the hosts whose pages were shown, or were to be."""
        self.untold = Untold(lambda known: known != _NOTHING)
        return TravellingNotes("b", SiteRendering, self, self.untold)
