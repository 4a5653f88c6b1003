"""Runs a command on one core and tells what it took: CPU of the whole tree of processes, peak memory, time.

CPU is what the kernel accounts to the process and the children it waited for, user and system. Memory is read from
/proc while it runs: peak resident memory summed over the tree, and on request how anonymous memory grows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Memory:
    """Of a tree of processes, in bytes."""

    peak: int
    """Resident at most, mapped files included; summed over processes."""
    anonymous: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run took."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    exit_code: int
    timed_out: bool
    call_ns: float
    """What a plain Python call took on the same core right before: how fast the machine was."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a command runs."""

    folder: Path
    log: Path
    core: int = -1
    environ: Mapping[str, str] | None = None
    limit_s: float = 600.0


def run(
    command: Sequence[str], ground: Ground, *, watch: Callable[[Memory], bool] | None = None, look_s: float = LOOK_S
) -> Spent:
    """Run to the end, to the limit of time, or until the one who watches has seen enough."""

    def settle_down() -> None:
        if ground.core >= 0:
            os.sched_setaffinity(0, {ground.core})

    calls = call_ns(ground.core)
    # Compiled modules are kept, as they are for users: what pip installs for the others is compiled, too.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ = {**kept, **(ground.environ or {})}
    with ground.log.open("ab") as log:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=ground.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=settle_down,  # noqa: PLW1509 - no other thread runs here
        )
    peak, timed_out = 0, False
    try:
        while True:
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            seen = tree_memory(process.pid)
            peak = max(peak, seen.peak)
            if watch is not None and watch(seen):
                os.killpg(process.pid, signal.SIGTERM)
                watch = None
            if time.monotonic() - began > ground.limit_s and not timed_out:
                timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(look_s)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - began
    return Spent(used.ru_utime + used.ru_stime, wall_s, peak, process.returncode, timed_out, calls)


def call_ns(core: int, calls: int = 50_000) -> float:
    """CPU of a plain Python call on a core."""

    def nothing(one: int) -> int:
        return one

    before = os.sched_getaffinity(0)
    if core >= 0:
        os.sched_setaffinity(0, {core})
    began = time.process_time()
    for number in range(calls):
        nothing(number)
    spent = time.process_time() - began
    os.sched_setaffinity(0, before)
    return spent / calls * 1e9


def tree_memory(pid: int) -> Memory:
    """Of a process and its descendants, as far as they are still there."""
    peak = anonymous = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            waiting += [
                int(child)
                for thread in Path(f"/proc/{one}/task").iterdir()
                for child in (thread / "children").read_text().split()
            ]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmHWM" in fields:
            peak += int(fields["VmHWM"].split()[0]) * 1024
            anonymous += int(fields["RssAnon"].split()[0]) * 1024
    return Memory(peak, anonymous)
