"""How hosts answer for missing pages, kept in memory or in the environment of what was learned (T4)."""

from __future__ import annotations

from nephila.model.missing import Absence, HostAbsence

from .host_notes import LmdbHostNotes, MemoryHostNotes
from .learned import LearnedEnvironment
from .travelling import TravellingNotes
from .untold import Untold


class MemoryAbsences(MemoryHostNotes[HostAbsence]):
    """In memory, for simulations and tests."""


class LmdbAbsences(LmdbHostNotes[HostAbsence]):
    """On disk. Does not close the environment: others may use it too."""

    def __init__(self, environment: LearnedEnvironment) -> None:
        super().__init__(environment, "absences", HostAbsence)

    def travelling(self) -> TravellingNotes[HostAbsence]:
        """Let other workers know, of the hosts that were probed: of the others there is nothing to tell."""
        self.untold = Untold(lambda known: known.absence is not Absence.UNKNOWN)
        return TravellingNotes("m", HostAbsence, self, self.untold)
