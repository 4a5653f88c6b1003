"""What goes wrong while `.venv` is made is told in one sentence with what to do; read from what pip really prints."""

from __future__ import annotations

import errno
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import bootstrap
from bootstrap import Environment
from setup_failures import SetupError, explain_os_error, explain_output

PIP = [sys.executable, "-I", "-m", "pip"]
SOME_HASH = "sha256:" + "0" * 64


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: dict[str, str]) -> Environment:
    """A place for the log. pip would install into a directory beside it, if it came that far."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {**clean_environment, "PIP_TARGET": str(tmp_path / "target")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / ".venv").mkdir()
    return Environment(tmp_path)


@pytest.fixture
def lock(environment: Environment) -> Iterator[int]:
    with bootstrap.locked(environment.directory) as descriptor:
        yield descriptor


def failure_of(pip: list[str], line: str, environment: Environment, lock: int) -> SetupError:
    """Try to install one requirement and return what is said about it."""
    requirements = environment.root / "run.txt"
    requirements.write_text(f"--only-binary :all:\n{line} --hash={SOME_HASH}\n", encoding="utf-8")
    with pytest.raises(SetupError) as caught:
        bootstrap.install(pip, requirements, environment, lock)
    assert "\n" not in str(caught.value)
    assert str(environment.log) in str(caught.value)
    assert environment.log.read_text(encoding="utf-8")
    return caught.value


def test_no_network(environment: Environment, lock: int) -> None:
    failure = failure_of(PIP, "nosuchthing==1.0", environment, lock)
    assert "cannot be reached" in str(failure)
    assert failure.untouched


def test_nothing_for_this_platform(environment: Environment, lock: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (environment.root / "wheels").mkdir()
    (environment.root / "wheels" / "thing-1.0-cp39-cp39-plan9_vax.whl").touch()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(environment.root / "wheels"))
    failure = failure_of(PIP, "thing==1.0", environment, lock)
    assert "has no thing==1.0 ready for Python 3." in str(failure)
    assert "NEPHILA_PYTHON" in str(failure)
    assert failure.untouched


def test_a_file_that_is_not_the_one_that_was_locked(
    environment: Environment, lock: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment.root / "wheels").mkdir()
    with zipfile.ZipFile(environment.root / "wheels" / "thing-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("thing-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(environment.root / "wheels"))
    failure = failure_of(PIP, "thing==1.0", environment, lock)
    assert "hash mismatch" in str(failure)
    assert not (environment.root / "target").exists()


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: Could not install packages due to an OSError: [Errno 122] Disk quota exceeded", "disk is full"),
        ("error: [Errno 13] Permission denied: 'x'", "cannot be written"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))", "PIP_CERT"),
        ("something never seen before", "something never seen before"),
    ],
)
def test_failures_while_installing(environment: Environment, lock: int, printed: str, says: str) -> None:
    pip = environment.root / "pip.py"
    pip.write_text(f"import sys\nsys.exit({printed!r})\n", encoding="utf-8")
    assert says in str(failure_of([sys.executable, str(pip)], "thing==1.0", environment, lock))


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "disk is full"),
        (errno.EACCES, "cannot be written"),
        (errno.EROFS, "cannot be written"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_failures_of_our_own_writing(number: int, says: str, tmp_path: Path) -> None:
    failure = explain_os_error(OSError(number, os.strerror(number)), tmp_path / ".venv")
    assert says in str(failure)
    assert str(tmp_path / ".venv") in str(failure)
    assert not failure.untouched


def test_something_in_the_way_of_the_environment_is_told(checkout: Path) -> None:
    (checkout / ".venv").write_text("a file", encoding="utf-8")
    with pytest.raises(SetupError, match="File exists"):
        bootstrap.prepare(Environment(checkout), ["run"], None)


def test_an_index_out_of_reach_is_not_taken_for_a_missing_package(tmp_path: Path) -> None:
    printed = "WARNING: Retrying after NewConnectionError\nERROR: No matching distribution found for thing==1.0\n"
    assert "cannot be reached" in str(explain_output(printed, tmp_path, tmp_path / "log"))
