"""A network that fails as planned: names, connections and answers, each fault drawn when its moment comes.

All faults of answers happen at the server's end, so that the auditor behind it knows which answers were whole. A fault
takes an answer's place only while the storm lasts; then everything works, and what was missed can be fetched.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import hashlib
import random
import re
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.exchange import FailureKind
from nephila.testing.clock import VirtualClock
from nephila.testing.web import Arrival, Auditor, Fault, ServedAnswer, SimulatedNetwork, SimulatedWeb
from nephila.testing.web.auditor import Ticket
from nephila.testing.web.inprocess import Cable
from nephila.testing.web.pipe import PipeTransport
from nephila.testing.web.service import Exchange, WebService
from nephila.testing.web.wire import write_answer

from .happenings import Happened, Happening
from .owners import OWNER
from .rulebook import Rulebook, Version
from .scenario import Scenario, Storm
from .sitemaps import TARGET as SITEMAP
from .sitemaps import Sitemaps

_H = Happening
DNS_SILENCE_S = 9.0
"""What a resolver takes to find out that nobody answers: three tries of three seconds."""
_LOAD_WINDOW_MS = 5000.0
_ELSEWHERE = 150
"""Hosts that move get addresses of 127.150.x.x and on."""


@dataclass(frozen=True, slots=True)
class Wall:
    """A time in which a host answers nothing but 429 or 503."""

    from_ms: float
    until_ms: float
    status: int
    retry_after_s: int


class StormyService(WebService):
    """The servers of the web, with faults."""

    def __init__(self, scenario: Scenario, web: SimulatedWeb, auditor: Auditor, rules: Rulebook, sky: Sky) -> None:
        super().__init__(web, auditor, now_ms=sky.now_ms, wall_ms=sky.clock.wall_ms)
        self._storm, self._rules, self._sky = scenario.storm, rules, sky
        self._timeout_s = scenario.settings.fetch.timeout_s
        self.sitemaps = Sitemaps(web, random.Random(f"{scenario.seed} sitemaps"), scenario.sitemaps)
        self._given: dict[str, Version] = {}
        self._lately: dict[str, deque[float]] = {}
        self._walls: dict[str, Wall] = {}
        self._loaded: set[str] = set()
        self._addresses: dict[str, set[str]] = {}
        self.digest = hashlib.sha256()
        """Of all that was asked: when, of whom, for what."""
        self.requests = 0
        for host in web.hosts:
            self._draw_manners(host.name)

    def _draw_manners(self, host: str) -> None:
        draw, storm = self._sky.draw, self._storm
        if draw.random() < storm.walls:
            begin = draw.uniform(0, storm.lasts_s * 500)
            told = draw.choice((0, 1, 5, 30))
            self._walls[host] = Wall(begin, begin + draw.uniform(1000, 20_000), draw.choice((429, 503)), told)
        if draw.random() < storm.overloaded:
            self._loaded.add(host)

    def arrived(self, arrival: Arrival) -> Ticket | None:
        """Write down what was asked, then as ever."""
        if self._sky.dark:
            return None
        self.requests += 1
        self.digest.update(f"{arrival.at_ms:.6f} {arrival.address} {arrival.host} {arrival.target}\n".encode())
        hosts = self._addresses.setdefault(arrival.address, set())
        hosts.add(arrival.host)
        if len(hosts) == 2:
            self._sky.happened[_H.SHARED_ADDRESS] += 1
        return super().arrived(arrival)

    def answer(self, host: str, target: str, headers: dict[str, str]) -> ServedAnswer:
        """The web's answer, or what becomes of it in this weather."""
        if self._sky.dark:
            return write_answer(503, [], b"", close=True)
        answer = super().answer(host, target, headers)
        if target == SITEMAP and (listed := self.sitemaps.answer(host)) is not None:
            answer = replace(listed, delay_s=answer.delay_s, close=answer.close)
        if target == "/robots.txt" and self._rules.flaps(host):
            return self._flapping(host, answer)
        if not self._sky.stormy:
            return answer
        now_ms = self.now_ms()
        wall = self._walls.get(host)
        if wall is not None and target != "/robots.txt" and wall.from_ms <= now_ms < wall.until_ms:
            self._sky.happened[_H.WALL_TOLD if wall.retry_after_s else _H.WALL_SILENT] += 1
            return _refusal(wall.status, wall.retry_after_s, answer)
        if host in self._loaded:
            answer = self._under_load(host, answer, now_ms)
        if self._sky.draw.random() < self._storm.answers:
            answer = self._spoil(answer, is_robots=target == "/robots.txt")
        return answer

    def answered(self, ticket: Ticket | None, exchange: Exchange, *, complete: bool) -> None:
        """Remember which rules were sent whole, then as ever."""
        arrival = exchange.arrival
        if ticket is not None and complete and arrival.target == "/robots.txt":
            self._rules.was_read(arrival.host, self.now_ms())
        if ticket is not None and complete and arrival.target == "/robots.txt" and self._rules.flaps(arrival.host):
            version = self._given.get(arrival.host)
            if version is not None and exchange.answer.status in (200, 404):
                changed = self._rules.was_sent(arrival.host, version, self.now_ms())
                self._sky.happened[_H.ROBOTS_CHANGED] += changed
                self._sky.happened[_H.ROBOTS_MISSING] += changed and version is Version.MISSING
        super().answered(ticket, exchange, complete=complete)

    def _flapping(self, host: str, ordinary: ServedAnswer) -> ServedAnswer:
        """One of its versions, or none."""
        draw, happened = self._sky.draw, self._sky.happened
        if self._sky.stormy and draw.random() < 0.4:
            kind = draw.choice((_H.ROBOTS_ERROR, _H.ROBOTS_BUSY, _H.ROBOTS_HANGS))
            happened[kind] += 1
            if kind is _H.ROBOTS_ERROR:
                return _refusal(500, 0, ordinary)
            if kind is _H.ROBOTS_BUSY:
                return _refusal(429, draw.choice((0, 3)), ordinary)
            return replace(ordinary, fault=Fault.HANG, fault_after=0, close=True)
        version = self._given[host] = self._rules.version(host, self.now_ms())
        return replace(version.answer(), delay_s=ordinary.delay_s, close=ordinary.close)

    def _under_load(self, host: str, answer: ServedAnswer, now_ms: float) -> ServedAnswer:
        lately = self._lately.setdefault(host, deque())
        while lately and lately[0] < now_ms - _LOAD_WINDOW_MS:
            lately.popleft()
        lately.append(now_ms)
        if len(lately) < 2:
            return answer
        self._sky.happened[_H.OVERLOADED] += 1
        return replace(answer, delay_s=min(answer.delay_s + 0.3 * len(lately), 0.7 * self._timeout_s))

    def _spoil(self, answer: ServedAnswer, *, is_robots: bool) -> ServedAnswer:
        """Let something go wrong with an answer."""
        draw = self._sky.draw
        kind = draw.choice(
            (
                *(_H.RESET_BEFORE_HEAD, _H.RESET_IN_HEAD, _H.RESET_IN_BODY, _H.CUT_IN_HEAD, _H.CUT_IN_BODY),
                *(_H.HANG_BEFORE_HEAD, _H.HANG_IN_HEAD, _H.HANG_IN_BODY, _H.SLOW),
            )
        )
        if answer.fault is not None or _is_harmless(kind, answer, is_robots=is_robots):
            return answer
        self._sky.happened[kind] += 1
        if kind is _H.SLOW:
            slow_s = answer.delay_s + draw.uniform(0.1, 0.6) * self._timeout_s
            return replace(answer, delay_s=min(slow_s, 0.8 * self._timeout_s))
        if kind in _IN_BODY:
            after = len(answer.head) + draw.randint(1, len(answer.payload) - 1)
        else:
            # Not in the last empty line: who leaves a part of that away has said all that matters, as has a robots.txt
            # whose redirect is told.
            most = answer.head.find(b"Location") if is_robots and answer.status < 400 else -1
            most = most if most > 0 else len(answer.head) - 5
            after = 0 if kind in (_H.RESET_BEFORE_HEAD, _H.HANG_BEFORE_HEAD) else draw.randint(1, most)
            answer = replace(answer, retry_after_ms=0)
        return replace(answer, fault=_FAULT_OF[kind], fault_after=after, close=True)


