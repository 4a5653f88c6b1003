"""A worker of a shared frontier, and nothing else of a crawl: does what it is told on standard input, line by line.

    python turn_taker.py FOLDER NUMBER AMONG

`admit NAME ...` admits home pages and answers when that is durable; `toil SECONDS` admits one page after the other and
answers with how many. What it has open stays open until its input ends, or it is killed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.sharing import Sharing
from nephila.frontier.policy import Policy
from nephila.model.settings import FrontierSettings
from nephila.node.clock import SystemClock
from nephila.testing.contracts.frontier import candidates

LONG = FrontierSettings(linger_ms=0, commit_ms=60_000)
"""A store that is let go for others alone, as far as a test can wait."""


def policy_of(number: int, among: int) -> Policy:
    """That of a worker, or of whoever looks after workers (number 0)."""
    return Policy(LONG, base_delay_ms=1000, robots=False, sharing=Sharing(number, among) if number else None)


async def toil(frontier: LmdbFrontier, number: int, seconds: float) -> int:
    """Admit pages for so long, each in a group of its own."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        await frontier.admit(candidates(f"https://worker-{number}.example/{count}"))
        count += 1
    return count


def tell(answer: object) -> None:
    """Say it at once."""
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


async def main(folder: Path, number: int, among: int) -> None:
    """Obey until the input ends."""
    frontier = LmdbFrontier(folder, SystemClock(), policy_of(number, among), joining=True)
    tell("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.split():
            case ["admit", *names]:
                await frontier.admit(candidates(*(f"https://{name}.example/" for name in names)))
                tell("admitted")
            case ["toil", seconds]:
                tell(await toil(frontier, number, float(seconds)))
            case other:
                raise ValueError(other)
    await frontier.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
