"""Names to addresses: an asynchronous stub resolver with a cache, and no threads (H4).

Resolvers are tried in turn, those that failed a short while ago last (`dns_servers`), as often as the settings say. A
refusal or a server failure is an answer of that resolver alone: the next one is asked. So it is where addresses of one
type could not be had in full (they do not fit a datagram, and TCP is barred); if nobody has them, the other type must
do. That a name does not exist is believed at once. When none answers, the last known addresses are used, for a day at
most, and marked stale. Equal questions asked at the same time are one question. IPv4 addresses come before IPv6 ones:
crawling machines without working IPv6 are common, servers without IPv4 are not, and the fetcher goes on to the next
address when one fails.

With resolvers of the user's own, only these are asked: the hosts file and the special meaning of ``localhost`` belong
to the machine's own configuration.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from itertools import cycle, islice

from nephila.interfaces.clock import Clock
from nephila.interfaces.network import Resolved, SharedNames, Unresolved
from nephila.model.exchange import FailureKind
from nephila.model.settings import DnsSettings

from .dns_cache import DnsCache
from .dns_message import RecordType, ReplyCode, UnsendableNameError
from .dns_query import Replies, query
from .dns_servers import ServerOrder
from .dns_system import SystemNames, read_name_server, read_system_names

Answer = Resolved | Unresolved


def _random_id() -> int:
    return secrets.randbits(16)


class DnsResolver:
    """A `Resolver` over real sockets."""

    def __init__(
        self,
        settings: DnsSettings,
        clock: Clock,
        system: SystemNames | None = None,
        draw_id: Callable[[], int] = _random_id,
        shared: SharedNames | None = None,
    ) -> None:
        """`system` stands in for the machine's own files; `shared` knows what other workers have learned.

        Raises `UsageError` for a resolver that is no address.
        """
        self._settings = settings
        self._clock = clock
        self._draw_id = draw_id
        self._shared = shared
        self._system = system or (SystemNames() if settings.resolvers else read_system_names())
        own = tuple(read_name_server(text) for text in settings.resolvers)
        self._consult_system = not own
        self._servers = ServerOrder(own or self._system.servers)
        self._cache = DnsCache(settings)
        self._in_flight: dict[str, asyncio.Task[Answer]] = {}
        self.asked = self.found = 0
        """Names that were looked up, and how many of them were in the cache."""

    async def resolve(self, host: str) -> Answer:
        """The addresses of a name, from the cache where it still holds."""
        name = host.rstrip(".").lower()
        cached = self._cache.find(name, self._clock.steady_ms())
        self.asked += 1
        if cached is not None:
            self.found += 1
            return cached
        task = self._in_flight.get(name)
        if task is None:
            task = asyncio.create_task(self._look_up(name), name=f"dns {name}")
            self._in_flight[name] = task
            task.add_done_callback(lambda _: self._in_flight.pop(name, None))
        # One asker that gives up must not take the answer from the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End the questions in flight."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, name: str) -> Answer:
        local = self._system.find(name) if self._consult_system else ()
        if local:
            return Resolved(local, self._settings.min_ttl_s)
        known_elsewhere = await self._shared.find(name) if self._shared is not None else None
        answer = known_elsewhere or await self._ask_servers(name)
        if self._shared is not None and known_elsewhere is None and isinstance(answer, Resolved):
            await self._shared.keep(name, answer)
        if isinstance(answer, Unresolved) and answer.kind is FailureKind.DNS:
            known = self._cache.last_good(name, self._clock.steady_ms())
            if known is not None:
                answer = Resolved(known.addresses, 0.0, stale=True)
        self._cache.store(name, answer, self._clock.steady_ms())
        return answer

    async def _ask_servers(self, name: str) -> Answer:
        servers = self._servers.at(self._clock.steady_ms())
        if not servers:
            return Unresolved(FailureKind.DNS, "no name server is configured")
        detail, part = "", None
        for server in islice(cycle(servers), self._settings.tries):
            try:
                replies = await query(server, name, self._draw_id, self._settings.timeout_s)
            except UnsendableNameError as error:
                return Unresolved(FailureKind.NO_SUCH_NAME, str(error))
            whole = {kind: reply for kind, reply in replies.items() if not reply.truncated}
            answer = _judge(name, whole)
            if answer is not None and len(whole) == len(replies):
                self._servers.answered(server)
                return answer
            part = part or answer
            if replies:
                self._servers.failed(server, self._clock.steady_ms())
            else:
                self._servers.silent(server, self._clock.steady_ms())
            detail = _complaint(replies)
        return part or Unresolved(FailureKind.DNS, f"{name}: {detail}")


def _judge(name: str, replies: Replies) -> Answer | None:
    """What the replies of one server come to; None when another one has to be asked."""
    found = [reply for kind in (RecordType.A, RecordType.AAAA) if (reply := replies.get(kind)) and reply.addresses]
    if found:
        addresses = tuple(address for reply in found for address in reply.addresses)
        return Resolved(addresses, float(min(reply.ttl_s for reply in found)))
    nothing_s = float(min((reply.negative_ttl_s for reply in replies.values()), default=0))
    if any(reply.code == ReplyCode.NO_SUCH_NAME for reply in replies.values()):
        return Unresolved(FailureKind.NO_SUCH_NAME, f"{name} does not exist", nothing_s)
    if len(replies) == 2 and all(reply.code == ReplyCode.OK for reply in replies.values()):
        return Unresolved(FailureKind.NO_SUCH_NAME, f"{name} has no address", nothing_s)
    return None


def _complaint(replies: Replies) -> str:
    codes = {reply.code for reply in replies.values() if reply.code}
    return f"the name server failed with code {min(codes)}" if codes else "no name server answered"
