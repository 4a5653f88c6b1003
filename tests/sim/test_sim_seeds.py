"""Hundreds of seeds of the simulation, as `nephila sim` lives through them: none may fail, all faults must happen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from nephila.testing.sim.happenings import Happening

FIRST, SEEDS, PROCESSES = 0, 500, 2
AT_LEAST = 3
"""Times that every kind of fault must have happened over all seeds."""
AGAIN = range(2000, 2012)


def simulate(*arguments: str, hash_seed: str = "random") -> subprocess.Popen[str]:
    """`nephila sim` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "nephila", "sim", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )


@pytest.fixture(scope="module")
def campaigns() -> list[tuple[int, dict[str, Any], str]]:
    """Exit code, figures and complaints of processes that share the seeds."""
    share = SEEDS // PROCESSES
    running = [
        simulate("--from", str(FIRST + number * share), "--runs", str(share), "--json") for number in range(PROCESSES)
    ]
    ended = []
    for one in running:
        out, err = one.communicate()
        ended.append((one.returncode, json.loads(out), err))
    return ended


def test_no_seed_fails(campaigns: list[tuple[int, dict[str, Any], str]], say: Callable[[str], None]) -> None:
    """Q4, F3, F9, F10, P1, P2, P3, P5, W2, W3: whatever fails, every URL, byte and pause is accounted for."""
    count = sum(figures["seeds"] for _, figures, _ in campaigns)
    broken = [one for _, figures, _ in campaigns for one in figures["broken"]]
    say(
        f"{count} seeds passed, {sum(figures['requests'] for _, figures, _ in campaigns):,} requests, "
        f"{sum(figures['cpu_s'] for _, figures, _ in campaigns):.0f} s of CPU"
    )
    assert broken == [], "\n".join(complaints for _, _, complaints in campaigns)
    assert count == SEEDS
    assert [code for code, _, _ in campaigns] == [0] * PROCESSES


def test_every_kind_of_fault_really_happens(
    campaigns: list[tuple[int, dict[str, Any], str]], say: Callable[[str], None]
) -> None:
    """Q4: what was planned and never happened would prove nothing."""
    happened: Counter[str] = Counter()
    for _, figures, _ in campaigns:
        happened.update(figures["happened"])
    say(", ".join(f"{kind}: {count}" for kind, count in happened.most_common()))
    assert {kind.value: happened[kind] for kind in Happening if happened[kind] < AT_LEAST} == {}


def test_the_same_seed_does_the_same_thing_in_any_process() -> None:
    """Q4: what was asked of whom, in which order, at which time; whatever Python's hashes are."""
    runs = [
        simulate("--from", str(AGAIN.start), "--runs", str(len(AGAIN)), "-v", hash_seed=hash_seed)
        for hash_seed in ("1", "2")
    ]
    told = [[line for line in one.communicate()[0].splitlines() if line.startswith("seed ")] for one in runs]
    digests = [[line.rpartition("digest ")[2] for line in lines] for lines in told]
    assert len(digests[0]) == len(AGAIN)
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == len(AGAIN)
