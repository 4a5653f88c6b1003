"""What the processes of a crawl use of their machine, added up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nephila.node.logbook import Process
from nephila.node.machine import process_figures, together

WORKER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
files = [open("/dev/null") for _ in range(300)]
held = bytearray(b"x" * (64 << 20))
while sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) < 0.2:
    pass
print(flush=True)
sys.stdin.read()
"""


def test_what_workers_use_is_counted_and_whoever_has_most_files_open_is_told_of(tmp_path: Path) -> None:
    """O2: a supervisor fetches nothing; alerts are about its workers. One that has just ended is left out."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        alone, both = process_figures(tmp_path), process_figures(tmp_path, [worker.pid])
    assert both.memory_bytes > alone.memory_bytes + (64 << 20)
    assert both.cpu_s >= alone.cpu_s + 0.15  # told in ticks
    assert (300 < both.open_files < 400, both.max_files) == (True, 400)
    assert both.disk_bytes == alone.disk_bytes > 0
    left = process_figures(tmp_path, [worker.pid])
    assert left.max_files == alone.max_files
    assert left.cpu_s >= 0.2  # as a child that has ended


def test_a_disk_of_which_nothing_is_known_is_not_the_fullest() -> None:
    """O2: of several machines, or processes, the one that is nearest to its limit counts."""
    found = together([Process(), Process(disk_free_bytes=9, disk_bytes=10), Process(disk_free_bytes=5, disk_bytes=10)])
    assert (found.disk_free_bytes, found.disk_bytes) == (5, 10)
    assert together([]) == Process()
