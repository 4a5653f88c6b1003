"""A crawl that is killed takes the processes of its plugins along."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import asyncio
from sample_plugins import Counts
from nephila.model.plugin import Glimpse
from nephila.plugins.child import Confines
from nephila.plugins.offspring import Child

async def main():
    child = Child("counts", Counts(), Confines(0))
    await child.call("score_links", (Glimpse("", 0, 200), []), 0, 60)
    call = asyncio.create_task(child.call("score_links", (Glimpse("", 0, 200, "hang"), []), 0, 600))
    await asyncio.sleep(0.1)
    print(child._alive.process.pid, flush=True)
    await call

asyncio.run(main())
"""


def test_a_plugin_that_hangs_dies_with_a_crawl_that_is_killed() -> None:
    """E1, F10, N3: kill -9 of the crawl leaves nobody behind, whatever the plugin is doing."""
    support = Path(__file__).parents[2] / "support"
    program = f"import sys; sys.path.insert(0, {str(support)!r})\n{PROGRAM}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as crawl:
        assert crawl.stdout is not None
        pid = int(crawl.stdout.readline())
        assert _is_there(pid)
        crawl.kill()
    deadline = time.monotonic() + 20
    while _is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_there(pid)


def _is_there(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
