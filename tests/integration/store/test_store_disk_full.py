"""A real file system that refuses, and a real process that dies."""

import os
import random
import resource
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.model.errors import StorageError
from nephila.model.record import Capture
from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, LocalArchive, LocalDisk
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import decode_sample, fetched_sample, page_capture

LIMIT = 40_000


def _archive(directory: Path) -> LocalArchive:
    return LocalArchive(
        directory, ArchiveSettings(), VirtualClock(), CrawlIdentity(secret=1), LocalDisk(), decode_sample
    )


def _random_page(number: int) -> Capture:
    return page_capture(number, fetched_sample("http://a.example/", random.Random(number).randbytes(3_000)))


def _in_child(act: Callable[[], None]) -> int:
    """Run in a forked child, whose limits and death are its own; its exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - whatever it is, the parent must hear of it
            os._exit(2)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_a_write_that_the_system_cuts_short_is_undone(tmp_path: Path) -> None:
    """W2: the limit on file sizes makes a short write; whole captures are left, and a sentence."""

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        archive = _archive(tmp_path)
        with pytest.raises(StorageError, match="file too large"):
            deque(map(archive.append, (_random_page(number) for number in range(100))), maxlen=0)
        assert archive.sync()

    assert _in_child(fill) == 0
    archive = _archive(tmp_path)
    [segment] = archive.segments()
    captures = list(archive.tail(segment, 0))
    assert LIMIT - 8_000 < captures[-1][1].ref.end == (tmp_path / segment).stat().st_size <= LIMIT
    assert len(captures) > 5


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """W2: a file in the place of the directory, for instance."""
    (tmp_path / "archive").write_text("not a directory")
    with pytest.raises(StorageError):
        _archive(tmp_path / "archive")


_WRITER = """
import sys
from pathlib import Path
from nephila.model.record import Capture
from nephila.model.settings import ArchiveSettings
from nephila.store import CrawlIdentity, LocalArchive, LocalDisk
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.archive import decode_sample, page_capture

archive = LocalArchive(
    Path(sys.argv[1]), ArchiveSettings(), VirtualClock(), CrawlIdentity(secret=1), LocalDisk(), decode_sample
)
for number in range(100_000):
    stored = archive.append(page_capture(number))
    print(number, stored.ref.segment, stored.ref.end, flush=True)
"""


def test_kill_nine_loses_no_capture_that_append_returned(tmp_path: Path) -> None:
    """F10, Q4: killed while writing, again and again: all that was told is there, whole, and goes on."""
    told = 0
    for after in (3, 40, 171):
        process = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
        lines = [line for line in lines if line.endswith("\n")]  # the kill may have cut the last one in two
        process.stdout.close()
        process.wait()
        told += len(lines)
        number, segment, end = lines[-1].split()
        archive = _archive(tmp_path)
        assert archive.recover(segment, int(end)) >= int(end)
        captures = [capture for capture, _ in archive.tail(segment, 0)]
        assert captures == [page_capture(index) for index in range(len(captures))]
        assert len(captures) >= int(number) + 1
    assert len(_archive(tmp_path).segments()) == 3
    assert told >= 214
