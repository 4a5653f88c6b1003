"""Seeds of the simulation that found something once, each under the name of what it found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nephila.testing.sim import run_seed

FOUND = {
    "an answer that came while the process was stopped was thrown away": 2908,
    "the same of a worker, whose lease was returned meanwhile": 10124,
    "contents trusted by a run that had not made durable what the one before had left": 2462,
    "a revisit that outlived its original": 323,
    "a sync that was late by as long as the process was stopped": 2002,
    "an answer that a full disk did not take, having come while the process was stopped": 10346,
    "servers that never heard of the end of a crawl whose disk had failed": 12230,
    "a wait that came below the longest one while the crawl ended": 11117,
    "a crawl that ended in the turn in which it was killed": 20067,
    "a file that could not be closed after a power loss": 210,
    "bytes that a failed sync was said to have taken, though they were durable before the file was cut": 52138,
    "what a dead worker had written, which its supervisor could not make durable on a full disk": 53187,
    "an answer that ended a moment after its connection was given up, with a Retry-After that nobody read": 54444,
    "a crawl whose last word came as much later as its books wait between two syncs": 75934,
    "what a worker did not keep whose disk had failed, and which an index held up until it was killed": 602677,
    "what dead workers had written, which stalled indexes kept their supervisor from until power was lost": 513197,
    "a lease returned by its own holder, who was stopped while it looked for expired ones": 61262,
}


@pytest.mark.parametrize("found", FOUND)
def test_what_a_seed_has_found_stays_mended(found: str) -> None:
    """Q4, F3, F9, D2, W2: it passes now."""
    assert run_seed(FOUND[found]).found == ()


def test_what_was_lived_through_by_hand_adds_up() -> None:
    """Q4: every seed counts once, and not where it failed."""
    kept = tomllib.loads((Path(__file__).parents[1] / "corpus" / "SEEDS.toml").read_text(encoding="utf-8"))
    passed: set[int] = set()
    for stretch in kept["stretch"]:
        lived, failed = set(range(stretch["first"], stretch["end"])), set(stretch["failed"])
        assert failed <= lived
        assert stretch["passed"] == len(lived - failed)
        passed |= lived - failed
    assert kept["seeds"] == len(passed)
