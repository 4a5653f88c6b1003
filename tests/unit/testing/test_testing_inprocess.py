from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest

from nephila.interfaces.network import Dialer, Resolved, Resolver, Unresolved
from nephila.model.exchange import FailureKind
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.web import (
    Auditor,
    Door,
    Expect,
    HostMix,
    RobotsKind,
    Role,
    SimulatedNetwork,
    SimulatedWeb,
    ViolationKind,
    WebSpec,
)
from nephila.testing.web.atlas import Spot
from nephila.testing.web.inprocess import Cable
from nephila.testing.web.service import Sent

AGENT = "Nephila/0.1 (+https://nephila.invalid/bot)"
SPEC = WebSpec(17, hosts=24, pages=480, host_mix=HostMix(stalling=0.05, refusing=0.06, nameless=0.06))


class Client:
    """Asks one question a connection over a resolver and a dialer, politely if told so."""

    def __init__(self, network: SimulatedNetwork, delay_s: float = 1.0) -> None:
        self.network = network
        self.delay_s = delay_s
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.free_at: defaultdict[str, float] = defaultdict(float)

    async def get(self, host: str, target: str) -> bytes:
        """All bytes that came until the connection ended or 30 s had passed; raises what the network raises."""
        loop = asyncio.get_running_loop()
        async with self.locks[host]:
            await asyncio.sleep(max(0.0, self.free_at[host] - loop.time()))
            try:
                return await self.exchange(host, target)
            finally:
                self.free_at[host] = loop.time() + self.delay_s

    async def exchange(self, host: str, target: str) -> bytes:
        resolver: Resolver = self.network
        dialer: Dialer = self.network
        resolved = await resolver.resolve(host)
        assert isinstance(resolved, Resolved)
        reader = asyncio.StreamReader()
        transport: asyncio.Transport | None = None
        collected = b""
        try:
            async with asyncio.timeout(30):
                transport = await dialer.open(
                    lambda: asyncio.StreamReaderProtocol(reader), resolved.addresses[0], self.network.web.spec.port
                )
                head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\nConnection: close\r\n\r\n"
                transport.write(head.encode())
                while data := await reader.read(65_536):
                    collected += data
        except TimeoutError:
            pass
        finally:
            if transport:
                transport.abort()
        return collected


