"""Rewriting a sealed file on purpose (W5, K2): a receipt in the chain says so, before it is done.

A purge takes records out of an archive. Without a word in the chain that would be tampering; with it, whoever checks
the trail sees that the file is the one that the receipt announced, what was taken out (by digest, never by name) and
why. The receipt is written and synced first, then the file is replaced: a crash in between leaves the old file, which
still has its seals, under a receipt that was not carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephila.model.errors import StorageError

from .disk import Disk
from .trail import Trail, digest_of
from .trail_check import TrailCheck
from .trail_line import Receipt


def replace_sealed(
    trail: Trail, disk: Disk, root: Path, file: str, draft: str, *, removed: Sequence[str], why: str
) -> Receipt:
    """Put `draft` in the place of `file`, both named from the crawl directory, under a receipt.

    Raises `StorageError` where the file is not what was sealed, for a receipt must not cover up what happened before;
    and where the disk refuses: then the file is the old one or the new one, never a part of either.
    """
    try:
        found = TrailCheck(root, disk, disk).run(only=file)
        if wrong := [breach.what for breach in found.breaches if breach.file == file]:
            raise StorageError(f"{file} is not rewritten, because {wrong[0]}.", hint="`nephila audit` tells more.")
        receipt = Receipt(
            file=file,
            was=_weighed(disk, root / file),
            now=_weighed(disk, root / draft, sync=True),
            removed=list(removed),
            why=why,
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
