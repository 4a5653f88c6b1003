"""Several processes of pytest at once, told as one: progress as it comes, and what each says at its end as a whole.

So many run at once, the next one begins when one has ended, and so it matters little how well they were shared out.
Lines of progress (one for each test file) carry the number of their process. Everything from the first headline on
(failures, figures, the summary) is kept until the process has ended, so that no two of them are mixed. What failed is
listed once more after all, and the counts are added up. A process that says nothing for too long hangs: it is ended, so
that a run fails in minutes and says where.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HEADLINE = re.compile(r"=+ .+ =+$")
OPENING = "test session starts"
"""The headline that every process begins with: progress follows it."""
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)")
FAILED = ("FAILED ", "ERROR ")
PATIENCE_S = 30.0
"""How long a process may take to end what its tests have started."""
SILENT_S = 600.0
"""After which a process that says nothing (a dot for each test) hangs: twice what pytest needs to show where."""
USUAL = (0, 1, 5)
"""Exit codes of pytest that its own last lines explain: all fine, something failed, nothing to run."""


@dataclass(slots=True)
class Told:
    """What one process has said, and how it ended."""

    number: int
    exit_code: int = -1
    hangs: bool = False
    """Whether it was ended because nothing was heard of it."""
    closing: list[str] = field(default_factory=list)
    """From the first headline after its progress on."""

    @property
    def counts(self) -> Counter[str]:
        """Of its last line: how many passed, failed, were skipped."""
        for line in reversed(self.closing):
            if HEADLINE.match(line) and (found := COUNT.findall(line)):
                return Counter({kind.rstrip("s") if kind != "passed" else kind: int(count) for count, kind in found})
        return Counter()

    @property
    def failed(self) -> list[str]:
        """The tests that failed, a line each."""
        return [line for line in self.closing if line.startswith(FAILED)]


@dataclass(slots=True)
class _Running:
    """A process, and when it last said anything."""

    process: subprocess.Popen[bytes]
    told: Told
    heard: float = field(default_factory=time.monotonic)

    def lines(self) -> Iterator[str]:
        """What it says, line by line. A part of a line is a sign of life, too."""
        if self.process.stdout is None:
            return
        decoder, begun = codecs.getincrementaldecoder("utf-8")("replace"), ""
        with self.process.stdout as pipe:
            while data := self._read(pipe.fileno()):
                self.heard = time.monotonic()
                *lines, begun = (begun + decoder.decode(data)).split("\n")
                yield from lines
        if begun:
            yield begun

    def _read(self, pipe: int) -> bytes:
        """What it says next; nothing at its end, though something that it has started may still hold the pipe."""
        while not select.select([pipe], [], [], 1.0)[0]:
            if self.process.poll() is not None:
                return b""
        return os.read(pipe, 1 << 16)

    def ask_to_end(self) -> None:
        """As Ctrl-C would: tests end the servers that they have started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def end(self, until: float) -> None:
        """Wait for its end until that moment, and no longer."""
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _heed_interrupts() -> None:
    """Whoever was started in the background of a shell ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class SideBySide:
    """Runs commands at once. `end` stops what is left of them."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None, *, silent_s: float = SILENT_S) -> None:
        self._root = root
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        self._silent_s = silent_s
        self._printing = threading.Lock()
        self._running: list[_Running] = []

    def run(self, commands: Sequence[Sequence[str]], at_once: int, first_number: int = 1) -> list[Told]:
        """Run them all to their ends, in order, so many of them at once."""
        told = [Told(first_number + place) for place in range(len(commands))]
        waiting = deque(zip(commands, told, strict=True))
        runners = [threading.Thread(target=self._work_off, args=(waiting,), daemon=True) for _ in range(at_once)]
        try:
            for runner in runners:
                runner.start()
            while any(runner.is_alive() for runner in runners):
                for runner in runners:
                    runner.join(min(1.0, self._silent_s))
                self._end_silent()
        finally:
            waiting.clear()
            self.end()
        return told

    def _work_off(self, waiting: deque[tuple[Sequence[str], Told]]) -> None:
        while True:
            try:
                command, told = waiting.popleft()
            except IndexError:
                return
            process = subprocess.Popen(  # noqa: S603 - ours
                command,
                preexec_fn=_heed_interrupts,  # noqa: PLW1509 - one system call, and no lock
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            running = _Running(process, told)
            self._running.append(running)
            self._listen(running)

    def end(self) -> None:
        """Stop what still runs."""
        self._end(self._running)

    def _end_silent(self) -> None:
        since = time.monotonic() - self._silent_s
        silent = [one for one in self._running if one.process.poll() is None and one.heard < since]
        for one in silent:
            with self._printing:
                print(
                    f"{one.told.number}| nothing was heard for {self._silent_s:.0f} s: it hangs, and is ended",
                    flush=True,
                )
            one.told.hangs = True
        self._end(silent)

    @staticmethod
    def _end(several: Sequence[_Running]) -> None:
        for one in several:
            one.ask_to_end()
        until = time.monotonic() + PATIENCE_S
        for one in several:
            one.end(until)

    def _listen(self, running: _Running) -> None:
        told = running.told
        for raw in running.lines():
            line = raw.rstrip("\r")
            if told.closing or (HEADLINE.match(line) and OPENING not in line):
                told.closing.append(line)
            elif line:
                with self._printing:
                    print(f"{told.number}| {line}", flush=True)
        told.exit_code = running.process.wait()
        with self._printing:
            print(f"\n-- process {told.number} has ended (exit code {told.exit_code})", flush=True)
            print("\n".join(told.closing), flush=True)


def summary(told: Sequence[Told]) -> list[str]:
    """What failed in any of them, and the counts of all."""
    counts: Counter[str] = Counter()
    for one in told:
        counts += one.counts
    lines = [line for one in told for line in one.failed]
    lines += [f"process {one.number} hung, and was ended" for one in told if one.hangs]
    lines += [
        f"process {one.number} ended with exit code {one.exit_code}"
        for one in told
        if one.exit_code not in USUAL and not one.hangs
    ]
    return [*lines, ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()) or "no test ran"]
