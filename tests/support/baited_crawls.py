"""Crawls of the baited web: a program for `namespace.run_alone`, which writes down what came of them.

    python baited_crawls.py FOLDER

Every crawl runs through the command line. FOLDER/evidence.json then holds for each of them: the summary, what was
connected to, what the proxies were asked for, and the story of every URL that was laid out.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bait import (
    BAIT,
    PUBLIC,
    PUBLIC_6,
    SILENT,
    SITE,
    TURN_PAGES,
    TURNS,
    Case,
    literals,
    names,
    redirected,
    robots_redirects,
)
from bait_servers import HTTP_PROXY_PORT, RESOLVER_PORT, SOCKS_PORT, Servers
from namespace import enter
from served import nephila

METADATA_SEED = Case("http://169.254.169.254/latest/meta-data/", "metadata service")
RESOLVER = ("--resolver", f"127.0.0.1:{RESOLVER_PORT}")
EAGER = (
    *("--scope", "all", "--delay", "0", "--max-wait", "1", "--max-time", "40", "--timeout", "3", "--json"),
    *("--set", "dns.min_ttl_s=0", "--set", "fetch.keep_alive_s=0"),
    *("--set", "frontier.retry_waits_s=0.05,0.05,0.05"),
)
"""Every connection asks for its name anew, so that a name can change its answer each time."""

OPENED = ("10.0.0.0/24", "fd12::/64")
OPEN = [
    *("http://10.0.0.5/open", "http://10.0.0.77/open", "http://[::ffff:10.0.0.5]/mapped", "http://[fd12::1]/open"),
    *("http://inner.test/open", "http://alias.test/open"),
]
STILL_SHUT = [
    *(Case("http://10.0.1.1/shut", "private"), Case("http://[fd12:0:0:1::1]/shut", "private")),
    *(Case("http://[64:ff9b::a00:5]/shut", "NAT64 of private"), Case("http://[2002:a00:5::1]/shut", "6to4 of private")),
    *(Case("http://127.0.0.1/shut", "loopback"), Case("http://169.254.169.254/shut", "metadata service")),
    Case("http://n4.bait.test/shut", "private"),
]


def turn_pages() -> list[str]:
    """Pages of the names that change their answers."""
    return [f"http://{name}/page/{number}" for name in TURNS for number in range(TURN_PAGES)]


@dataclass(frozen=True)
class Scenario:
    """One crawl: its flags, what the site links to, where its redirects lead."""

    name: str
    flags: tuple[str, ...]
    links: Sequence[str]
    redirects: Sequence[Case] = ()
    seeds: tuple[str, ...] = (SITE,)

    @property
    def urls(self) -> list[str]:
        """Every URL that was laid out."""
        return [*self.seeds, *self.links, *(case.url for case in self.redirects)]


def scenarios() -> list[Scenario]:
    """All crawls."""
    innocent = ["http://six.test/", "http://mixed.test/", "http://mixed-silent.test/", f"http://[{PUBLIC_6}]/page"]
    links = [case.url for case in (*literals(), *names())]
    links += [f"http://{host}/page" for host in robots_redirects()] + turn_pages() + innocent
    everything: dict[str, Any] = {"links": links, "redirects": redirected()}
    by_address = [case for case in redirected() if ".bait.test" not in case.url]
    local = ["http://localhost/name", "http://deep.localhost/name"]
    seeds = (SITE, METADATA_SEED.url)
    return [
        Scenario("direct", RESOLVER, **everything, seeds=seeds),
        Scenario("http proxy", (*RESOLVER, "--proxy", f"http://127.0.0.1:{HTTP_PROXY_PORT}"), **everything),
        Scenario("socks5 proxy", (*RESOLVER, "--proxy", f"socks5://127.0.0.1:{SOCKS_PORT}"), **everything),
        Scenario(
            "no robots",
            ("--no-robots",),
            [*(case.url for case in literals()), *local],
            by_address,
            seeds=(f"http://{PUBLIC}/",),
        ),
        Scenario(
            "opened",
            (*RESOLVER, *(word for cidr in OPENED for word in ("--allow-address", cidr))),
            [*OPEN, *(case.url for case in STILL_SHUT)],
            [Case("http://10.0.0.5/redirected", ""), Case("http://10.0.1.1/redirected", "private")],
        ),
    ]


async def crawl(scenario: Scenario, servers: Servers, folder: Path) -> dict[str, Any]:
    """Crawl, and say what came of it."""
    from nephila.node.inspect import open_view  # noqa: PLC0415 - the loop's own program needs nothing of it

    innocent = [f"{scenario.seeds[0]}go/{number}" for number in range(len(scenario.redirects))]
    servers.begin([*scenario.links, *innocent], [case.url for case in scenario.redirects])
    out = folder / scenario.name.replace(" ", "-")
    command = nephila("crawl", *scenario.seeds, "--out", out, *EAGER, *scenario.flags)
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    printed, complaints = await asyncio.wait_for(process.communicate(), 60)
    if process.returncode:
        raise SystemExit(f"{scenario.name}: exit {process.returncode}\n{complaints.decode()}")
    view = open_view(out)
    stories = {}
    for url in scenario.urls:
        told = view.why(url)
        stories[url] = {"address": told.lines[0][1], **told.data}
    return {
        "out": str(out),
        "summary": json.loads(printed),
        "accepted": dict(servers.accepted),
        "proxied": dict(servers.proxied),
        "why": stories,
    }


async def main(folder: Path) -> None:
    """Serve the bait and crawl it in every way."""
    servers = Servers()
    async with servers.serving():
        evidence = {scenario.name: await crawl(scenario, servers, folder) for scenario in scenarios()}
        knocked = await servers.knock()
    (folder / "evidence.json").write_text(json.dumps({"crawls": evidence, "knocked": knocked}))


if __name__ == "__main__":
    there_already = ("127.0.0.1", "127.0.0.53", "::1")
    enter([address for address in (*BAIT, PUBLIC, PUBLIC_6, SILENT) if address not in there_already])
    asyncio.run(main(Path(sys.argv[1])))
