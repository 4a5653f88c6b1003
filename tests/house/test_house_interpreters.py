"""`tools/interpreters.py`: the newest Python makes `.venv`, unless another one is clearly faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import pace
from bootstrap import base_python
from interpreters import CLEARLY, Interpreter, ask, candidates, choose, fastest, timed

Start = Callable[..., subprocess.CompletedProcess[str]]

OLD = Interpreter("/old", (3, 11, 2, "final", 0), ordinary=True, lacks=(), headers=True, cpu_s=0.010)
NEW = replace(OLD, path="/new", version=(3, 13, 0, "final", 0))


def fake_interpreter(path: Path, *times: float, **said: object) -> Path:
    """Says of itself what `pace` would find, one time after the other, notes that, and runs nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    description = {"path": str(path), "version": [3, 13, 0, "final", 0], "ordinary": True, "lacks": [], "headers": True}
    lines = [json.dumps({**description, "cpu_s": time, **said}) for time in times]
    says, asked = path.with_suffix(".says"), path.with_suffix(".asked")
    says.write_text("\n".join([*lines, ""]), encoding="utf-8")
    script = ['[ "$1" = -I ] || exit 1', f'echo "$0" >>"{asked}"', f'sed -n "$(wc -l <"{asked}")p" "{says}"']
    path.write_text("\n".join(["#!/bin/sh", *script, ""]), encoding="utf-8")
    path.chmod(0o755)
    return path


def chosen(*found: Interpreter, can_compile: bool = True) -> str:
    choice = choose(found, can_compile=can_compile)
    return choice[0] if choice else "none"


def test_the_newest_wins_when_none_is_clearly_faster() -> None:
    assert choose([OLD, NEW], can_compile=True) == ("/new", "")
    assert choose([OLD, replace(NEW, cpu_s=OLD.cpu_s * CLEARLY * 0.99)], can_compile=True) == ("/new", "")


def test_one_that_is_clearly_faster_wins_and_it_is_said_in_a_line() -> None:
    path, said = choose([replace(NEW, cpu_s=0.015), OLD], can_compile=True) or ("", "")
    assert path == "/old"
    assert said == "Taking Python 3.11.2 (/old): the newest, 3.13.0, takes 1.5 times the time here."


def test_the_newest_of_those_that_are_as_fast_as_the_fastest_wins() -> None:
    middle = replace(OLD, path="/middle", version=(3, 12, 0, "final", 0), cpu_s=0.011)
    assert chosen(OLD, middle, replace(NEW, cpu_s=0.015)) == "/middle"


def test_of_two_builds_of_one_version_the_faster_wins_without_a_word() -> None:
    assert choose([replace(NEW, cpu_s=0.015), replace(NEW, path="/twin")], can_compile=True) == ("/twin", "")


@pytest.mark.parametrize(
    "unfit",
    [
        replace(NEW, lacks=("ensurepip",)),
        replace(NEW, ordinary=False),
        replace(NEW, version=(3, 99, 0, "final", 0)),
        replace(NEW, version=(3, 14, 0, "beta", 2)),
    ],
    ids=["makes no environments", "no ordinary CPython", "newer than is known", "not released"],
)
def test_what_may_not_work_is_not_chosen_however_new_and_fast_it_is(unfit: Interpreter) -> None:
    assert chosen(OLD, replace(unfit, cpu_s=0.001)) == "/old"
    assert chosen(unfit) == "none"


def test_one_with_headers_goes_before_one_without_where_there_is_a_compiler() -> None:
    """The extension saves more than any build of Python does."""
    bare = replace(NEW, headers=False, cpu_s=0.001)
    path, said = choose([OLD, bare], can_compile=True) or ("", "")
    assert path == "/old"
    assert "without its headers" in said
    assert chosen(OLD, bare, can_compile=False) == "/new"
    assert chosen(bare) == "/new"


def test_interpreters_take_turns_and_the_least_of_the_rounds_counts(tmp_path: Path) -> None:
    busy = fake_interpreter(tmp_path / "a", 0.9, 0.010, 0.8)
    quiet = fake_interpreter(tmp_path / "b", 0.012, 0.013, 0.5)
    found = {one.path: one.cpu_s for one in timed([str(busy), str(quiet)])}
    assert found == {str(busy): 0.010, str(quiet): 0.012}


def test_what_does_not_run_or_hangs_or_says_something_else_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpreters.PATIENCE_S", 0.2)
    scripts = {"breaks": "exit 1", "hangs": "exec sleep 600", "chats": "echo hello", "lacks": "echo '{\"path\": 1}'"}
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
        assert ask(str(tmp_path / name)) is None, name
    assert ask(str(tmp_path / "missing")) is None


def test_every_directory_of_path_counts_and_the_usual_ones_and_those_of_pyenv(tmp_path: Path) -> None:
    """What a shim hides is found; shims themselves lead to nothing else, and links to the same file are one."""
    pyenv = tmp_path / "pyenv"
    first = fake_interpreter(tmp_path / "first" / "python3.11", 1)
    second = fake_interpreter(tmp_path / "second" / "python3.11", 1)
    usual = fake_interpreter(tmp_path / "usual" / "python3.12", 1)
    version = fake_interpreter(pyenv / "versions" / "3.13.0" / "bin" / "python", 1)
    fake_interpreter(pyenv / "shims" / "python3.11", 1)
    fake_interpreter(tmp_path / "second" / "python3.9", 1)
    (tmp_path / "second" / "python3").symlink_to("python3.9")
    (tmp_path / "first" / "python3").symlink_to(first)
    path = os.pathsep.join(str(folder) for folder in (pyenv / "shims", first.parent, second.parent))
    found = candidates({"PATH": path, "HOME": str(tmp_path / "empty")}, [str(usual.parent)])
    assert list(dict.fromkeys(found)) == [str(one) for one in (first, second, usual, version)]
    assert list(candidates({"PYENV_ROOT": str(pyenv)}, [])) == [str(version)]


def test_with_no_other_the_one_that_asks_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreters.candidates", lambda _environment: iter([str(tmp_path / "missing")]))
    assert fastest(str(tmp_path / "own"), {}) == (str(tmp_path / "own"), "")


def test_a_real_one_says_what_it_is() -> None:
    found = ask(sys.executable)
    assert found is not None
    assert (found.path, found.version, found.lacks) == (base_python(), tuple(sys.version_info), ())
    assert 0 < found.cpu_s < 1
    assert pace.work() == pace.work()


def test_a_first_start_times_what_it_finds_and_the_next_does_not(checkout: Path, start: Start, tmp_path: Path) -> None:
    """From the script to the program, with a slow newer one in a directory of PATH."""
    slow = fake_interpreter(tmp_path / "bin" / "python3.14", *[9.0] * 3, version=[3, 14, 9, "final", 0])
    path = os.pathsep.join([str(slow.parent), os.environ["PATH"]])
    first = start(checkout / "nephila", "crawl", PATH=path)
    assert first.returncode == 0, first.stderr
    line, _, rest = first.stderr.partition("\n")
    assert line.startswith("Taking Python 3.")
    assert "the newest, 3.14.9, takes " in line
    assert rest.startswith("Setting up .venv")
    asked = slow.with_suffix(".asked").read_text(encoding="utf-8")
    second = start(checkout / "nephila", "crawl", PATH=path)
    assert (second.returncode, second.stderr) == (0, "")
    assert slow.with_suffix(".asked").read_text(encoding="utf-8") == asked
