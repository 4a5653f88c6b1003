"""What `fleet status` says of workers and of what there is to do."""

from __future__ import annotations

from dataclasses import replace

from nephila.cli.fleet import cycle_lines, drain_lines, fleet_lines, forget_lines
from nephila.cli.looking import labelled
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.settings import LimitSettings
from nephila.node.fleet.cycles import CycleBegun, is_over
from nephila.node.fleet.registry import Figures, Left, Member, Roll, Standing

KNOWN = FrontierSnapshot(
    now=0,
    cycle=1,
    queued={"high": 1},
    delayed={"retry": 9},
    states={"pending": 276, "completed": 0},
    hosts=40,
    hosts_ready=0,
    hosts_waiting=8,
    hosts_leased=1,
    domains=29,
    pages=215,
    pages_in_cycle=215,
    next_in_ms=None,
)
AWAY = "the archive's store does not answer"


def standing(name: str, silent_ms: int, **figures: object) -> Standing:
    return Standing(Member(name, name), silent_ms, Figures(pages=1234, pages_per_s=63.3, **figures))  # type: ignore[arg-type]


def test_fleet_status_tells_what_each_worker_does_and_what_is_known_of_the_silent() -> None:
    """N3, C4: answers that wait are not counted as pages; who is silent has no rate, and no word on engines."""
    roll = Roll(
        (
            standing("one", 100, in_flight=2, spool_segments=1, waits_for=AWAY),
            standing("two", 100_000, in_flight=2, spool_segments=2, waits_for=AWAY),
        ),
        (),
    )
    said = list(labelled(fleet_lines("web", roll, KNOWN, 30_000), 120))
    assert said == [
        "crawl    web",
        "pages    215 stored; 276 answers not yet uploaded",
        "cycle    1",
        "queue    1 URL, 9 more wait for a time",
        "hosts    40: 0 ready, 1 at work",
        "workers  2",
        f"  one    at work, 1,234 pages (63.3/s), 1 file waits for its upload, {AWAY}",
        "  two    silent for 1:40, 1,234 pages, 2 files wait for their upload",
    ]
    final = replace(KNOWN, states={"pending": 0})
    assert dict(fleet_lines("web", Roll((), ()), final, 1))["pages"] == "215 stored"


def test_fleet_status_tells_the_cycle() -> None:
    """F2: which one, how far, and that what ended before is not all queued yet."""
    swept = replace(KNOWN, cycle=2, pages_in_cycle=1)
    nobody = Roll((), ())
    assert dict(fleet_lines("web", nobody, swept, 1))["cycle"] == "2: 1 page so far"
    told = dict(fleet_lines("web", nobody, replace(swept, sweeping=True), 1))["cycle"]
    assert told == "2: 1 page so far; what ended before is being queued, as workers claim"


def test_fleet_drain_tells_of_a_worker_that_is_not_there_to_hear_it() -> None:
    """N3, C4: whoever waits for it to leave would wait for ever."""
    assert list(drain_lines(standing("two", 1_000), 30_000)) == ["two leaves when it has ended what it works on."]
    silent, hint = drain_lines(standing("two", 7_384_000), 30_000)
    assert silent == "two was last heard of 2:03:04 ago: it leaves when it is back."
    assert hint.endswith("nephila fleet forget two")


def test_fleet_forget_tells_what_is_left_of_a_worker_and_status_that_it_is_given_up() -> None:
    """N3, C4: whether it is off the register, and that somebody must run where something is left."""
    gone = standing("two", 7_384_000)
    assert list(forget_lines(gone, Left.NOTHING)) == ["two is off the register: no page waits for what it had fetched."]
    assert list(forget_lines(gone, Left.UPLOADED))[1:] == [
        "Another worker looks whether all that it had uploaded is listed."
    ]
    assert "It is on the register until" in " ".join(forget_lines(gone, Left.SPOOLED))
    said = dict(fleet_lines("web", Roll((replace(gone, is_given_up=True),), ()), KNOWN, 30_000))
    assert said["  two"].startswith("given up, last heard of 2:03:04 ago, ")


def test_fleet_cycle_tells_whether_it_was_begun_and_who_does_it() -> None:
    """F2, N6: by this command or before; without workers nothing comes of it; other regions are not meant."""
    known, nobody = replace(KNOWN, cycle=2, sweeping=True), Roll((), ())
    begun = list(cycle_lines(CycleBegun("web", True, known, nobody, ("", "eu"))))
    assert begun == [
        "Cycle 2 of web has begun: everything that has ended is fetched once more.",
        "No worker is there to do it: start some.",
        "Other regions have cycles of their own: no --group, --group eu.",
    ]
    workers = Roll((standing("one", 100),), ())
    (again,) = cycle_lines(CycleBegun("web", False, known, workers))
    assert again.startswith("Cycle 2 of web was begun before and goes on (what ended before is still being queued)")
    (again,) = cycle_lines(CycleBegun("web", False, replace(known, sweeping=False), workers))
    assert "(10 URLs are queued); --unfinished begins another" in again


def test_a_cycle_is_over_when_nothing_of_it_can_run_for_a_while() -> None:
    """F2: as workers judge it; those that never end have no word on it."""
    idle = replace(KNOWN, hosts_leased=0)
    assert is_over(idle, LimitSettings())
    assert is_over(replace(idle, next_in_ms=121_000), LimitSettings(max_wait_s=float("inf")))
    assert not is_over(replace(idle, next_in_ms=119_000), LimitSettings(max_wait_s=float("inf")))
    assert not is_over(replace(idle, next_in_ms=0), LimitSettings())
    assert not is_over(KNOWN, LimitSettings())
