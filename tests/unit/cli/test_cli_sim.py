"""`nephila sim`: its words and exit codes, over simulations of no cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.cli.backend import Backend
from nephila.cli.main import run
from nephila.testing.sim import campaign
from nephila.testing.sim.campaign import Campaign
from nephila.testing.sim.runner import Verdict


def verdict(seed: int, *found: str) -> Verdict:
    return Verdict(seed, found, {"killed": 2}, 10, 5, 60.0, 0.1, f"{seed:064x}")


@pytest.fixture
def lived(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that were lived through; 13 fails, 99 is interrupted."""
    seeds: list[int] = []

    def live(seed: int) -> Verdict:
        seeds.append(seed)
        if seed == 99:
            raise KeyboardInterrupt
        return verdict(seed, "overlap: a.test/x") if seed == 13 else verdict(seed)

    monkeypatch.setattr(campaign, "run_seed", live)
    return seeds


def test_it_goes_on_where_it_was(tmp_path: Path, lived: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """Q4: the state file adds up, whatever order the seeds were lived through in."""
    state = tmp_path / "state.json"
    assert run(["sim", "--runs", "3", "--state", str(state)]) == 0
    assert run(["sim", "--runs", "2", "--from", "2", "--state", str(state)]) == 0
    assert run(["sim", "--runs", "2", "--state", str(state), "--json"]) == 0
    assert lived == [0, 1, 2, 3, 4, 5, 6]
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["runs"], told["seeds"], told["done"], told["happened"]) == (2, 7, [[0, 7]], {"killed": 14})
    assert json.loads(state.read_text())["requests"] == 70


def test_a_failed_seed_is_told_with_its_replay_and_comes_again(
    tmp_path: Path, lived: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Q4: exit 1, what broke, the one command; it is not counted, and comes first the next time."""
    state = tmp_path / "state.json"
    assert run(["sim", "--from", "12", "--runs", "3", "--state", str(state)]) == 1
    captured = capsys.readouterr()
    assert "overlap: a.test/x" in captured.err
    assert "sim --seed 13" in captured.out
    assert "3 seeds lived through, 1 failed. In all 2 passed" in captured.out
    assert run(["sim", "--runs", "1", "--state", str(state)]) == 1
    assert lived[-1] == 13


def test_one_seed_is_told_of_in_full(lived: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """Q4: that is how it is replayed."""
    assert run(["sim", "--seed", "7"]) == 0
    assert lived == [7]
    assert "seed 7: 5 pages, 10 requests" in capsys.readouterr().out


def test_an_interrupt_keeps_what_was_lived_through(
    tmp_path: Path, lived: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Q4: exit 130, and the next one goes on."""
    state = tmp_path / "state.json"
    assert run(["sim", "--from", "97", "--state", str(state)]) == 130
    assert json.loads(state.read_text())["done"] == [[97, 99]]
    assert "2 seeds lived through" in capsys.readouterr().out
    assert lived == [97, 98, 99]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seed", "1", "--runs", "2"], "--seed is for one seed alone"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--runs", "0"], "Invalid value for '--runs'"),
        (["--runs", "many"], "Invalid value for '--runs'"),
        (["--state", "{bad}"], "is no state file of nephila sim"),
        (["--state", "{missing}/state.json"], "cannot be written"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    tmp_path: Path, lived: list[int], arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """C4: one sentence and an exit code; nothing is lived through."""
    (tmp_path / "bad.json").write_text('{"format": "something else"}', encoding="utf-8")
    places = {"bad": str(tmp_path / "bad.json"), "missing": str(tmp_path / "nowhere")}
    assert run(["sim", *(one.format(**places) for one in arguments)]) != 0
    assert sentence in capsys.readouterr().err
    assert lived == []


def test_the_backend_can_be_another(capsys: pytest.CaptureFixture[str]) -> None:
    """C4: the command knows the simulation through the backend alone."""

    def simulated(_state: Path | None, runs: int, start: int, tell: Callable[[Verdict, Campaign], None]) -> Campaign:
        whole = Campaign()
        for seed in range(start, start + runs):
            whole.add(verdict(seed))
            tell(verdict(seed), whole)
        return whole

    assert run(["sim", "--runs", "4"], Backend(run_simulation=simulated)) == 0
    assert "In all 4 passed: 40 requests, 20 pages" in capsys.readouterr().out


def test_ranges_of_seeds_grow_together() -> None:
    """Q4: done seeds are kept as ranges; the next ones are those between and behind them."""
    whole = Campaign()
    for seed in (5, 1, 2, 7, 6):
        whole.add(verdict(seed))
    assert whole.done == [(1, 3), (5, 8)]
    coming = whole.seeds(0)
    assert [next(coming) for _ in range(4)] == [0, 3, 4, 8]
    assert whole.happened == Counter({"killed": 10})
