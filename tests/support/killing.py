"""Whoever kills: a crawl in several processes, and random blows at them, drawn from a seed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nephila.node.processes.workforce import MAX_DEATHS


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, as long as it lives."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def number_of(pid: int) -> int | None:
    """The number of a worker; None for a process that is none (yet)."""
    try:
        last = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, _, number = last.rpartition(b"-")
    return int(number) if name == b"nephila-worker" else None


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@dataclass
class Killer:
    """Starts a crawl again and again, and deals out so many blows in all; tells of each."""

    command: Sequence[str]
    archive: Path
    """Its folder of archive files: it has begun to crawl when that grows."""
    log: Path
    seed: int
    most_processes: int = 4
    blows: list[str] = field(default_factory=list)
    starts: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._deaths: Counter[int] = Counter()
        self._struck: set[int] = set()

    @property
    def killed(self) -> int:
        return len(self.blows)

    def deal(self, kills: int) -> None:
        """Run and kill until so many processes were killed."""
        while self.killed < kills:
            self._run(kills)

    def _run(self, kills: int) -> None:
        """One start, and what befalls it until its first process is killed."""
        processes = self._draw.choice([1, 2, 3, *([self.most_processes] * 3)])
        self._deaths.clear()
        self.starts += 1
        began, size = time.monotonic(), self._archived()
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*self.command, "--processes", str(processes)], stdout=subprocess.DEVNULL, stderr=log
            )
        try:
            if self._draw.random() < 0.3:  # while it starts and recovers
                time.sleep(self._draw.uniform(0.05, 1.5))
            else:
                self._wait_for_pages(process, size)
                for _ in range(self._draw.randint(4, 16) if processes > 1 else 0):
                    if self.killed < kills - 1:
                        self._strike_worker(process, began)
            self._strike_all(process, began, kills, everyone=self._draw.random() < 0.5)
        finally:
            process.kill()
            process.wait()

    def _wait_for_pages(self, process: subprocess.Popen[bytes], size: int) -> None:
        deadline = time.monotonic() + 120  # however busy the machine is
        while self._archived() <= size:
            assert process.poll() is None, "it has ended by itself: the web is too small for so many blows"
            assert time.monotonic() < deadline, "it does not begin to crawl"
            time.sleep(0.02)
        time.sleep(self._draw.uniform(0.0, 0.5))

    def _archived(self) -> int:
        return sum(path.stat().st_size for path in self.archive.rglob("*.warc.gz"))

    def _strike_worker(self, process: subprocess.Popen[bytes], began: float) -> None:
        """Kill one worker, perhaps one that has just begun to live; its supervisor goes on."""
        time.sleep(self._draw.choice([0.0, self._draw.uniform(0.0, 0.2), self._draw.uniform(0.0, 1.0)]))
        assert process.poll() is None, "it has ended by itself: the web is too small for so many blows"
        living = set(children_of(process.pid)) - self._struck
        workers = {number: pid for pid in living if (number := number_of(pid)) is not None}
        spared = [number for number in sorted(workers) if self._deaths[number] < MAX_DEATHS - 1]
        if spared:
            number = self._draw.choice(spared)
            self._deaths[number] += 1
            self._kill(workers[number], f"w{number}", began)

    def _strike_all(self, process: subprocess.Popen[bytes], began: float, kills: int, *, everyone: bool) -> None:
        """Kill the process that was started; with it all workers at once, or they die by themselves."""
        living = set(children_of(process.pid)) - self._struck
        workers = sorted(pid for pid in living if number_of(pid) is not None)
        self._kill(process.pid, "all" if everyone and workers else "S", began)
        for pid in workers if everyone else ():
            if self.killed < kills:
                self._kill(pid, "+", began)
        process.wait()
        deadline = time.monotonic() + 10
        while any(is_alive(pid) for pid in workers):
            assert time.monotonic() < deadline, "a worker outlives its supervisor"
            time.sleep(0.01)

    def _kill(self, pid: int, name: str, began: float) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # it died with its supervisor before we came to it
        self._struck.add(pid)
        self.blows.append(f"{name}@{time.monotonic() - began:.1f}")
