"""The processes of a browser: found by a mark of ours, measured, ended. Linux's /proc and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

PROC = Path("/proc")


def find_marked(mark: str) -> int:
    """The process that was started with this argument, the first of its browser; 0 where there is none."""
    needle = mark.encode()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if needle in words and not any(word.startswith(b"--type=") for word in words):
                return int(entry.name)
    return 0


def family_of(pid: int) -> list[int]:
    """A process and all below it."""
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for thread in (PROC / str(one) / "task").iterdir():
                with contextlib.suppress(OSError):
                    left += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def memory_of(pid: int) -> int:
    """Bytes of a process and all below it; what they share is counted once."""
    return sum(map(_own_memory, family_of(pid)))


def _own_memory(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for yet does not."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def end(pid: int) -> None:
    """End a browser at once, with all that it started."""
    if not pid:
        return
    for one in reversed(family_of(pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, signal.SIGKILL)
