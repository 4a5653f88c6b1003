"""Where an export goes: a file or a folder that appears under its name when it is whole, and not before.

It is made beside its place, under a name that begins with a dot and ends in ``.part``. Whatever goes wrong, Ctrl-C
included, that is removed and the place is as it was. Something that is there already is left alone, unless it was asked
for; a folder is replaced only where it is an earlier export.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nephila.model.errors import NephilaError, UsageError

from .names import INDEX

_HINT = "Name another place with --to, or say --replace."


def check_target(target: Path, *, folder: bool, replace: bool) -> None:
    """Raise `UsageError` where nothing can or may be put there, before anything is done."""
    if not target.name or target.name in {".", ".."}:
        raise UsageError(f"{target} is no name for an export.", "Name a new file or folder with --to.")
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder {target.parent}.", "Make it first, or name another place with --to.")
    if not target.exists() and not target.is_symlink():
        return
    if not replace:
        raise UsageError(f"{target} is there already.", _HINT)
    if folder and not (target.is_dir() and not target.is_symlink() and (target / INDEX).is_file()):
        raise UsageError(f"{target} is not an earlier export, and is not replaced.", "Name another place with --to.")
    if not folder and not target.is_file():
        raise UsageError(f"{target} is not a file, and is not replaced.", "Name another place with --to.")


@contextmanager
def draft_file(target: Path) -> Iterator[Path]:
    """A new file to be written; at the end of the block it is synced and put into its place."""
    with _told(target):
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
        os.close(descriptor)
        draft = Path(name)
        try:
            yield draft
            with draft.open("rb+") as stream:
                os.fsync(stream.fileno())
            draft.chmod(0o666 & ~_umask())
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


@contextmanager
def draft_folder(target: Path) -> Iterator[Path]:
    """The same for a folder. One that it replaces is moved away first and removed last."""
    with _told(target):
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent))
        try:
            yield draft
            draft.chmod(0o777 & ~_umask())
            old = draft.with_suffix(".old")
            if target.exists():
                target.replace(old)
            draft.replace(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def _told(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise NephilaError(
            f"{target} cannot be written: {reason}. Nothing was left there.",
            "Make room, or name another place with --to.",
        ) from error
