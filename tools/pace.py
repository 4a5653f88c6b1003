"""What an interpreter is: its version, where it lies, what it lacks, how fast it is. Standard library only.

Run by each interpreter that a first set-up finds (`interpreters`), as `python -I -S tools/pace.py`; prints one JSON
object. Builds of the same version differ by half (profile-guided optimisation, a shared library), and none of them says
reliably how it was built, so a fixed piece of work is timed: calls, attributes, dictionaries, strings, exceptions, as
in a crawler. CPU time and the least of a few runs, because the machine has other work to do.

Interpreters that are too old end with an error, by the check below or because they cannot read this file.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import time
from importlib.util import find_spec

OLDEST = (3, 11)
NEEDED = ("venv", "ensurepip", "_ssl", "_sqlite3", "_ctypes", "zlib")
"""What a Python may have been built or packaged without, and what the set-up or the crawler cannot do without."""
RUNS = 8
STEPS = 600
"""Work of one run: about a millisecond, so that some runs are not interrupted on a busy machine, either."""


class Host:
    """Something with attributes and methods."""

    __slots__ = ("delay", "name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.delay = 1.0
        self.waiting: list[tuple[float, str]] = []

    def admit(self, path: str, now: float) -> bool:
        """Queue a path unless it is an odd one."""
        if path.endswith("7"):
            raise LookupError(path)
        self.waiting.append((now + self.delay * len(self.waiting), path))
        return len(path) > 1


def work(steps: int = STEPS) -> int:
    """The fixed piece: so many URLs are taken apart, counted by host, and queued."""
    hosts: dict[str, Host] = {}
    admitted = 0
    for number in range(steps):
        url = f"https://www{number % 17}.example.test/a/{number}?page={number % 5}"
        name, _, path = url.partition("://")[2].partition("/")
        host = hosts.get(name)
        if host is None:
            host = hosts[name] = Host(name)
        parameters = dict(pair.split("=") for pair in path.partition("?")[2].split("&"))
        try:
            admitted += host.admit(path.lower().partition("?")[0], float(number))
        except LookupError:
            admitted += int(parameters["page"])
        if not number % 50:
            host.waiting.sort(key=lambda entry: (entry[0], entry[1]))
    return admitted + sum(len(host.waiting) for host in hosts.values())


def least_cpu_s(runs: int = RUNS) -> float:
    """CPU seconds of the piece; one run before it warms up what specialises itself."""
    work()
    taken = []
    for _ in range(runs):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def describe() -> dict[str, object]:
    """All of it, with the names that `interpreters.Interpreter` has."""
    return {
        "path": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
        "version": list(sys.version_info),
        "ordinary": sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"),
        "lacks": [name for name in NEEDED if find_spec(name) is None],
        "headers": os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")),  # noqa: PTH113, PTH118 - quicker
        "cpu_s": least_cpu_s(),
    }


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit("too old")
    print(json.dumps(describe()))
