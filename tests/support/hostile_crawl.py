"""The program of the hostile crawls: in a network namespace with loopback only, serves the web and crawls it.

    python hostile_crawl.py FOLDER [--large]

Two crawls of the same honest hosts: alone, and among all hostile ones. Each is interrupted when the honest hosts have
been crawled and every hostile one has been asked. What came of it is written to ``evidence.json``: when requests
arrived, the crawler's anonymous memory, sampled while it ran, what it printed. ``--large`` uses the default limits for
sizes and a longer crawl.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from hostile_servers import PRIVATE, RESOLVER_PORT, HostileWeb
from namespace import enter
from served import nephila

HONEST = 10
DELAY_S = 0.5
SMALL = ("--max-bytes", "200000", "--set", "fetch.max_decoded_bytes=1000000")
SAMPLE_S = 0.05


def flags(authority: Path, *, large: bool) -> list[str]:
    """Of the crawl."""
    return [
        *("--scope", "all", "--delay", str(DELAY_S), "--max-wait", "3", "--max-depth", "3", "--json"),
        *("--resolver", f"127.0.0.1:{RESOLVER_PORT}", "--ca-file", str(authority)),
        *("--allow-address", "127.2.0.0/16", "--allow-address", "127.3.0.0/16"),
        *("--timeout", "3", "--set", "fetch.connect_timeout_s=2", "--set", "frontier.retry_waits_s=0.3"),
        *("--set", "frontier.max_retries=1", "--set", "robots.retry_s=1", "--max-time", "240" if large else "90"),
        *(() if large else SMALL),
    ]


def anonymous_bytes(pid: int) -> int:
    """The anonymous memory of a process now; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def is_done(web: HostileWeb, pages: int, *, hostile: bool) -> bool:
    """Whether there is nothing left to see."""
    asked = not hostile or all(web.connections[address] for address in (*web.hostile.values(), *web.secure.values()))
    return asked and len(web.fetched) == HONEST and all(len(paths) > pages for paths in web.fetched.values())


async def crawl(folder: Path, *, hostile: bool, large: bool) -> dict[str, Any]:
    """One crawl, and what came of it."""
    pages = 60 if large else 24
    web = HostileWeb(HONEST, pages, seed=7)
    authority = folder / "authority.pem"
    web.tls.write_authority(authority)
    out = folder / ("mixed" if hostile else "honest")
    async with web.serving():
        command = nephila("crawl", *web.seeds(hostile=hostile), "--out", out, *flags(authority, large=large))
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(*command, **pipes)
        talking = asyncio.create_task(process.communicate())
        peak, interrupted = 0, False
        while not talking.done():
            peak = max(peak, anonymous_bytes(process.pid))
            await asyncio.wait({talking}, timeout=SAMPLE_S)
            if not interrupted and is_done(web, pages, hostile=hostile):
                interrupted = True
                process.send_signal(signal.SIGINT)
            if time.monotonic() - begun > 400:
                process.kill()
        printed, complaints = await talking
        return {
            "out": str(out),
            "exit": process.returncode,
            "seconds": time.monotonic() - begun,
            "stderr": complaints.decode(errors="replace"),
            "summary": json.loads(printed or b"{}"),
            "peak_anonymous_bytes": peak,
            "arrivals": web.arrivals,
            "fetched": {name: len(paths) for name, paths in web.fetched.items()},
            "connections": dict(web.connections),
            "trespasses": web.trespasses(),
            "hostile": {**web.hostile, **web.secure},
            "pages": pages,
        }


async def main(folder: Path, *, large: bool) -> None:
    """Both crawls."""
    told = {name: await crawl(folder, hostile=name == "mixed", large=large) for name in ("honest", "mixed")}
    (folder / "evidence.json").write_text(json.dumps(told))


if __name__ == "__main__":
    enter(PRIVATE)
    asyncio.run(main(Path(sys.argv[1]), large="--large" in sys.argv))
