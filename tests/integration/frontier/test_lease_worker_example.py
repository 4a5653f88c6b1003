"""N2, N3: the lease protocol is enough for a worker in another language; the example in JavaScript is one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from redis_harness import policy_for
from valkey_servers import ValkeySingle

from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.model.outcome import OriginRules, Pace, Release, RulesKind, RulesLearned, Settlement
from nephila.model.task import Candidate, RobotsTask
from nephila.node.clock import SystemClock
from nephila.testing.contracts.frontier import addresses
from nephila.testing.contracts.frontier_policy import Options

EXAMPLE = Path(__file__).parents[3] / "examples" / "lease_worker.js"
PAGES = 3


class Site(BaseHTTPRequestHandler):
    """Says which page was asked for."""

    def do_GET(self) -> None:
        body = f"page {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is given
        """Silent."""


def test_a_worker_in_javascript_leases_fetches_and_settles(tmp_path: Path) -> None:
    """N2, N3, F3: what it settled is completed, each page once, and a host is asked after its delay."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    urls = [f"http://127.0.0.1:{site.server_port}/{page}" for page in range(PAGES)]

    async def run(server: str) -> None:
        frontier = await RedisFrontier.open(
            [server],
            "example",
            policy_for(Options(), robots=False),
            worker="ours",
            clock=SystemClock(),
            options=Opening(shards=3),
        )
        await frontier.admit([Candidate(address, 0) for address in addresses(*urls)])
        command = [node, str(EXAMPLE), server, "example", str(PAGES)]
        worker = await asyncio.to_thread(
            subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert worker.returncode == 0, worker.stderr
        told = [line.split() for line in worker.stdout.splitlines()]
        assert sorted(url for _, url, _ in told) == sorted(urls)
        assert {(what, status) for what, _, status in told} == {("settled", "200")}
        snapshot = await frontier.look()
        assert (snapshot.pages, snapshot.states["completed"], snapshot.hosts_leased) == (PAGES, PAGES, 0)
        story = frontier.story("127.0.0.1", addresses(urls[0])[0].fingerprint)
        assert story is not None
        assert (story.state, story.status) == ("completed", 200)
        body = (tmp_path / "bodies").read_bytes()
        assert body[story.offset :].startswith(b"page /0")
        await frontier.close()

    try:
        with ValkeySingle() as valkey:
            asyncio.run(run(valkey.server.name))
    finally:
        site.shutdown()
        site.server_close()
        thread.join()


def test_a_worker_in_javascript_obeys_robots_txt_and_rests(tmp_path: Path) -> None:
    """N2, P1, P2: it asks for no page of an origin whose rules it cannot read, whether it was ever asked for or not."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    sites = [ThreadingHTTPServer((f"127.0.0.{number}", 0), Site) for number in (1, 2)]
    threads = [threading.Thread(target=site.serve_forever) for site in sites]
    for thread in threads:
        thread.start()
    urls = [f"http://127.0.0.{number}:{site.server_port}/page" for number, site in enumerate(sites, 1)]
    free, ruled = (url.removesuffix("/page") for url in urls)

    async def run(server: str) -> None:
        policy = policy_for(Options(), robots=True)
        frontier = await RedisFrontier.open(
            [server], "ruled", policy, worker="ours", clock=SystemClock(), options=Opening(shards=1)
        )
        await frontier.admit([Candidate(address, 0) for address in addresses(*urls)])
        now = (await frontier.look()).now
        for lease in await frontier.claim(2, 60):
            task = lease.tasks[0]
            assert isinstance(task, RobotsTask)
            kind = RulesKind.RULES if task.origin == ruled else RulesKind.ALLOW_ALL
            body = b"User-agent: *\nDisallow: /page\n" if task.origin == ruled else b""
            learned = RulesLearned(OriginRules(task.origin, kind, body, now, now + 3_600_000))
            await frontier.settle(lease.token, [Settlement(task, learned)], Release(0, Pace(50, 700)))
        command = [node, str(EXAMPLE), server, "ruled", "2"]
        worker = await asyncio.to_thread(
            subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert worker.returncode == 0, worker.stderr
        assert worker.stdout.split() == ["settled", f"{free}/page", "200"]
        for name in ("127.0.0.1", "127.0.0.2"):
            story = frontier.view.host(name)
            assert story is not None
            assert story.free_at - story.released_at >= 700, "a Crawl-delay binds, also where a lease is given back"
        await frontier.close()

    try:
        with ValkeySingle() as valkey:
            asyncio.run(run(valkey.server.name))
    finally:
        for site, thread in zip(sites, threads, strict=True):
            site.shutdown()
            site.server_close()
            thread.join()


def test_the_example_is_short() -> None:
    """N2: sixty lines are enough to show the protocol."""
    lines = EXAMPLE.read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.lstrip().startswith("//")]) <= 60
