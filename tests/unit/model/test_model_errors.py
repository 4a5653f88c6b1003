from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nephila.model.errors import StorageError, remedy
from nephila.node.takedown.record import Order, TakedownFolder


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "make room"),
        (errno.EACCES, "mend its permissions"),
        (errno.EROFS, "mend its permissions"),
        (errno.ENOENT, "make the folder that it belongs in, or name another place"),
        (errno.EISDIR, "name a file, or move the folder away"),
        (errno.EIO, "see what is wrong with the disk"),
    ],
)
def test_advice_fits_what_was_refused(number: int, advice: str) -> None:
    """C4: nobody is told to make room on a disk that he may only not write to."""
    assert remedy(OSError(number, os.strerror(number))) == advice


def test_an_order_that_cannot_be_filed_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4, K2: by what the disk said."""

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", forbidden)
    with pytest.raises(StorageError, match="permission denied") as told:
        TakedownFolder(tmp_path / "takedowns").add(Order((), ("example.org",), "x", "ann"), 1)
    assert told.value.hint == "mend its permissions"