_LENGTH_TOLD = re.compile(rb"content-length:|chunked", re.IGNORECASE)
_IN_BODY = frozenset({_H.RESET_IN_BODY, _H.CUT_IN_BODY, _H.HANG_IN_BODY})
_FAULT_OF = {
    **dict.fromkeys((_H.RESET_BEFORE_HEAD, _H.RESET_IN_HEAD, _H.RESET_IN_BODY), Fault.RESET),
    **dict.fromkeys((_H.CUT_IN_HEAD, _H.CUT_IN_BODY), Fault.CUT),
    **dict.fromkeys((_H.HANG_BEFORE_HEAD, _H.HANG_IN_HEAD, _H.HANG_IN_BODY), Fault.HANG),
}


def _is_harmless(kind: Happening, answer: ServedAnswer, *, is_robots: bool) -> bool:
    """Whether an answer says as much as it would without that fault."""
    if is_robots and answer.status != 200 and kind in _IN_BODY:
        return True  # its head says all
    if is_robots and answer.status >= 400 and kind is _H.CUT_IN_HEAD:
        return True  # its status does
    if kind is _H.CUT_IN_BODY and not _LENGTH_TOLD.search(answer.head):
        return True  # an answer that ends with its connection is whole wherever that ends
    return kind in _IN_BODY and len(answer.payload) < 2


def _refusal(status: int, retry_after_s: int, ordinary: ServedAnswer) -> ServedAnswer:
    told = [("Retry-After", str(retry_after_s))] if retry_after_s else []
    answer = write_answer(status, [("Content-Type", "text/plain"), *told], b"not now\n")
    return replace(answer, retry_after_ms=retry_after_s * 1000, delay_s=ordinary.delay_s, close=ordinary.close)


