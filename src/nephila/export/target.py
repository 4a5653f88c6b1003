"""Where an export goes: a file or a folder that appears under its name when it is whole, and not before.

It is made beside its place, under a name that begins with a dot and ends in ``.part``. Whatever goes wrong, Ctrl-C
included, that is removed and the place is as it was. Something that is there already is left alone, unless it was asked
for; a folder is replaced only where it is an earlier export.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

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
    draft = _beside(target)
    with _told(target):
        try:
            draft.touch(exist_ok=False)
            yield draft
            with draft.open("rb+") as stream:
                os.fsync(stream.fileno())
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


@contextmanager
def draft_folder(target: Path) -> Iterator[Path]:
    """The same for a folder. One that it replaces is moved away first and removed last."""
    draft = _beside(target)
    old = draft.with_suffix(".old")
    with _told(target):
        try:
            draft.mkdir()
            yield draft
            if target.exists():
                target.replace(old)
            draft.replace(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.replace(target)
            shutil.rmtree(draft, ignore_errors=True)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path) -> Path:
    """A name that nobody else has, known before it is there: it is removed whenever somebody interrupts."""
    return target.with_name(f".nephila-{token_hex(8)}.part")


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
