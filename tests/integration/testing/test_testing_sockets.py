from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import dnslib
import pytest
import uvloop

from nephila.testing.web import (
    Auditor,
    AuditReport,
    Door,
    Fault,
    HostMix,
    RobotsKind,
    Role,
    SimulatedWeb,
    Timing,
    ViolationKind,
    WebServer,
    WebSpec,
)
from nephila.testing.web.atlas import Spot
from nephila.testing.web.service import Sent

AGENT = "Nephila/0.1 (+https://nephila.invalid/bot)"
SPEC = WebSpec(
    17,
    hosts=24,
    pages=480,
    host_mix=HostMix(refusing=0.06, nameless=0.06, slow=0),
    timing=Timing(latency_ms=0, slow_ms=5, drip_bytes_s=1e6, crawl_delay_s=0.01),
)


async def get(web: SimulatedWeb, host: str, target: str, **headers: str) -> bytes:
    """All bytes until the server closes."""
    address = web.address_of(host)
    assert address is not None
    reader, writer = await asyncio.open_connection(address, web.spec.port)
    try:
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        question = (
            f"GET {target} HTTP/1.1\r\nHost: {host}:{web.spec.port}\r\nUser-Agent: {AGENT}\r\nConnection: close\r\n"
        )
        writer.write(f"{question}{extra}\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


def pages(web: SimulatedWeb, role: Role) -> list[tuple[str, str]]:
    return [
        (host.name, web.atlas.target(Spot(host.number, page)))
        for host in web.hosts
        if host.door is Door.OPEN
        for page in range(host.pages)
        if web.atlas.role(host, page) is role
    ]


@pytest.fixture(params=[asyncio.SelectorEventLoop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def serve(
    request: pytest.FixtureRequest,
) -> Callable[[Callable[[WebServer], Awaitable[None]]], None]:
    def run(test: Callable[[WebServer], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(30), WebServer(SimulatedWeb(SPEC), Auditor(SimulatedWeb(SPEC))) as server:
                await test(server)

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(main())

    return run


Serve = Callable[[Callable[[WebServer], Awaitable[None]]], None]


def test_real_sockets_answer_byte_for_byte_what_the_web_says(serve: Serve) -> None:
    async def test(server: WebServer) -> None:
        web, now = server.web, time.time_ns() // 1_000_000
        for role in Role:
            for host, target in pages(web, role)[:2]:
                answer = web.answer(host, target, {}, now)
                if answer.fault is None:
                    assert await get(web, host, target) == answer.wire
        for host in web.hosts:
            if host.door is Door.OPEN:
                answer = web.answer(host.name, "/robots.txt", {}, now)
                assert await get(web, host.name, "/robots.txt") == answer.wire

    serve(test)


def test_codings_are_negotiated_over_the_wire(serve: Serve) -> None:
    async def test(server: WebServer) -> None:
        coded = 0
        for host, target in pages(server.web, Role.ARTICLE)[:10]:
            answer = await get(server.web, host, target, Accept_Encoding="gzip")
            expected = server.web.answer(host, target, {"accept-encoding": "gzip"}, time.time_ns() // 1_000_000)
            assert answer == expected.wire
            coded += b"Content-Encoding: gzip" in answer
        assert coded

    serve(test)


def test_faults_over_real_sockets(serve: Serve) -> None:
    async def test(server: WebServer) -> None:
        web = server.web
        for role in (Role.RESET, Role.RESET_BODY):
            with pytest.raises(ConnectionResetError):
                await get(web, *pages(web, role)[0])
        host, target = pages(web, Role.CUT)[0]
        assert await get(web, host, target) == web.answer(host, target, {}, 0).sent
        host, target = pages(web, Role.HANG)[0]
        assert web.answer(host, target, {}, 0).fault is Fault.HANG
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(get(web, host, target), 0.05)
        refusing = next(host.name for host in web.hosts if host.door is Door.REFUSING)
        with pytest.raises(ConnectionRefusedError):
            await get(web, refusing, "/")

    serve(test)


def test_every_address_listens_at_one_port_and_only_on_loopback(serve: Serve) -> None:
    async def test(server: WebServer) -> None:
        names = {listener.getsockname() for each in server._servers for listener in each.sockets}
        assert {port for _, port in names} == {server.port}
        assert {address for address, _ in names} == {
            host.address for host in server.web.hosts if host.door is Door.OPEN
        }
        assert all(address.startswith("127.") for address, _ in names)

    serve(test)


@pytest.mark.parametrize("tcp", [False, True])
def test_names_are_served(serve: Serve, tcp: bool) -> None:
    async def test(server: WebServer) -> None:
        host, _, port = server.resolver.partition(":")

        async def ask(name: str) -> dnslib.DNSRecord:
            query = dnslib.DNSRecord.question(name)
            return dnslib.DNSRecord.parse(await asyncio.to_thread(query.send, host, int(port), tcp=tcp, timeout=5))

        known = await ask("site0.test")
        assert str(known.rr[0].rdata) == server.web.address_of("site0.test")
        nameless = next(each.name for each in server.web.hosts if each.door is Door.NAMELESS)
        assert (await ask(nameless)).header.rcode == dnslib.RCODE.NXDOMAIN

    serve(test)


def test_clients_that_stay_do_not_keep_the_server_from_ending(serve: Serve) -> None:
    async def test(server: WebServer) -> None:
        _, _, port = server.resolver.partition(":")
        for address, number in (("127.0.0.1", int(port)), (server.web.hosts[0].address, server.port)):
            await asyncio.get_running_loop().create_connection(asyncio.Protocol, address, number)

    serve(test)


def test_the_auditor_sees_what_happens_on_real_sockets() -> None:
    """P5: overlap, hurry and forbidden pages are seen from the server's side."""

    async def main() -> AuditReport:
        web = SimulatedWeb(SPEC)
        auditor, log = Auditor(web, base_delay_ms=60_000), list[Sent]()
        async with WebServer(web, auditor, log=log) as server:
            host, target = next(
                page
                for page in pages(server.web, Role.FORBIDDEN)
                if (found := server.web.hosts.find(page[0])) and found.robots is RobotsKind.PARTS
            )
            first, second = await asyncio.gather(get(server.web, host, "/robots.txt"), get(server.web, host, target))
            assert sorted(sent.wire for sent in log) == sorted([first, second])
            await get(server.web, host, "/")
        return auditor.report()

    blamed = asyncio.run(main()).by_kind
    assert blamed[ViolationKind.FORBIDDEN] == 1
    assert blamed[ViolationKind.HURRY] >= 1


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, object], Path]]:
    ready, audit = tmp_path / "ready.json", tmp_path / "audit.json"
    command = [sys.executable, "-m", "nephila.testing.serve", "--seed", "3", "--hosts", "5", "--pages", "50"]
    with (tmp_path / "output").open("wb") as output:
        child = subprocess.Popen(
            [*command, "--json-ready", str(ready), "--audit", str(audit)], stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + 60
        while not ready.exists() and child.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=0.02)
        assert ready.exists(), (tmp_path / "output").read_text()
        yield child, json.loads(ready.read_text()), audit
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def test_the_web_can_be_a_process_of_its_own(
    process: tuple[subprocess.Popen[bytes], dict[str, object], Path],
) -> None:
    """P5: it outlives the crawler and tells what it saw."""
    child, told, audit = process
    web = SimulatedWeb(WebSpec(3, hosts=5, pages=50)).at_port(int(str(told["port"])))
    assert told["seeds"] == web.seeds()
    answer = asyncio.run(get(web, "site0.test", "/"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=10) == 0
    report = AuditReport.from_json(audit.read_text())
    assert report.asked == {"site0.test/": 1}
    assert report.by_kind == {ViolationKind.NO_RULES: 1}


def test_the_audit_can_be_asked_for_while_it_serves(
    process: tuple[subprocess.Popen[bytes], dict[str, object], Path],
) -> None:
    """P5: SIGUSR1 writes the report."""
    child, _, audit = process
    child.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + 60
    while not audit.exists() and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.02)
    assert AuditReport.from_json(audit.read_text()).requests == 0
    assert child.poll() is None
