"""Contents and names that workers share, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from valkey_servers import ValkeySingle

from nephila.dedup import MemoryDigestIndex, SharedDigestIndex, forget_shared
from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.fetch.dns import DnsResolver
from nephila.fetch.dns_shared import SharedAddresses
from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.errors import EngineAwayError
from nephila.model.exchange import FailureKind
from nephila.model.settings import DnsSettings
from nephila.render import SharedShelf
from nephila.testing.contracts.digests import CHECKS, OpenIndex, sample_digest, sample_original

CLOCK_MS = 1_000


class Away:
    """Servers that do not answer."""

    asked = 0

    async def call(self, *_: object) -> object:
        self.asked += 1
        raise EngineAwayError("nobody there")

    async def run(self, *_: object) -> object:
        raise EngineAwayError("nobody there")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_shared_digest_index_keeps_the_contract(check: Callable[[OpenIndex], None]) -> None:
    """D2: whatever its servers do."""
    check(lambda: SharedDigestIndex(MemoryDigestIndex(), Away(), "contract"))


def test_a_body_is_known_to_others_when_its_segment_has_arrived(valkey: ValkeySingle) -> None:
    """D2, N2: and not before, for a revisit must not point at what may never arrive."""

    async def run() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        one, two = (SharedDigestIndex(MemoryDigestIndex(), state, "bodies") for _ in range(2))
        digest, original = sample_digest(1), sample_original(1)
        one.remember(digest, original)
        await two.ask(digest)
        assert two.find(digest) is None
        assert await one.share() == 0
        one.arrived([(digest, original.url, original.at)])
        assert await one.share() == 1
        assert two.find(digest) is None, "it is looked for before it is asked for"
        await two.ask(digest)
        assert two.find(digest) == original
        three = SharedDigestIndex(MemoryDigestIndex(), state, "others")
        await three.ask(digest)
        assert three.find(digest) is None, "N7: another crawl has contents of its own"
        two.remember(digest, sample_original(2))
        two.arrived([(digest, sample_original(2).url, sample_original(2).at)])
        await two.share()
        four = SharedDigestIndex(MemoryDigestIndex(), state, "bodies")
        await four.ask(digest)
        assert four.find(digest) == original, "the first one wins"
        await state.close()

    asyncio.run(run())


def test_servers_that_are_away_cost_a_second_copy_and_no_time() -> None:
    """D2, N4: what is to be shared waits; what is looked for counts as new, and is not waited for again and again."""

    async def run() -> None:
        away = Away()
        index = SharedDigestIndex(MemoryDigestIndex(), away, "bodies")
        for number in range(5):
            await index.ask(sample_digest(number))
        assert away.asked == 1
        index.remember(sample_digest(1), sample_original(1))
        index.arrived([(sample_digest(1), sample_original(1).url, sample_original(1).at)])
        assert await index.share() == 0
        assert index.find(sample_digest(1)) == sample_original(1)

    asyncio.run(run())


class Clock:
    """Stands still."""

    def steady_ms(self) -> int:
        return CLOCK_MS

    def wall_ms(self) -> int:
        return CLOCK_MS

    def boot_id(self) -> str:
        return "boot"


def test_an_address_is_looked_up_once_for_all_workers(valkey: ValkeySingle, tmp_path: Path) -> None:
    """H4: what one worker learned, another does not ask name servers for; failures are nobody's but one's own."""
    asked: list[str] = []

    class Asking(DnsResolver):
        async def _ask_servers(self, name: str) -> Resolved | Unresolved:
            asked.append(name)
            if name == "nowhere.test":
                return Unresolved(FailureKind.NO_SUCH_NAME, "no such name", 60.0)
            return Resolved(("192.0.2.1", "2001:db8::1"), 600.0)

    async def run() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        settings = DnsSettings(resolvers=("127.0.0.1:53",))
        workers = [
            Asking(settings, Clock(), shared=SharedAddresses(state, "names", most_s, settings.min_ttl_s))
            for most_s in (86_400.0, 86_400.0)
        ]
        for worker in workers:
            answer = await worker.resolve("example.test")
            assert isinstance(answer, Resolved)
            assert answer.addresses == ("192.0.2.1", "2001:db8::1")
            assert 590 < answer.ttl_s <= 600
        assert asked == ["example.test"]
        for worker in workers:
            assert isinstance(await worker.resolve("nowhere.test"), Unresolved)
        assert asked == ["example.test", "nowhere.test", "nowhere.test"]
        brief = SharedAddresses(state, "brief", 30.0, 5.0)
        await brief.keep("long.test", Resolved(("192.0.2.9",), 90_000.0))
        found = await brief.find("long.test")
        assert found is not None
        assert found.ttl_s <= 30, "no longer than the fleet shares names"
        await brief.keep("old.test", Resolved(("192.0.2.9",), 90_000.0, stale=True))
        assert await brief.find("old.test") is None
        await state.close()

    asyncio.run(run())


def test_what_is_taken_down_is_no_workers_original_any_more(valkey: ValkeySingle) -> None:
    """D2, K2: a worker forgets its own and what it has heard; on the servers only what names it goes."""

    async def run() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        one, two = (SharedDigestIndex(MemoryDigestIndex(), state, "purged") for _ in range(2))
        for number in (1, 2):
            original = sample_original(number)
            one.remember(sample_digest(number), original)
            one.arrived([(sample_digest(number), original.url, original.at)])
        assert await one.share() == 2
        await two.ask(sample_digest(1))
        names = {sample_original(1).url}.__contains__
        for index in (one, two):
            assert index.find(sample_digest(1)) is not None
            await index.forget_named(lambda _: True, names)
            assert index.find(sample_digest(1)) is None
        assert one.find(sample_digest(2)) == sample_original(2)
        await forget_shared(state, "purged", [sample_digest(1), sample_digest(2), sample_digest(3)], names)
        for number, is_there in ((1, False), (2, True)):
            await two.ask(sample_digest(number))
            assert (two.find(sample_digest(number)) is not None) is is_there
        await state.close()

    asyncio.run(run())


def test_what_is_kept_for_browsers_goes_as_a_whole(valkey: ValkeySingle) -> None:
    """K2, J1: nothing of it is left on the servers, and it fills again."""

    async def run() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        shelf = SharedShelf(state, "purged", 1_000_000)
        for name in ("a", "b"):
            assert await shelf.keep(name, b"data" * 100, 60_000)
        await shelf.clear()
        assert [await shelf.find(name) for name in ("a", "b")] == [None, None]
        assert await shelf.keep("a", b"anew", 60_000)
        assert await shelf.find("a") == b"anew"
        await state.close()

    asyncio.run(run())