@dataclass(slots=True)
class Sky:
    """What all parts of the weather share."""

    clock: VirtualClock
    draw: random.Random
    happened: Happened
    storm: Storm
    calm: bool = False
    """The last life: nothing goes wrong any more."""
    dark: bool = False
    """The crawler is dead and being unwound: nobody may take what it does for something that happened."""

    @property
    def stormy(self) -> bool:
        """Whether faults happen now."""
        return not (self.calm or self.dark) and self.clock.elapsed_s() < self.storm.lasts_s

    def now_ms(self) -> float:
        """The servers' clock."""
        return self.clock.elapsed_s() * 1000


class StormyNetwork(SimulatedNetwork):
    """Resolver and dialer of a scenario."""

    def __init__(self, scenario: Scenario, web: SimulatedWeb, auditor: Auditor, rules: Rulebook, sky: Sky) -> None:
        super().__init__(web, sky.clock, auditor)
        self.service: StormyService = StormyService(scenario, web, auditor, rules, sky)
        self.sky = self._sky = sky
        self._storm = scenario.storm
        self._moves: dict[str, tuple[float, str]] = {}
        self._gone: dict[str, tuple[float, float]] = {}
        self._held: list[tuple[int, PipeTransport]] = []
        for host in web.hosts:
            if host.address and sky.draw.random() < self._storm.moving:
                address = f"127.{_ELSEWHERE}.1.{1 + host.number % 250}"
                self._moves[host.name] = (sky.draw.uniform(0, self._storm.lasts_s * 700), address)
                self._doors[address] = host.door

    async def resolve(self, host: str) -> Resolved | Unresolved:
        """The address of a name, or what a name server says instead."""
        sky = self._sky
        if sky.stormy and sky.draw.random() < self._storm.names:
            kind = sky.draw.choice((_H.DNS_SILENT, _H.DNS_FAILS, _H.NO_SUCH_NAME))
            sky.happened[kind] += 1
            await asyncio.sleep(DNS_SILENCE_S if kind is _H.DNS_SILENT else 2 * self._cable.latency_s)
            if kind is _H.NO_SUCH_NAME:
                return Unresolved(FailureKind.NO_SUCH_NAME, f"{host} does not exist just now")
            return Unresolved(FailureKind.DNS, "no answer" if kind is _H.DNS_SILENT else "SERVFAIL")
        answer = await super().resolve(host)
        move = self._moves.get(host)
        if move is not None and isinstance(answer, Resolved) and sky.now_ms() >= move[0]:
            if not sky.dark:
                sky.happened[_H.ADDRESS_CHANGED] += 1
            return Resolved((move[1],), answer.ttl_s)
        return answer

    async def open(
        self,
        factory: Callable[[], asyncio.Protocol],
        address: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
        source: str = "",
    ) -> asyncio.Transport:
        """A connection, if the weather allows it."""
        sky = self._sky
        if sky.stormy and sky.draw.random() < self._storm.connects:
            kind = sky.draw.choice((_H.CONNECT_REFUSED, _H.CONNECT_HANGS))
            sky.happened[kind] += 1
            if kind is _H.CONNECT_HANGS:
                await asyncio.Event().wait()
            await asyncio.sleep(2 * self._cable.latency_s)
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed ('{address}', {port})")
        return await super().open(factory, address, port, tls=tls, server_name=server_name, source=source)

    def busy_owner(self) -> int:
        """A process that waits for an answer now; 0 where none does."""
        holders = {id(transport): holder for holder, transport in self._held}
        for connection in sorted(self.service.connections, key=lambda one: one._connection):
            if connection._exchange is not None:
                far = connection._transport
                return holders.get(id(far._far), 0) if isinstance(far, PipeTransport) else 0
        return 0

    def hang_up(self, owner: int) -> None:
        """A process is dead: its connections are reset."""
        for holder, transport in self._held:
            if holder == owner:
                transport.sever()
        self._held = [(holder, transport) for holder, transport in self._held if holder != owner]

    def hang_up_all(self) -> None:
        """Everybody is dead, and for the servers every answer that was under way has ended now."""
        for connection in sorted(self.service.connections, key=lambda one: one._connection):
            connection.connection_lost(None)
        self._held.clear()

    def _cable_to(self, address: str) -> Cable:
        if self._sky.stormy and self._sky.draw.random() < self._storm.dribbles:
            self._sky.happened[_H.DRIBBLED] += 1
            return Cable(self._cable.latency_s, 1)
        return super()._cable_to(address)

    def _context(self) -> contextvars.Context | None:
        return contextvars.copy_context()

    def _connect(self, client: asyncio.Protocol, peer: tuple[str, int], source: str) -> PipeTransport:
        transport = super()._connect(client, peer, source)
        self._held = [(holder, one) for holder, one in self._held if not one._lost]
        self._held.append((OWNER.get(), transport))
        return transport
