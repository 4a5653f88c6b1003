"""`tools/bootstrap.py`: making `.venv` once, never half, never twice at a time."""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap
from bootstrap import Environment, prepare
from setup_failures import SetupError


class Steps:
    """In place of venv, pip and the choice of an interpreter: notes what is done, fails or is interrupted on demand."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failure: BaseException | None = None
        self.choice = (bootstrap.base_python(), "")
        self.choices = 0

    def fastest(self, _own: str, _environment: object) -> tuple[str, str]:
        self.choices += 1
        return self.choice

    def create(self, environment: Environment, python: str, _lock: int) -> None:
        self.done.append("create")
        environment.python.parent.mkdir()
        environment.python.symlink_to(sys.executable)
        environment.maker.write_text(python, encoding="utf-8")

    def install(self, _pip: list[str], requirements: Path, environment: Environment, _lock: int) -> None:
        assert not list(environment.directory.glob("*.stamp")), "a stamp stands while things change"
        self.done.append(requirements.name)
        if self.failure:
            raise self.failure


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    replaced = Steps()
    monkeypatch.setattr("interpreters.fastest", replaced.fastest)
    monkeypatch.setattr(bootstrap, "create", replaced.create)
    monkeypatch.setattr(bootstrap, "install", replaced.install)
    monkeypatch.setattr(bootstrap, "compile_package", lambda _environment: None)
    return replaced


@pytest.fixture
def environment(checkout: Path) -> Environment:
    return Environment(checkout)


def test_everything_is_done_once(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run"], None)
    prepare(environment, ["run"], None)
    assert steps.done == ["create", "run.txt"]


@pytest.mark.parametrize(
    ("arguments", "layers"),
    [
        ([], ["run"]),
        (["crawl", "parquet"], ["run"]),
        (["test"], ["run", "test"]),
        (["setup"], ["run"]),
        (["setup", "browser"], ["run", "render"]),
        (["setup", "parquet", "--json"], ["run", "parquet"]),
        (["setup", "--help"], ["run"]),
        (["setup", "parquet", "--help"], ["run"]),
        (["test", "-h"], ["run"]),
        (["bench"], ["run"]),
        (["bench", "pages"], ["run"]),
        (["bench", "fleet", "--quick"], ["run", "test"]),
        (["bench", "catalogue"], ["run", "test"]),
        (["bench", "streams", "--help"], ["run"]),
    ],
)
def test_a_command_gets_what_it_needs(arguments: list[str], layers: list[str]) -> None:
    assert bootstrap.layers_for(arguments) == layers
    assert all((Path(bootstrap.__file__).parents[1] / "requirements" / f"{layer}.in").exists() for layer in layers)


def test_test_tools_are_added_when_they_are_asked_for(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run"], None)
    steps.done.clear()
    prepare(environment, ["run", "test"], None)
    assert steps.done == ["build.txt", "test.txt"]
    assert environment.is_ready("run")
    assert environment.is_ready("test")


def test_changed_requirements_are_installed_into_what_is_there(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run", "test"], None)
    steps.done.clear()
    environment.requirements("run")[0].write_text("# other\n", encoding="utf-8")
    prepare(environment, ["run", "test"], None)
    assert steps.done == ["run.txt"]
    assert environment.is_ready("test")


def test_an_interrupted_set_up_is_begun_anew(environment: Environment, steps: Steps) -> None:
    steps.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        prepare(environment, ["run"], None)
    left_behind = environment.directory / "lib" / "half"
    left_behind.mkdir(parents=True)
    steps.failure = None
    prepare(environment, ["run"], None)
    assert steps.done == ["create", "run.txt", "create", "run.txt"]
    assert not left_behind.exists()


def test_an_environment_that_somebody_else_made_is_replaced(environment: Environment, steps: Steps) -> None:
    foreign = environment.directory / "lib" / "python3.11"
    foreign.mkdir(parents=True)
    prepare(environment, ["run"], None)
    assert not foreign.exists()


def test_another_interpreter_makes_another_environment(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run"], None)
    prepare(environment, ["run"], bootstrap.base_python())
    assert steps.done == ["create", "run.txt"]
    prepare(environment, ["run"], "/another/python")
    assert steps.done == ["create", "run.txt", "create", "run.txt"]


def test_the_interpreter_is_chosen_once_and_never_replaced_by_a_better_one(
    environment: Environment, steps: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    """An environment that works stays as it is, and nothing is timed for what is only added to it."""
    steps.choice = ("/usr/bin/older", "Taking the older one: it is faster.")
    prepare(environment, ["run"], None)
    assert environment.maker.read_text(encoding="utf-8") == "/usr/bin/older"
    assert capsys.readouterr().err.startswith("Taking the older one: it is faster.\nSetting up .venv")
    steps.choice = ("/usr/bin/newer", "")
    prepare(environment, ["run"], None)
    environment.requirements("run")[0].write_text("# other\n", encoding="utf-8")
    prepare(environment, ["run", "test"], None)
    assert environment.maker.read_text(encoding="utf-8") == "/usr/bin/older"
    assert steps.choices == 1


def test_an_interpreter_asked_for_by_name_is_not_held_against_others(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run"], "/another/python")
    assert environment.maker.read_text(encoding="utf-8") == "/another/python"
    assert steps.choices == 0


def test_failing_to_fetch_test_tools_leaves_the_crawler_usable(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run"], None)
    steps.failure = SetupError("no network", untouched=True)
    with pytest.raises(SetupError):
        prepare(environment, ["run", "test"], None)
    assert environment.is_ready("run")
    assert not environment.is_ready("test")


def test_failing_in_the_middle_of_installing_does_not(environment: Environment, steps: Steps) -> None:
    prepare(environment, ["run"], None)
    steps.failure = SetupError("disk full")
    with pytest.raises(SetupError):
        prepare(environment, ["run", "test"], None)
    assert not environment.is_ready("run")


def test_python_without_ensurepip_says_which_package_has_it(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "find_spec", lambda name: None if name in ("ensurepip", "pip") else object())
    with pytest.raises(SetupError, match=r"apt install python3\.\d+-venv"):
        prepare(environment, ["run"], bootstrap.base_python())


def test_python_without_ensurepip_makes_do_with_the_pip_it_has(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "find_spec", lambda name: None if name == "ensurepip" else object())
    monkeypatch.setattr(bootstrap, "run_logged", lambda command, *_rest: commands.append(command))
    with bootstrap.locked(environment.directory) as lock:
        bootstrap.create(environment, bootstrap.base_python(), lock)
    assert "--without-pip" in commands[0]
    assert bootstrap.pip_command(environment)[-2:] == ["--python", str(environment.python)]


def test_interrupting_a_step_ends_its_children_too(environment: Environment) -> None:
    """A pipe that all of them inherit, in place of the lock, ends when the last of them has ended."""

    class Interrupting(io.StringIO):
        def write(self, _line: str) -> int:
            raise KeyboardInterrupt

    class Log:
        @staticmethod
        def open(*_mode: str, **_options: str) -> Interrupting:
            return Interrupting()

    class Interrupted:
        log = Log()

    end, held = os.pipe()
    with pytest.raises(KeyboardInterrupt):
        bootstrap.run_logged(["sh", "-c", "sleep 600 & echo started; wait"], Interrupted(), held)  # type: ignore[arg-type]
    os.close(held)
    ended, _, _ = select.select([end], [], [], 10)
    assert ended
    assert os.read(end, 1) == b""
    os.close(end)


def test_two_first_starts_at_once_make_one_environment(
    checkout: Path, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    """The whole way with the real venv and pip; nothing is needed, so nothing is fetched."""
    variables = {**clean_environment, "NEPHILA_PYTHON": sys.executable}
    command = [str(checkout / "nephila"), "crawl", "a b"]
    starts = [
        subprocess.Popen(
            command, env=variables, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in starts]
    assert [process.returncode for process in starts] == [0, 0], said
    for out, _ in said:
        answer = json.loads(out)
        assert answer["arguments"] == ["crawl", "a b"]
        assert Path(answer["python"]).parent == checkout / ".venv" / "bin"
    progress = sorted(err for _, err in said)
    assert progress[0].startswith("Setting up .venv")
    assert progress[0].count("\n") == 1
    assert progress[1].startswith("Waiting for another start")
    assert list(checkout.glob("src/nephila/__pycache__/__main__.*.pyc")), "later starts need not compile it"
    installed = subprocess.run(
        [checkout / ".venv" / "bin" / "nephila", "x"], capture_output=True, text=True, check=True
    )
    assert json.loads(installed.stdout)["arguments"] == ["x"]
