"""The pages of highest rank, in a file of their own (R2): whoever keeps them fresh need not look through all ranks.

Fingerprints and nothing else, so that of a page that was purged no address is left here. Derived, like the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .sections import DamagedFileError, Sections, write_sections

FOREMOST = "foremost.ranks"
_KIND = "foremost 1"
_FINGERPRINT_BYTES = 16


def write_foremost(folder: Path, identity: str, fingerprints: Sequence[bytes]) -> None:
    """Write the file of a crawl. Raises `StorageError`."""
    write_sections(folder / FOREMOST, f"{_KIND} {identity}", {}, {"pages": b"".join(fingerprints)})


def read_foremost(folder: Path, identity: str) -> list[bytes]:
    """Their fingerprints, the highest first; none where there is no file of this crawl that can be read."""
    try:
        with Sections(folder / FOREMOST, f"{_KIND} {identity}") as file:
            whole = bytes(file.bytes("pages"))
    except (FileNotFoundError, DamagedFileError, KeyError):
        return []
    return [whole[at : at + _FINGERPRINT_BYTES] for at in range(0, len(whole), _FINGERPRINT_BYTES)]
