"""The script `nephila`: finding an interpreter, and going straight to the program when everything is set up."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Start = Callable[..., subprocess.CompletedProcess[str]]

SETTING_UP = "print('setting up')\n"

SUITABLE, WITHOUT_VENV, TOO_OLD = 0, 3, 4
"""What the script's own question to an interpreter is answered with."""


def pretend_ready(checkout: Path) -> None:
    """As after a set-up, with the interpreter of the tests; what would set up only says so."""
    environment = checkout / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").write_text(
        f'#!/bin/sh\nPYTHONPATH="{checkout}/src" exec "{sys.executable}" "$@"\n', encoding="utf-8"
    )
    (environment / "bin" / "python").chmod(0o755)
    requirements = (checkout / "requirements" / "run.txt").read_text(encoding="utf-8")
    (environment / "nephila-run.stamp").write_text(f"{checkout.resolve()}\n{requirements}", encoding="utf-8")
    (checkout / "tools" / "bootstrap.py").write_text(SETTING_UP, encoding="utf-8")


@pytest.fixture
def ready(checkout: Path) -> Path:
    pretend_ready(checkout)
    return checkout


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A directory for PATH that has what the script itself calls, and no Python."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("sh", "dirname", "readlink", "cat", "cmp"):
        (directory / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is missing"))
    return directory


def fake_interpreter(path: Path, answer: int, version: str) -> Path:
    """Answers the script's questions as asked for; shows itself when it is given a file to run."""
    path.write_text(
        f'#!/bin/sh\ncase "$1" in\n-c) case "$2" in *find_spec*) exit {answer};; *) printf {version};; esac;;\n'
        f'*) echo "started {path.name}";;\nesac\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def test_a_ready_checkout_goes_straight_to_the_program(ready: Path, start: Start) -> None:
    answer = json.loads(start(ready / "nephila", "crawl", "a b", "--json").stdout)
    assert answer["arguments"] == ["crawl", "a b", "--json"]


def test_the_program_takes_the_place_of_the_script_so_that_signals_reach_it(ready: Path) -> None:
    with subprocess.Popen([ready / "nephila"], stdout=subprocess.PIPE, text=True) as process:
        said, _ = process.communicate(timeout=60)
    assert json.loads(said)["pid"] == process.pid


def test_it_works_through_links_and_does_not_import_from_where_one_stands(
    ready: Path, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "second").symlink_to(ready / "nephila")
    (tmp_path / "first").symlink_to(Path("links") / "second")
    answer = json.loads(start(tmp_path / "first", "x").stdout)
    assert answer["arguments"] == ["x"]
    assert str(tmp_path) not in answer["path"]
    assert "" not in answer["path"]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "requirements" / "run.txt").write_text("other\n", encoding="utf-8"),
        lambda root: (root / ".venv" / "nephila-run.stamp").unlink(),
        lambda root: (root / ".venv" / "bin" / "python").unlink(),
        lambda root: (root / ".venv" / "nephila-run.stamp").write_text("", encoding="utf-8"),
    ],
    ids=["requirements changed", "cut short", "interpreter gone", "stamp empty"],
)
def test_what_changed_is_set_up_anew(ready: Path, start: Start, change: Callable[[Path], object]) -> None:
    change(ready)
    assert start(ready / "nephila").stdout == "setting up\n"


def test_a_moved_checkout_is_set_up_anew(ready: Path, start: Start) -> None:
    moved = ready.rename(ready.with_name("elsewhere"))
    assert start(moved / "nephila").stdout == "setting up\n"


def test_an_interpreter_asked_for_by_name_is_compared_with_the_one_in_use(ready: Path, start: Start) -> None:
    assert start(ready / "nephila", NEPHILA_PYTHON=sys.executable).stdout == "setting up\n"


def test_the_test_command_looks_for_its_own_tools(ready: Path, start: Start) -> None:
    assert start(ready / "nephila", "test").stdout == "setting up\n"


def test_too_old_pythons_are_named(checkout: Path, start: Start, bare_path: Path) -> None:
    old = fake_interpreter(bare_path / "python3", TOO_OLD, "3.9.2")
    failed = start(checkout / "nephila", PATH=str(bare_path))
    assert failed.returncode == 1
    assert "Python 3.11 or newer is needed" in failed.stderr
    assert f"{old} (3.9.2)" in failed.stderr
    assert "NEPHILA_PYTHON" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_one_that_is_too_old_is_named_once(checkout: Path, start: Start, bare_path: Path, tmp_path: Path) -> None:
    """Systems have the same file in several directories of PATH."""
    old = fake_interpreter(bare_path / "python3", TOO_OLD, "3.9.2")
    (tmp_path / "again").symlink_to(bare_path)
    failed = start(checkout / "nephila", PATH=f"{bare_path}:{tmp_path / 'again'}")
    assert f"found: {old} (3.9.2). Please" in failed.stderr


def test_what_a_shim_hides_is_found(checkout: Path, start: Start, bare_path: Path, tmp_path: Path) -> None:
    """A shim that leads to no Python, before a Python of the same name."""
    (tmp_path / "shims").mkdir()
    (tmp_path / "shims" / "python3").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    (tmp_path / "shims" / "python3").chmod(0o755)
    fake_interpreter(bare_path / "python3", SUITABLE, "3.12.0")
    assert start(checkout / "nephila", PATH=f"{tmp_path / 'shims'}:{bare_path}").stdout == "started python3\n"


def test_no_python_at_all_is_said(checkout: Path, start: Start, bare_path: Path) -> None:
    failed = start(checkout / "nephila", PATH=str(bare_path))
    assert failed.returncode == 1
    assert "no Python was found" in failed.stderr
    assert "apt install python3" in failed.stderr


@pytest.mark.parametrize(("name", "says"), [("old", "Python 3.8.1: 3.11 or newer"), ("missing", "does not run")])
def test_a_wrong_interpreter_asked_for_by_name_is_not_replaced_by_another(
    checkout: Path, start: Start, bare_path: Path, name: str, says: str
) -> None:
    fake_interpreter(bare_path / "python3", SUITABLE, "3.12.0")
    fake_interpreter(bare_path / "old", TOO_OLD, "3.8.1")
    failed = start(checkout / "nephila", PATH=str(bare_path), NEPHILA_PYTHON=str(bare_path / name))
    assert failed.returncode == 1
    assert says in failed.stderr


def test_an_interpreter_that_can_make_environments_is_preferred(checkout: Path, start: Start, bare_path: Path) -> None:
    fake_interpreter(bare_path / "python3.13", WITHOUT_VENV, "3.13.0")
    fake_interpreter(bare_path / "python3", SUITABLE, "3.12.0")
    assert start(checkout / "nephila", PATH=str(bare_path)).stdout == "started python3\n"


def test_one_that_cannot_is_still_tried_when_there_is_no_other(checkout: Path, start: Start, bare_path: Path) -> None:
    fake_interpreter(bare_path / "python3.13", WITHOUT_VENV, "3.13.0")
    fake_interpreter(bare_path / "python3", TOO_OLD, "3.9.0")
    assert start(checkout / "nephila", PATH=str(bare_path)).stdout == "started python3.13\n"


def test_pythons_of_pyenv_are_found(checkout: Path, start: Start, bare_path: Path, tmp_path: Path) -> None:
    for version, answer in (("3.10.1", TOO_OLD), ("3.12.4", SUITABLE)):
        directory = tmp_path / ".pyenv" / "versions" / version / "bin"
        directory.mkdir(parents=True)
        fake_interpreter(directory / "python", answer, version)
    assert start(checkout / "nephila", PATH=str(bare_path)).stdout == "started python\n"
