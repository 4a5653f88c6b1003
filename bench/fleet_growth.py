"""How the pages of a fleet grow with its workers, where answers take their time: for `nephila bench fleet --growth`.

Workers are processes that claim and settle on a real Valkey with pages that take 200 ms, 16 under way at once each; the
pages have no links, so that what is seen is claiming and settling. Politeness is off: hosts are asked again at once.

    python bench/fleet_growth.py [--seconds S]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from valkey_servers import ValkeySingle

from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate, Lease, Pace
from nephila.node.clock import SystemClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

ANSWER_S = 0.2
SLOTS = 16
HOSTS, PAGES = 200, 60
POLICY = Policy(FrontierSettings(look_ahead_ms=0, urls_per_lease=1), base_delay_ms=0, robots=False)


async def opened(name: str, crawl: str, worker: str) -> RedisFrontier:
    options = Opening(shards=32, joining=True)
    return await RedisFrontier.open([name], crawl, POLICY, worker=worker, clock=SystemClock(), options=options)


async def seed(name: str, crawl: str) -> None:
    """Hosts with enough pages for the longest run."""
    frontier, identifier = await opened(name, crawl, "seeds"), Identifier(7, NormalRules(), UrlLimits())
    for host in range(HOSTS):
        found = [identifier.identify(f"https://host{host}.test/page/{page}") for page in range(PAGES)]
        await frontier.admit([Candidate(one, 1) for one in found if isinstance(one, Address)])
    await frontier.close()


async def work(name: str, crawl: str, worker: str, seconds: float) -> int:
    """Claim, wait as long as an answer takes, settle; how many pages."""
    frontier, segment = await opened(name, crawl, worker), SegmentId(f"segment-{worker}")
    done, end, running = 0, time.monotonic() + seconds, set[asyncio.Task[None]]()

    async def page(lease: Lease, at: int) -> None:
        nonlocal done
        await asyncio.sleep(ANSWER_S)
        outcome = Done(RecordRef(segment, at, 90, at + 100), 200, b"d" * 32)
        settled = await frontier.settle(lease.token, [Settlement(lease.tasks[0], outcome)], Release(0, Pace(0)))
        done += settled.accepted and time.monotonic() <= end

    at = 0
    while time.monotonic() < end:
        for lease in await frontier.claim(SLOTS - len(running), 300) if len(running) < SLOTS else ():
            at += 100
            task = asyncio.create_task(page(lease, at))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.sleep(0.01)
    await asyncio.gather(*running)
    await frontier.close()
    return done


def measure(seconds: float, workers: tuple[int, ...] = (1, 2, 4)) -> dict[str, Any]:
    """Pages a second for each number of workers."""
    found: dict[str, float] = {}
    with ValkeySingle("--appendonly", "yes") as valkey:
        for count in workers:
            crawl = f"growth-{count}"
            asyncio.run(seed(valkey.server.name, crawl))
            command = [sys.executable, __file__, "--worker", valkey.server.name, crawl, "--seconds", str(seconds)]
            started = [
                subprocess.Popen([*command, "--name", f"w{number}"], stdout=subprocess.PIPE) for number in range(count)
            ]
            pages = sum(int(one.communicate()[0]) for one in started)
            found[str(count)] = round(pages / seconds, 1)
    return {
        "answer_s": ANSWER_S,
        "slots": SLOTS,
        "pages_per_s_by_workers": found,
        "possible_per_worker": SLOTS / ANSWER_S,
    }


def main() -> None:
    """Measure and print; or be one of the workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--worker", nargs=2, metavar=("SERVER", "CRAWL"), help=argparse.SUPPRESS)
    parser.add_argument("--name", default="w0", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(asyncio.run(work(*given.worker, given.name, given.seconds)))
    else:
        print(json.dumps(measure(given.seconds), indent=2))


if __name__ == "__main__":
    main()
