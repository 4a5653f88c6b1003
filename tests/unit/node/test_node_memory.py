"""What breaks a crawl, as one of its own errors."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from nephila.engines.interpreter import heedless, in_a_sentence
from nephila.model.errors import FileShortageError, MemoryShortageError, NephilaError, StorageError
from nephila.node.memory import failure_of


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_a_lack_of_memory_is_told_as_that(error: Exception) -> None:
    """C4, F10: wherever it was refused."""
    assert isinstance(failure_of(error, "a lease"), MemoryShortageError)


STARVED = """
import resource
from nephila.model.errors import is_shortage
def told():
    return [is_shortage(error) for error in (SystemError("NULL"), RuntimeError("can't start new thread"))]
enough = told()
resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))
print(enough, told(), is_shortage(ValueError()))
"""


def test_what_python_makes_of_a_lack_of_memory_is_told_as_that() -> None:
    """C4, F10: it may forget to say MemoryError; the same where there is enough is a bug."""
    command = [sys.executable, "-c", STARVED]
    assert subprocess.check_output(command, text=True) == "[False, False] [True, True] False\n"


@pytest.mark.parametrize("first", ["", "resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))"])
def test_a_process_of_ours_that_breaks_early_says_so_in_a_sentence(first: str) -> None:
    """C4, F10: what broke, or that there was no memory."""
    program = f"import resource\n{first}\nraise SystemError('NULL')"
    broken = subprocess.run(
        heedless(program, in_a_sentence("a worker: ")), stderr=subprocess.PIPE, text=True, check=False
    )
    assert broken.returncode == 1
    assert broken.stderr == f"a worker: {'there is not enough memory' if first else 'SystemError: NULL'}\n"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_lack_of_files_is_told_as_that(number: int) -> None:
    """C4, H1: of this process, or of the machine."""
    assert isinstance(failure_of(OSError(number, "Too many open files"), "a lease"), FileShortageError)


def test_our_own_errors_stay_what_they_are_and_others_are_named() -> None:
    """C4: with what broke."""
    ours = StorageError("the disk is full")
    assert failure_of(ours, "a lease") is ours
    other = failure_of(ZeroDivisionError("by zero"), "a lease")
    assert type(other) is NephilaError
    assert str(other) == "a lease broke: ZeroDivisionError('by zero')"
