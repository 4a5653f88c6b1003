"""The process that computes ranks: what it leaves, how it fails, with whom it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from killing import is_alive
from simulation import PATIENT, simulate
from waiting import wait_until

from nephila.config import write_stored
from nephila.node.importance.birth import bear
from nephila.ranking import DOMAINS, PAGES, held
from nephila.testing.web import SimulatedWeb, WebSpec

SETTINGS = replace(PATIENT, limits=replace(PATIENT.limits, max_wait_s=250.0))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ranker") / "crawl"
    simulate(SimulatedWeb(WebSpec(5, 8, 40)), out, SETTINGS)
    write_stored(out, SETTINGS)
    return out


async def ended(out: Path) -> tuple[int | None, str]:
    process = await bear(out)
    _, said = await process.communicate()
    return process.returncode, said.decode()


def test_it_leaves_the_ranks_of_the_crawl(out: Path) -> None:
    """R3: computed in a process of its own."""
    assert asyncio.run(ended(out)) == (0, "")
    assert {PAGES, DOMAINS} < {path.name for path in (out / "rank").iterdir()}


def test_it_leaves_it_to_whoever_is_doing_it(out: Path) -> None:
    """R3: one at a time; a second one ends at once, and is no failure."""
    with held(out / "rank") as is_ours:
        assert is_ours
        before = (out / "rank" / PAGES).stat().st_mtime_ns if (out / "rank" / PAGES).exists() else 0
        assert asyncio.run(ended(out)) == (0, "")
        after = (out / "rank" / PAGES).stat().st_mtime_ns if (out / "rank" / PAGES).exists() else 0
        assert before == after


def test_it_says_in_one_sentence_why_it_failed(tmp_path: Path) -> None:
    """R3: on standard error, for the crawl to tell."""
    code, said = asyncio.run(ended(tmp_path / "nothing"))
    assert code == 1
    assert said == f"there is no crawl at {tmp_path / 'nothing'}\n"


HELD = """
import asyncio, sys
from pathlib import Path
from nephila.node.importance import birth
held = "print('up', file=sys.stderr, flush=True); signal.pause()"
birth._PROGRAM = birth._PROGRAM.replace("live(sys.argv[2])", held)

async def main():
    process = await birth.bear(Path(sys.argv[1]))
    await process.stderr.readline()
    print(process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """R3: kill -9 of the crawl leaves nothing running."""
    parent = subprocess.Popen([sys.executable, "-c", HELD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        os.kill(child, signal.SIGINT)  # Ctrl-C is its crawl's to answer
        os.kill(child, signal.SIGTERM)
        assert is_alive(child)
    finally:
        parent.kill()
        parent.wait()
        if parent.stdout is not None:
            parent.stdout.close()
    wait_until(lambda: not is_alive(child), "the process outlives who started it")


def test_it_steps_back_before_anything_else(tmp_path: Path) -> None:
    """R3: a low priority, and the first to go where memory is short."""
    program = (
        "import sys; from nephila.node.importance import birth, premises; import os;"
        "premises.importance_of = lambda out: print(os.nice(0), open('/proc/self/oom_score_adj').read().strip());"
        "birth.live(sys.argv[1])"
    )
    found = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    niceness, score = map(int, found.stdout.split())
    assert niceness >= 10
    assert score >= 500
