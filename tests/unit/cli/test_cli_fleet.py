"""What `fleet status` says of workers and of what there is to do."""

from __future__ import annotations

from dataclasses import replace

from nephila.cli.fleet import fleet_lines
from nephila.cli.looking import labelled
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.node.fleet.registry import Figures, Member, Roll, Standing

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
        "queue    1 URL, 9 more wait for a time",
        "hosts    40: 0 ready, 1 at work",
        "workers  2",
        f"  one    at work, 1,234 pages (63.3/s), 1 file waits for its upload, {AWAY}",
        "  two    silent for 1:40, 1,234 pages, 2 files wait for their upload",
    ]
    final = replace(KNOWN, states={"pending": 0})
    assert dict(fleet_lines("web", Roll((), ()), final, 1))["pages"] == "215 stored"
