"""`nephila test`: every step runs, whatever became of the one before."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import run_tests
from run_tests import Step

Run = Callable[..., tuple[int, str]]


def step(name: str, exit_code: int) -> Step:
    return Step(name, (sys.executable, "-c", f"raise SystemExit({exit_code})"))


@pytest.fixture
def run_with(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command with other steps; its exit code and what it printed."""

    def run(checks: list[Step], tests: Step, *words: str) -> tuple[int, str]:
        monkeypatch.setattr(run_tests, "static_steps", lambda _root: checks)
        monkeypatch.setattr(run_tests, "pytest_step", lambda _arguments: tests)
        monkeypatch.setattr(run_tests, "run_suite", lambda _arguments, root: run_tests.run(tests, root))
        return run_tests.main(words), capsys.readouterr().out

    return run


def test_all_steps_run_and_the_last_line_names_those_that_failed(run_with: Run) -> None:
    code, out = run_with([step("first", 3), step("second", 0)], step("third", 1))
    assert code == 1
    assert [line for line in out.splitlines() if ": FAILED" in line or ": ok" in line] != []
    assert "== second: ok" in out
    assert out.splitlines()[-1].startswith("FAILED in ")
    assert out.splitlines()[-1].endswith(": first, third (2 of 3)")


def test_success_is_one_line_and_exit_code_zero(run_with: Run) -> None:
    code, out = run_with([step("first", 0)], step("second", 0))
    assert code == 0
    assert out.splitlines()[-1].startswith("All fine in ")


@pytest.mark.parametrize("words", [("tests/unit",), ("-k", "robots")])
def test_named_tests_run_alone(run_with: Run, words: tuple[str, ...]) -> None:
    code, out = run_with([step("lint", 1)], step("tests", 0), *words)
    assert code == 0
    assert "lint" not in out


def test_options_reach_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_here.py").touch()
    monkeypatch.chdir(tmp_path)
    command = run_tests.pytest_step(run_tests.parse(["--long", "-k", "a or b", "test_here.py::test_x"])).command
    assert "long or not long" in command
    assert f"faulthandler_timeout={run_tests.LONGEST_S}" in command
    assert command[command.index("-k") + 1] == "a or b"
    assert command[-1] == str(tmp_path / "test_here.py::test_x")
    assert "--import-mode=importlib" in command
    assert "long or not long" not in run_tests.pytest_step(run_tests.parse([])).command


def test_json_without_ids_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_tests.parse(["--json"])
    assert stopped.value.code == 2
    assert "--json goes with --ids" in capsys.readouterr().err


def test_every_check_of_the_house_is_among_the_steps() -> None:
    steps = run_tests.static_steps(run_tests.ROOT)
    assert [step.name for step in steps] == ["ruff check", "ruff format", "mypy", "lint-imports"]
    assert {"src", "tests", "tools"} <= set(steps[0].command)


STARVED = """
import os, pathlib

def test_fine():
    pass

def test_{kind}():
    runs = pathlib.Path(__file__).with_suffix(".runs")
    runs.write_text(runs.read_text() + "." if runs.exists() else ".")
    assert len(runs.read_text()) not in {failing}
"""


def suite(root: Path, failing: dict[str, set[int]]) -> run_tests.Result:
    """A whole suite in which tests fail in these of their runs."""
    (root / "tests").mkdir()
    for kind, runs in failing.items():
        text = STARVED.format(kind=kind, failing=runs)
        (root / "tests" / f"test_{kind}.py").write_text(text)
    return run_tests.run_suite(run_tests.parse(["--processes", "2"]), root)


def test_what_fails_beside_others_and_never_alone_is_named_and_not_refused(tmp_path: Path) -> None:
    found = suite(tmp_path, {"steady": set(), "starved": {1}})
    assert (found.exit_code, found.unsteady) == (0, ("tests/test_starved.py::test_starved",))
    assert (tmp_path / "tests" / "test_starved.runs").read_text() == "...."
    assert run_tests.closing_line([found]).endswith("passed alone: tests/test_starved.py::test_starved")


@pytest.mark.parametrize(("runs", "run"), [({1, 2, 3, 4}, 2), ({1, 4}, 4)], ids=["always", "once more"])
def test_what_fails_again_alone_has_failed_and_is_not_run_once_more(tmp_path: Path, runs: set[int], run: int) -> None:
    found = suite(tmp_path, {"starved": {1}, "broken": runs})
    assert (found.exit_code, found.unsteady) == (1, ())
    assert (tmp_path / "tests" / "test_broken.runs").read_text() == "." * run


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    found = suite(tmp_path, {f"starved_{number}": {1} for number in range(6)})
    assert (found.exit_code, found.unsteady) == (1, ())
    assert (tmp_path / "tests" / "test_starved_0.runs").read_text() == "."