class World:
    """A web, its network, its auditor and a client under virtual time."""

    def __init__(self, spec: WebSpec = SPEC, delay_s: float = 1.0, cable: Cable = Cable()) -> None:  # noqa: B008 - frozen
        self.clock = VirtualClock()
        self.web = SimulatedWeb(spec)
        self.log: list[Sent] = []
        self.auditor = Auditor(self.web)
        self.network = SimulatedNetwork(self.web, self.clock, self.auditor, cable=cable, log=self.log)
        self.client = Client(self.network, delay_s)

    def run(self, test: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            await test(self)

        run_virtual(main, self.clock)

    def page(self, role: Role) -> tuple[str, str]:
        return next(
            (host.name, self.web.atlas.target(Spot(host.number, page)))
            for host in self.web.hosts
            if host.door is Door.OPEN and not host.slow
            for page in range(host.pages)
            if self.web.atlas.role(host, page) is role
        )

    def host(self, door: Door) -> str:
        return next(host.name for host in self.web.hosts if host.door is door)


class PoliteCrawl:
    """Asks for every true page of every host, robots.txt first, and again for what recovers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.truth = world.web.truth()

    async def run(self) -> None:
        by_host: defaultdict[str, list[str]] = defaultdict(list)
        for url, page in self.truth.pages.items():
            by_host[page.host].append(url.removeprefix(f"http://{page.host}"))
        await asyncio.gather(*(self.crawl_host(host, targets) for host, targets in by_host.items()))

    async def crawl_host(self, host: str, targets: list[str]) -> None:
        while (await self.fetch(host, "/robots.txt")).startswith(b"HTTP/1.1 5"):
            """It recovers, or it would not be in the truth."""
        source = self.world.web.robots_source(host)
        if source != host:
            await self.fetch(source, "/robots.txt")
        for target in targets:
            recovers = self.truth.pages[f"http://{host}{target}"].expect is Expect.RECOVERS
            for _ in range(4 if recovers else 1):
                await asyncio.sleep(self.world.web.required_delay_ms(host) / 1000)
                if (await self.fetch(host, target)).startswith(b"HTTP/1.1 200"):
                    break

    async def fetch(self, host: str, target: str) -> bytes:
        client = self.world.client
        try:
            answer = await client.get(host, target)
        except ConnectionResetError:
            return b""
        wait_s = answer.partition(b"\r\nRetry-After: ")[2].partition(b"\r\n")[0]
        if wait_s:
            client.free_at[host] = max(client.free_at[host], asyncio.get_running_loop().time() + float(wait_s))
        return answer


async def crawl_politely(world: World) -> None:
    await PoliteCrawl(world).run()


def test_a_polite_crawl_of_the_whole_truth_is_not_blamed() -> None:
    """P5: a polite crawl under virtual time, judged by the server."""
    world = World()
    world.run(crawl_politely)
    report = world.auditor.report()
    assert report.violations == ()
    asked = {f"http://{name}" for name in report.asked}
    assert asked == set(world.web.truth().pages)
    assert world.clock.elapsed_s() > 45
    assert {200, 301, 404, 503, 0} <= set(report.statuses)


def test_the_same_crawl_runs_the_same_way_twice() -> None:
    first, second = World(), World()
    first.run(crawl_politely)
    second.run(crawl_politely)
    assert first.log == second.log


def test_an_impolite_crawl_is_blamed() -> None:
    """P2, P5: half the delay is a violation at nearly every request."""
    world = World(delay_s=0.5)
    world.run(crawl_politely)
    blamed = world.auditor.report().by_kind
    assert blamed[ViolationKind.HURRY] > 100
    assert ViolationKind.FORBIDDEN not in blamed


@pytest.mark.parametrize("segment_bytes", [1, 7, 16_384])
def test_what_arrives_is_what_the_web_says_byte_for_byte(segment_bytes: int) -> None:
    async def test(world: World) -> None:
        for role in (Role.ARTICLE, Role.DUPLICATE, Role.HOP, Role.NOT_FOUND, Role.PDF, Role.BUSY_ONCE, Role.ERROR):
            host, target = world.page(role)
            expected = world.web.answer(host, target, {}, world.clock.wall_ms())
            assert await world.client.get(host, target) == expected.wire
        assert [sent.wire for sent in world.log] == [
            world.web.answer(sent.host, sent.target, {}, world.clock.wall_ms()).wire for sent in world.log
        ]

    World(cable=Cable(segment_bytes=segment_bytes)).run(test)


def test_tries_are_counted_by_page_and_not_by_spelling() -> None:
    async def test(world: World) -> None:
        host, target = world.page(Role.BUSY_TWICE)
        tracked = target + ("&" if "?" in target else "?") + "gclid=1"
        answers = [await world.client.get(host, spelling) for spelling in (target, tracked, target)]
        assert [answer[9:12] for answer in answers] == [b"503", b"503", b"200"]

    World().run(test)


def test_faults_come_as_a_client_meets_them() -> None:
    async def test(world: World) -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(ConnectionResetError):
            await world.client.get(*world.page(Role.RESET))
        with pytest.raises(ConnectionResetError):
            await world.client.get(*world.page(Role.RESET_BODY))
        for role in (Role.CUT, Role.HANG_BODY, Role.HANG):
            host, target = world.page(role)
            began = loop.time()
            answer = world.web.answer(host, target, {}, 0)
            assert await world.client.get(host, target) == answer.sent
            assert (loop.time() - began > 29) == (role is not Role.CUT)
        await asyncio.sleep(1)
        assert [sent.complete for sent in world.log] == [False] * 5
        assert [sent.status and len(sent.wire) > 0 for sent in world.log] == [False, True, True, True, False]

    World().run(test)


def test_a_dripping_page_takes_its_time_and_arrives() -> None:
    async def test(world: World) -> None:
        host, target = world.page(Role.DRIP)
        began = asyncio.get_running_loop().time()
        answer = await world.client.get(host, target)
        assert answer == world.web.answer(host, target, {}, 0).wire
        took = asyncio.get_running_loop().time() - began
        assert took == pytest.approx(len(answer) / world.web.spec.timing.drip_bytes_s, abs=0.5)

    World().run(test)


def test_closed_doors_are_met_as_they_are() -> None:
    async def test(world: World) -> None:
        unknown = await world.network.resolve(world.host(Door.NAMELESS))
        assert isinstance(unknown, Unresolved)
        assert unknown.kind is FailureKind.NO_SUCH_NAME
        with pytest.raises(ConnectionRefusedError):
            await world.client.get(world.host(Door.REFUSING), "/")
        began = asyncio.get_running_loop().time()
        assert await world.client.get(world.host(Door.STALLING), "/") == b""
        assert asyncio.get_running_loop().time() - began == pytest.approx(30, abs=1)

    World().run(test)


def test_other_ports_other_addresses_and_tls_are_refused() -> None:
    async def test(world: World) -> None:
        context = ssl.create_default_context()
        with pytest.raises(ConnectionRefusedError):
            await world.network.open(asyncio.Protocol, world.web.hosts[0].address, 81)
        with pytest.raises(ConnectionRefusedError):
            await world.network.open(asyncio.Protocol, "127.9.9.9", 80)
        with pytest.raises(ssl.SSLError):
            await world.network.open(asyncio.Protocol, world.web.hosts[0].address, 80, tls=context)
        transport = await world.network.open(asyncio.Protocol, world.web.hosts[0].address, 80, source="127.0.0.9")
        assert transport.get_extra_info("sockname")[0] == "127.0.0.9"
        with pytest.raises(ssl.SSLError):
            await world.network.start_tls(transport, asyncio.Protocol(), context, "site0.test")

    World().run(test)


def test_a_connection_is_kept_for_several_questions_and_closed_when_idle() -> None:
    async def test(world: World) -> None:
        host = next(host for host in world.web.hosts if host.open and not host.closing)
        assert host.robots is not RobotsKind.MISSING
        reader = asyncio.StreamReader()
        transport = await world.network.open(lambda: asyncio.StreamReaderProtocol(reader), host.address, 80)
        question = f"GET /robots.txt HTTP/1.1\r\nHost: {host.name}\r\nUser-Agent: {AGENT}\r\n\r\n".encode()
        expected = world.web.answer(host.name, "/robots.txt", {}, 0).wire
        for _ in range(3):
            transport.write(question[:20])
            await asyncio.sleep(0.1)
            transport.write(question[20:])
            assert await reader.readexactly(len(expected)) == expected
        began = asyncio.get_running_loop().time()
        assert await reader.read() == b""
        assert asyncio.get_running_loop().time() - began == pytest.approx(world.web.spec.timing.idle_s, abs=0.1)

    World().run(test)


def test_a_client_that_leaves_ends_its_exchange_for_the_auditor() -> None:
    """P2, P5: a cancelled fetch ends when the server sees it, and the delay counts from there."""

    async def test(world: World) -> None:
        host, target = world.page(Role.HANG)
        await world.client.get(host, "/robots.txt")
        await world.client.get(host, target)
        await world.client.get(host, "/")
        await asyncio.sleep(1)
        assert ViolationKind.OVERLAP not in world.auditor.report().by_kind
        assert world.auditor.report().statuses[0] == 1

    World().run(test)


@pytest.mark.parametrize("request_bytes", [b"POST / HTTP/1.1\r\nHost: site0.test\r\n\r\n", b"nonsense\r\n\r\n"])
def test_what_is_no_get_is_turned_away(request_bytes: bytes) -> None:
    async def test(world: World) -> None:
        reader = asyncio.StreamReader()
        transport = await world.network.open(
            lambda: asyncio.StreamReaderProtocol(reader), world.web.hosts[0].address, 80
        )
        transport.write(request_bytes)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")

    World().run(test)
