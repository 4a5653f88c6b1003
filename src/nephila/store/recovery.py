"""Opening an archive that was cut: by kill -9, a full disk, a power loss.

A file is cut back to the end of its last whole *capture*, not of its last whole record: an answer without its metadata
record could not be settled and would lie in the archive unexplained. Bytes before the confirmed mark were promised to
be durable; if the damage is there, nothing is touched and the error names the file. Doing it twice changes nothing.
"""

from __future__ import annotations

from pathlib import Path

from nephila.model.errors import StorageError

from .disk import Disk, DiskFile
from .readback import units
from .reader import DamagedArchiveError, WarcReader


def valid_end(file: DiskFile, name: str) -> tuple[int, str]:
    """Where the last whole capture ends, and what is wrong with the bytes after it (nothing: an empty string)."""
    end, reason = 0, ""
    try:
        for unit in units(WarcReader(file, name)):
            end = unit[-1].end
    except DamagedArchiveError as damage:
        reason = damage.reason
    return end, reason or ("" if end == file.size() else "the last capture is not whole")


def recover(disk: Disk, path: Path, confirmed: int = 0) -> int:
    """Cut the file back to its last whole capture; returns its length then.

    Raises `StorageError` where bytes before `confirmed` are damaged or missing, having changed nothing.
    """
    try:
        file = disk.open(path)
        try:
            end, reason = valid_end(file, path.name)
            if end < confirmed:
                raise StorageError(
                    f"{path.name} is damaged before byte {confirmed}, where it was known to be whole: "
                    f"{reason or 'the file is shorter'}.",
                    hint="Restore the file from a copy, or move it away and start the crawl again.",
                )
            if end < file.size():
                file.truncate(end)
                file.sync()
        finally:
            file.close()
    except OSError as error:
        raise StorageError(f"{path.name} cannot be read or repaired: {error.strerror or error}.") from error
    return end
