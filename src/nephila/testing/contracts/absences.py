"""What every `interfaces.missing.Absences` keeps.

A check takes `open_absences`, which opens them on storage of their own; calling it again opens the same storage anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nephila.interfaces.missing import Absences
from nephila.model.missing import Absence, HostAbsence

OpenAbsences = Callable[[], Absences]
SOFT = HostAbsence(Absence.SOFT, 1_767_225_600_000, b"text....", b"shape...", "", b"home....", b"homeshap")


def check_nothing_is_known_of_a_new_host(open_absences: OpenAbsences) -> None:
    """T4: not even that nothing is known."""
    absences = open_absences()
    absences.keep("a.example", SOFT)
    assert absences.of("b.example") is None


def check_what_was_kept_is_known_at_once(open_absences: OpenAbsences) -> None:
    """T4: the last word counts, written or not."""
    absences = open_absences()
    assert absences.of("a.example") is None
    absences.keep("a.example", HostAbsence(home=b"home...."))
    absences.keep("a.example", SOFT)
    assert absences.of("a.example") == SOFT
    absences.flush()
    assert absences.of("a.example") == SOFT
    absences.keep("a.example", replace(SOFT, absence=Absence.HONEST))
    found = absences.of("a.example")
    assert found is not None
    assert found.absence is Absence.HONEST


def check_what_was_flushed_outlives_the_process(open_absences: OpenAbsences) -> None:
    """T4, F10: a host is not probed again after a restart."""
    first = open_absences()
    moved = HostAbsence(Absence.MOVED, 5, location="https://a.example/start")
    first.keep("a.example", SOFT)
    first.keep("b.example", moved)
    first.close()
    again = open_absences()
    assert (again.of("a.example"), again.of("b.example")) == (SOFT, moved)


CHECKS: list[Callable[[OpenAbsences], None]] = [
    check_nothing_is_known_of_a_new_host,
    check_what_was_kept_is_known_at_once,
]
DURABLE_CHECKS: list[Callable[[OpenAbsences], None]] = [check_what_was_flushed_outlives_the_process]
