"""How hosts answer for missing pages, kept in memory or in the environment of what was learned (T4)."""

from __future__ import annotations

from nephila.model.missing import HostAbsence

from .host_notes import LmdbHostNotes, MemoryHostNotes
from .learned import LearnedEnvironment


class MemoryAbsences(MemoryHostNotes[HostAbsence]):
    """In memory, for simulations and tests."""


class LmdbAbsences(LmdbHostNotes[HostAbsence]):
    """On disk. Does not close the environment: others may use it too."""

    def __init__(self, environment: LearnedEnvironment) -> None:
        super().__init__(environment, "absences", HostAbsence)
