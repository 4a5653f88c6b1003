"""Opening an archive that was cut: by kill -9, a full disk, a power loss.

A file is cut back to the end of its last whole *capture*, not of its last whole record: an answer without its metadata
record could not be settled and would lie in the archive unexplained. Bytes before the confirmed mark were promised to
be durable and are never touched; if they are missing, the error names the file. Doing it twice changes nothing.
"""

from __future__ import annotations

from pathlib import Path

from nephila.engines.disk import Disk, DiskFile
from nephila.model.errors import StorageError

from .readback import units
from .reader import DamagedArchiveError, WarcReader
from .segment import directories_of


def valid_end(file: DiskFile, name: str, start: int = 0) -> int:
    """Where the last whole capture ends, looking from `start`, where one ends."""
    end = start
    try:
        for unit in units(WarcReader(file, name, start)):
            end = unit[-1].end
    except DamagedArchiveError:
        pass  # the torn tail that was looked for
    return end


def recover(disk: Disk, path: Path, confirmed: int = 0, root: Path | None = None) -> int:
    """Cut the file back to its last whole capture and make it durable; returns its length then.

    Raises `StorageError` where bytes before `confirmed` are missing, having changed nothing. They are not read: a crawl
    of many gigabytes must go on within seconds. `root` is the archive, where the file lies in a folder of it.
    """
    try:
        file = disk.open(path)
        try:
            if file.size() < confirmed:
                raise StorageError(
                    f"{path.name} has {file.size()} bytes, but was known to have {confirmed}.",
                    hint="Restore the file from a copy, or move it away and start the crawl again.",
                )
            end = valid_end(file, path.name, confirmed)
            if end < file.size():
                file.truncate(end)
            # Whole captures behind the mark may never have been synced: a process that was killed synced nothing more.
            # Or in vain: after a sync that failed they may be in the system's memory alone, and it would not try again.
            file.rewrite(confirmed, end - confirmed)
            file.sync()
        finally:
            file.close()
        for directory in sorted(directories_of(path, root or path.parent)):
            disk.sync_directory(directory)  # nor its name, if it was killed before its first sync
    except OSError as error:
        raise StorageError(f"{path.name} cannot be read or repaired: {error.strerror or error}.") from error
    return end
