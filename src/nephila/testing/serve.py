"""A simulated web as a process of its own: ``python -m nephila.testing.serve --seed 1 --hosts 50 --pages 2000``.

When everything listens, the ready file is written: where the name server is, which URLs to begin with. The audit is
written on SIGUSR1 and at the end (SIGTERM, SIGINT); SIGUSR2 tells the auditor that a new cycle begins. So a crawler can
be killed and started again beside it, and is judged by its whole life.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import uvloop

from .demo import demo_spec
from .web import (
    Auditor,
    BundleSite,
    Decorated,
    FramedSite,
    ListedSite,
    Naming,
    ScriptSite,
    SimulatedWeb,
    SoftMissing,
    WebServer,
    WebSpec,
)

KINDS = ("mixed", "plain", "demo", "listed", "scripts", "bundles", "fleet-bundles", "aliased")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal ends it."""
    options = _parser().parse_args(arguments)
    uvloop.run(_serve(options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nephila.testing.serve", description="Serve a simulated web.")
    parser.add_argument("--kind", choices=KINDS, default="mixed", help="what the web is like")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--page-bytes", type=int, default=3000, help="middle size of a page")
    parser.add_argument("--links", type=int, default=20, help="links on a page")
    parser.add_argument("--latency-ms", type=float, default=None, help="middle of the time to the first byte")
    parser.add_argument("--slow-ms", type=float, default=None, help="time to the first byte of slow hosts")
    parser.add_argument("--crawl-delay", type=float, default=None, help="the longest Crawl-delay, seconds")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--agent", default="Nephila", help="the product token that the crawler must use")
    parser.add_argument("--base-delay-ms", type=float, default=1000.0, help="the least delay that the auditor accepts")
    parser.add_argument("--tolerance-ms", type=float, default=0.0, help="how much of a delay may be missing")
    parser.add_argument("--seeds", type=int, default=1, help="how many URLs to begin with are told")
    parser.add_argument("--json-ready", type=Path, help="file to write once everything listens")
    parser.add_argument("--audit", type=Path, help="file for the audit's report")
    return parser


def spec_of(options: argparse.Namespace) -> WebSpec:
    """The web that the arguments describe."""
    if (special := _special_spec(options.kind, options.seed, options.pages)) is not None:
        return special
    sizes = {"page_bytes": options.page_bytes, "links_per_page": options.links}
    if options.kind == "plain":
        spec = WebSpec.plain(options.seed, hosts=options.hosts, pages=options.pages, **sizes)
    else:
        spec = WebSpec(options.seed, options.hosts, options.pages, **sizes)
    timing = spec.timing
    if options.latency_ms is not None:
        timing = replace(timing, latency_ms=options.latency_ms)
    if options.slow_ms is not None:
        timing = replace(timing, slow_ms=options.slow_ms)
    if options.crawl_delay is not None:
        timing = replace(timing, crawl_delay_s=options.crawl_delay)
    return replace(spec, agent=options.agent, timing=timing)


def _special_spec(kind: str, seed: int, pages: int) -> WebSpec | None:
    """A web that was made for one purpose."""
    made: dict[str, Callable[[], WebSpec]] = {
        "demo": demo_spec,
        "listed": lambda: listed_spec(seed),
        "scripts": lambda: script_spec(seed, pages),
        "bundles": lambda: bundle_spec(seed, pages),
        "fleet-bundles": lambda: bundle_spec(seed, pages, baited=False),
        "aliased": lambda: aliased_spec(seed, pages),
    }
    return made[kind]() if kind in made else None


def listed_spec(seed: int) -> WebSpec:
    """A web of three sites, each of which names its pages in another way (X3)."""
    sites = tuple(ListedSite(25, naming, label=naming) for naming in Naming)
    return WebSpec(seed, hosts=1, pages=1, traps=sites)


def aliased_spec(seed: int, pages: int) -> WebSpec:
    """A web of two sites: one whose items have as many URLs as links to them, one that never says 404 (D4, T4)."""
    sites = (Decorated(items=2 * pages, per_list=20, related=4), SoftMissing(articles=pages, gone=2 * pages))
    return WebSpec(seed, hosts=1, pages=1, traps=sites)


def script_spec(seed: int, pages: int) -> WebSpec:
    """A web of three sites: two whose pages are made by their scripts, and one that only looks like it (J1)."""
    sites = (ScriptSite(pages, label="spa"), ScriptSite(3, label="shop"), FramedSite(20, label="framed"))
    return WebSpec(seed, hosts=1, pages=1, traps=sites)


def bundle_spec(seed: int, pages: int, *, baited: bool = True) -> WebSpec:
    """A web of sites whose scripts lie on other hosts, one of which lets nobody have them, and the data of one (J3).

    `baited`: they also want data of an address that is not public, which belongs into a network of its own.
    """
    far = ScriptSite(3, label="shop", bundle="cdn-1.test", api="api-3.test", baited=baited)
    sites = (
        ScriptSite(pages, label="spa", bundle="cdn-1.test", baited=baited),
        BundleSite("cdn"),
        far,
        BundleSite("api", data_of=far, lasting="no-store"),
        ScriptSite(3, label="closed", bundle="shut-5.test", baited=baited),
        BundleSite("shut", forbids=True),
    )
    return WebSpec(seed, hosts=1, pages=1, traps=sites)


async def _serve(options: argparse.Namespace) -> None:
    web = SimulatedWeb(spec_of(options))
    auditor = Auditor(web, agent=options.agent, base_delay_ms=options.base_delay_ms, tolerance_ms=options.tolerance_ms)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def write_audit() -> None:
        if options.audit:
            auditor.dump(options.audit)

    loop.add_signal_handler(signal.SIGUSR1, write_audit)
    loop.add_signal_handler(signal.SIGUSR2, auditor.new_cycle)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with WebServer(web, auditor, options.port) as server:
        _announce(server, options)
        await ended.wait()
    write_audit()


def _announce(server: WebServer, options: argparse.Namespace) -> None:
    told = {
        "pid": os.getpid(),
        "port": server.port,
        "resolver": server.resolver,
        "seeds": server.web.trap_seeds() or server.web.seeds(options.seeds),
        "hosts": len(server.web.hosts),
        "pages": server.web.spec.pages,
        "allow_address": "127.0.0.0/8",
    }
    text = json.dumps(told)
    if options.json_ready:
        draft = options.json_ready.with_name(options.json_ready.name + ".draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(options.json_ready)
    else:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
