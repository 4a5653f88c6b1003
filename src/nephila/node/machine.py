"""What the processes of a crawl use of their machine."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

from .logbook import Process

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def process_figures(out: Path) -> Process:
    """Processor time (of ended children too), memory and files of this process, and the disk that `out` is on."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    disk = shutil.disk_usage(out)
    return Process(
        cpu_s=sum(one.ru_utime + one.ru_stime for one in usage),
        memory_bytes=int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES,
        open_files=sum(1 for _ in os.scandir("/proc/self/fd")),
        max_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        disk_free_bytes=disk.free,
        disk_bytes=disk.total,
    )
