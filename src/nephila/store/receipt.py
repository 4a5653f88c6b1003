"""Rewriting a sealed file on purpose (W5, K2): a receipt in the chain says so, before it is done.

A purge takes records out of an archive. Without a word in the chain that would be tampering; with it, whoever checks
the trail sees that the file is the one that the receipt announced, what was taken out (by digest, never by name) and
why. The receipt is written and synced first, then the file is replaced: a crash in between leaves the old file, which
still has its seals, under a receipt that was not carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from nephila.engines.disk import Disk
from nephila.model.errors import StorageError

from .trail import Trail, digest_of
from .trail_check import TrailCheck
from .trail_line import Receipt


def check_sealed(disk: Disk, event_disk: Disk, root: Path, files: Collection[str]) -> None:
    """Raise `StorageError` where one of the files is not what was sealed.

    A receipt must not cover up what happened before. Once for all of them: it reads every chain.
    """
    try:
        found = TrailCheck(root, disk, event_disk).run(only=files)
    except OSError as error:
        raise StorageError(f"the chains cannot be read: {(error.strerror or str(error)).lower()}.") from error
    if wrong := [breach for breach in found.breaches if breach.file in files]:
        raise StorageError(
            f"{wrong[0].file} is not rewritten, because {wrong[0].what}.", hint="`nephila audit` tells more."
        )


def replace_sealed(
    trail: Trail, disk: Disk, root: Path, file: str, draft: str, *, removed: Sequence[str], why: str, emptied: int = 0
) -> Receipt:
    """Put `draft` in the place of `file`, both named from the crawl directory, under a receipt.

    The file was looked at before (`check_sealed`). Raises `StorageError` where the disk refuses: then the file is the
    old one or the new one, never a part of either.
    """
    try:
        receipt = Receipt(
            file=file,
            was=_weighed(disk, root / file),
            now=_weighed(disk, root / draft, sync=True),
            removed=list(removed),
            why=why,
            emptied=emptied,
        )
        trail.receipt(receipt)
        disk.rename(root / draft, root / file)
        disk.sync_directory((root / file).parent)
    except OSError as error:
        raise StorageError(f"{file} could not be rewritten: {(error.strerror or str(error)).lower()}.") from error
    return receipt


def _weighed(disk: Disk, path: Path, *, sync: bool = False) -> tuple[int, str]:
    file = disk.open(path)
    try:
        if sync:
            file.sync()
        size = file.size()
        return size, digest_of(file, 0, size)
    finally:
        file.close()
