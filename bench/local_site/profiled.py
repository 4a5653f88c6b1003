"""Runs nephila's command in this process and samples where its CPU goes, by stage and by function.

Every millisecond of CPU a signal looks which function each thread is in. A look weighs what the thread has used since
the last one, by its own clock, so that waiting weighs nothing; and as the program runs undisturbed in between, nothing
looks dearer than it is, as it does when calls are counted. Time in a library counts for the function of nephila that
called it.

    python profiled.py RESULT.json crawl ...
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

import nephila
from nephila.cli.main import main as nephila_main

INTERVAL_S = 0.001
LISTED = 200
"""Functions that are told, the dearest first."""
PACKAGE = str(Path(nephila.__file__).parent) + "/"


class Sampler:
    """Adds up the CPU of all threads; started in the first one, which takes the signals."""

    def __init__(self) -> None:
        self.stages: defaultdict[str, float] = defaultdict(float)
        self.functions: defaultdict[str, float] = defaultdict(float)
        self.threads: defaultdict[str, float] = defaultdict(float)
        self._last: dict[int, float] = {}

    def start(self) -> None:
        """From here on."""
        self._last[threading.get_ident()] = time.thread_time()
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """To here."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, _number: int, own: FrameType | None) -> None:
        frames = sys._current_frames()  # noqa: SLF001 - there is no other way
        for ident, frame in frames.items():
            now = time.clock_gettime(time.pthread_getcpuclockid(ident))
            spent, self._last[ident] = now - self._last.get(ident, 0.0), now
            if spent:
                self.threads[_thread(ident)] += spent
                self._add(own if ident == threading.get_ident() else frame, spent)

    def _add(self, frame: FrameType | None, spent: float) -> None:
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith("<frozen importlib"):
                self.stages["start"] += spent
                return
            if code.co_filename.startswith(PACKAGE):
                inside = code.co_filename.removeprefix(PACKAGE)
                self.stages[_stage(inside)] += spent
                self.functions[f"{inside}:{code.co_qualname}"] += spent
                return
            frame = frame.f_back
        self.stages["loop"] += spent


def _thread(ident: int) -> str:
    """The name of a thread, without the number that pools add."""
    known = threading._active.get(ident)  # type: ignore[attr-defined]  # noqa: SLF001 - without taking its lock
    return known.name.rstrip("0123456789").rstrip("-_") if known is not None else "unknown"


def _stage(inside: str) -> str:
    return inside.split("/", 1)[0] if "/" in inside else "start"


def main() -> None:
    """Run the command and write what was seen."""
    result = Path(sys.argv[1])
    sys.argv = ["nephila", *sys.argv[2:]]
    sampler = Sampler()
    began = time.process_time()
    sampler.start()
    code: str | int | None = 0
    try:
        nephila_main()
    except SystemExit as ending:
        code = ending.code
    sampler.stop()
    document = {
        "cpu_s": time.process_time() - began,
        "stages": sampler.stages,
        "functions": sorted(sampler.functions.items(), key=lambda pair: -pair[1])[:LISTED],
        "threads": sampler.threads,
    }
    result.write_text(json.dumps(document))
    sys.exit(code)


if __name__ == "__main__":
    main()
