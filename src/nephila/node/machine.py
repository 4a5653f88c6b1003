"""What the processes of a crawl use of their machine."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from .logbook import Process

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)
"""In /proc/PID/stat behind the name (proc(5)): time in user and kernel mode, its own and that of its ended children."""


def process_figures(out: Path, workers: Iterable[int] = ()) -> Process:
    """Processor time, memory and files of this process and of its workers, and the disk that `out` is on.

    A worker that has just ended is left out; its time is that of a child of this process from then on.
    """
    found = [_own(out)]
    for pid in workers:
        with suppress(OSError, ValueError, IndexError):
            found.append(_of_worker(pid))
    return together(found)


def together(all_of_them: Sequence[Process]) -> Process:
    """Time and memory of all; files and disk of whoever is nearest to his limit: that is what alerts are about."""
    if not all_of_them:
        return Process()
    files = max(all_of_them, key=lambda one: one.open_files / max(1, one.max_files))
    disk = min(all_of_them, key=lambda one: one.disk_free_bytes / one.disk_bytes if one.disk_bytes else 1.0)
    return Process(
        cpu_s=sum(one.cpu_s for one in all_of_them),
        memory_bytes=sum(one.memory_bytes for one in all_of_them),
        open_files=files.open_files,
        max_files=files.max_files,
        disk_free_bytes=disk.disk_free_bytes,
        disk_bytes=disk.disk_bytes,
    )


def _own(out: Path) -> Process:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    disk = shutil.disk_usage(out)
    return Process(
        cpu_s=sum(one.ru_utime + one.ru_stime for one in usage),
        memory_bytes=_memory_bytes("self"),
        open_files=_open_files("self"),
        max_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        disk_free_bytes=disk.free,
        disk_bytes=disk.total,
    )


def _of_worker(pid: int) -> Process:
    times = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[_TIMES]
    return Process(
        cpu_s=sum(map(int, times)) / _TICKS_PER_S,
        memory_bytes=_memory_bytes(str(pid)),
        open_files=_open_files(str(pid)),
        max_files=resource.prlimit(pid, resource.RLIMIT_NOFILE)[0],
    )


def _memory_bytes(process: str) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES


def _open_files(process: str) -> int:
    return sum(1 for _ in os.scandir(f"/proc/{process}/fd"))
