"""What breaks a crawl, as one of its own errors."""

from __future__ import annotations

import errno

import pytest

from nephila.model.errors import FileShortageError, MemoryShortageError, NephilaError, StorageError
from nephila.node.memory import failure_of


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_a_lack_of_memory_is_told_as_that(error: Exception) -> None:
    """C4, F10: wherever it was refused."""
    assert isinstance(failure_of(error, "a lease"), MemoryShortageError)


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
