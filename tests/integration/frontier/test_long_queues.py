"""F8, F10, N2, N3, N4: the far ends of long queues leave a real Valkey for a real PostgreSQL, and nothing is lost."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from long_queues import (
    ABOVE,
    KEEP,
    CutError,
    CuttingCaller,
    CuttingChunks,
    Drain,
    admit,
    chunks_in,
    opened,
    policy,
    spill_all,
    urls_of,
)
from postgres import Postgres, running
from valkey_servers import ValkeyServer, ValkeySingle

from nephila.engines.valkey_servers import servers_of
from nephila.frontier.moving import AskedFor, Row
from nephila.frontier.redis.exporting import RedisExport
from nephila.frontier.redis.spilling import GRACE_S, Spilling
from nephila.interfaces.chunks import ChunkStore
from nephila.interfaces.clock import Clock
from nephila.model.errors import FrontierError
from nephila.model.policy import Block
from nephila.model.task import Candidate, Level
from nephila.store.postgres import PostgresChunks
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses

HOST = "www.long.test"
_CRAWLS = count()


def name() -> str:
    return f"long-{next(_CRAWLS)}"


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    with ValkeySingle() as one:
        yield one.server


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with running() as one:
        yield one


@pytest.fixture
def chunks(database: Postgres) -> Iterator[PostgresChunks]:
    store = chunks_in(database)
    yield store
    store.close()


def bundles_here(valkey: ValkeyServer, crawl: str, host: str = HOST) -> int:
    return int(valkey.ask("ZCARD", f"nephila:{{{crawl}:0}}:z:{host}"))


def test_a_long_queue_is_kept_in_the_database_and_still_queued(valkey: ValkeyServer, chunks: PostgresChunks) -> None:
    """F8, D1, T8, N2: counters, stories and what is known are as before; the engine holds little more than the head."""

    async def run() -> None:
        crawl, urls = name(), urls_of(HOST, 500)
        frontier = await opened([valkey.name], crawl, policy(), VirtualClock(), chunks)
        assert await admit(frontier, urls) == 500
        before, all_bundles = frontier.snapshot(), bundles_here(valkey, crawl)
        stories = [frontier.story(one.host, one.fingerprint) for one in addresses(*urls)]
        done = await spill_all(frontier)
        after = frontier.snapshot()
        assert done.out == after.spilled >= 500 - ABOVE
        assert after.chunks >= 1
        assert replace(after, spilled=0, chunks=0) == before
        assert bundles_here(valkey, crawl) <= all_bundles * ABOVE // 500
        assert [frontier.story(one.host, one.fingerprint) for one in addresses(*urls)] == stories
        assert await admit(frontier, urls) == 0
        assert frontier.snapshot().urls == 500
        await frontier.close()

    asyncio.run(run())


def test_what_was_kept_elsewhere_comes_back_in_its_order(valkey: ValkeyServer, chunks: PostgresChunks) -> None:
    """F8, F6: the same pages in the same order as without, and the engine never holds many at once."""

    async def order_of(store: PostgresChunks | None) -> tuple[list[str], int]:
        crawl = name()
        frontier = await opened([valkey.name], crawl, policy(), VirtualClock(), store)
        await admit(frontier, urls_of(HOST, 400))
        most, drain = 0, Drain(frontier)
        await spill_all(frontier)
        while await drain.some(1):
            await frontier.spill()
            most = max(most, bundles_here(valkey, crawl))
        snapshot = frontier.snapshot()
        assert (sum(snapshot.queued.values()), snapshot.spilled, snapshot.chunks, snapshot.pages) == (0, 0, 0, 400)
        await frontier.close()
        return drain.order, most

    plain, all_of_them = asyncio.run(order_of(None))
    kept, most = asyncio.run(order_of(chunks))
    assert kept == plain
    assert all_of_them >= 39
    assert most <= (ABOVE + KEEP) // 10 + 2


def test_what_is_wanted_now_does_not_wait_for_its_chunk(valkey: ValkeyServer, chunks: PostgresChunks) -> None:
    """F1, F8: a person's URL goes first although it was kept elsewhere, and is fetched once."""

    async def run() -> None:
        urls = urls_of(HOST, 300)
        frontier = await opened([valkey.name], name(), policy(), VirtualClock(), chunks)
        await admit(frontier, urls)
        await spill_all(frontier)
        outside = frontier.snapshot().spilled
        last = addresses(urls[-1])[0]
        answer = await frontier.admit([Candidate(last, 0, Level.IMMEDIATE)])
        assert (answer.added, answer.known) == (0, 1)
        assert frontier.snapshot().spilled == outside - 1
        assert sum(frontier.snapshot().queued.values()) == 300
        drain = Drain(frontier)
        order = await drain.all()
        assert order[0] == last.url
        assert Counter(order) == Counter(urls)
        assert sum(frontier.snapshot().queued.values()) == 0
        assert not any(any(one) for one in frontier.view.ages().values())
        await frontier.close()

    asyncio.run(run())


def test_parked_urls_are_kept_elsewhere_and_come_back_as_they_are_earned(
    valkey: ValkeyServer, chunks: PostgresChunks
) -> None:
    """F5, F8, T1: over budget, by host and by section."""

    async def run() -> None:
        urls = urls_of(HOST, 600)
        rules = policy(first_urls=40, prefix=25)
        frontier = await opened([valkey.name], name(), rules, VirtualClock(), chunks)
        await admit(frontier, urls)
        before = frontier.snapshot()
        assert before.parked["over_budget"] >= 500
        await spill_all(frontier)
        after = frontier.snapshot()
        assert after.spilled >= 300
        assert replace(after, spilled=0, chunks=0) == before
        drain = Drain(frontier)
        for number in range(60):  # each page earns ten more
            await drain.some(1)
            await spill_all(frontier)
            assert number or drain.order
        order = await drain.all()
        assert len(order) == len(set(order))
        assert len(order) == 600 - sum(frontier.snapshot().parked.values())
        assert len(order) >= 500
        await frontier.close()

    asyncio.run(run())


def test_a_block_holds_for_what_is_kept_elsewhere(valkey: ValkeyServer, chunks: PostgresChunks) -> None:
    """T7, K2, F8: it was blocked while it was outside, and is never asked for."""

    async def run() -> None:
        urls = urls_of(HOST, 300)
        frontier = await opened([valkey.name], name(), policy(), VirtualClock(), chunks)
        await admit(frontier, urls)
        await spill_all(frontier)
        await frontier.block(Block(f"https://{HOST}/section3/", "they asked us", 0))
        order = await Drain(frontier).all()
        assert Counter(order) == Counter(url for url in urls if "/section3/" not in url)
        assert frontier.snapshot().states["dropped"] == sum("/section3/" in url for url in urls)
        await frontier.close()

    asyncio.run(run())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_cut_at_every_point_nothing_is_lost(valkey: ValkeyServer, chunks: PostgresChunks, after: bool) -> None:
    """F8, F10, N3: the worker dies before or after each call to the engine, and after each chunk was kept."""

    async def run() -> None:
        store = CuttingChunks(chunks)
        frontier = await opened([valkey.name], name(), policy(), VirtualClock(), store)
        assert frontier.spilling is not None
        cutting = CuttingCaller(frontier._caller)
        frontier.spilling = Spilling(cutting, store)
        cutting.after = after
        expected: list[str] = []
        drain, random = Drain(frontier), Random(7)
        cuts = 0
        for turn in range(60):
            more = urls_of(HOST, 25, len(expected))
            expected += more
            await admit(frontier, more)
            cutting.left = 1 + turn % 9
            store.cut_after_put = turn % 4 == 1
            try:
                await frontier.spill()
            except CutError:
                cuts += 1
            cutting.left, store.cut_after_put = -1, False
            for _ in range(random.randrange(4)):
                await drain.some(1)
            snapshot = frontier.snapshot()
            assert sum(snapshot.queued.values()) + snapshot.pages == len(expected)
        assert cuts >= 20
        assert frontier.snapshot().spilled > 0
        await drain.all()
        assert Counter(drain.order) == Counter(expected)
        left = frontier.snapshot()
        assert (sum(left.queued.values()), left.spilled, left.chunks) == (0, 0, 0)
        await frontier.close()

    asyncio.run(run())


def test_two_who_do_it_at_once_do_no_harm(valkey: ValkeyServer, chunks: PostgresChunks) -> None:
    """F8, N1: they pick the same bundles, bring back the same chunks, and every page is fetched once."""

    async def run() -> None:
        crawl, urls, clock = name(), urls_of(HOST, 600), VirtualClock()
        both = [await opened([valkey.name], crawl, policy(), clock, chunks, worker=f"w{one}") for one in range(2)]
        await admit(both[0], urls)
        for frontier in both:
            frontier._mine = [0]
        drains = [Drain(frontier) for frontier in both]
        for _ in range(200):
            await asyncio.gather(*(frontier.spill() for frontier in both), *(drain.some(1) for drain in drains))
        await drains[0].all()
        assert Counter(drains[0].order + drains[1].order) == Counter(urls)
        left = await both[0].look()
        assert (sum(left.queued.values()), left.spilled, left.chunks, left.pages) == (0, 0, 0, 600)
        for frontier in both:
            await frontier.close()

    asyncio.run(run())


def test_an_engine_that_forgets_its_last_moments_loses_nothing(chunks: PostgresChunks) -> None:
    """F8, F10, N4: it restarts as it was before chunks left, and as it was before chunks came back."""

    async def run(server: ValkeyServer) -> None:
        crawl, urls, clock = name(), urls_of(HOST, 500), VirtualClock()
        frontier = await opened([server.name], crawl, policy(), clock, chunks)
        await admit(frontier, urls)

        async def forget() -> None:
            server.stop(signal.SIGKILL)
            server.start()

        server.ask("SAVE")
        assert (await spill_all(frontier)).out
        await forget()
        assert (await frontier.look()).spilled == 0
        assert (await spill_all(frontier)).out
        server.ask("SAVE")
        drain = Drain(frontier)
        await drain.all()
        assert len(drain.order) == 500
        await forget()
        again = Drain(frontier)
        again.end = drain.end
        assert (await frontier.look()).spilled > 0
        assert Counter(await again.all()) == Counter(urls)
        await frontier.close()

    with ValkeySingle() as one:
        asyncio.run(run(one.server))


def test_chunks_that_nobody_needs_are_cleared_away(
    valkey: ValkeyServer, database: Postgres, chunks: PostgresChunks
) -> None:
    """F8: those that came back, after the time that an engine could forget; those of a worker that died, when old."""

    async def run() -> None:
        clock, store = VirtualClock(), CuttingChunks(chunks)
        frontier = await opened([valkey.name], name(), policy(), clock, store)
        await admit(frontier, urls_of(HOST, 300))
        store.cut_after_put = True
        with pytest.raises(CutError):
            await frontier.spill()
        await spill_all(frontier)

        def kept() -> int:
            return int(database.query("SELECT count(*) FROM spilled", chunks.schema)[0][0])

        chunks_here = frontier.snapshot().chunks
        assert kept() == chunks_here + 1
        assert await frontier.clear_chunks(strangers=True) == 0
        database.query("UPDATE spilled SET at = now() - interval '2 hours'", chunks.schema)
        assert await frontier.clear_chunks(strangers=True) == 1
        assert kept() == chunks_here
        await Drain(frontier).all()
        database.query("UPDATE spilled SET at = now() - interval '2 hours'", chunks.schema)
        assert await frontier.clear_chunks(strangers=True) == 0
        assert kept() >= chunks_here
        clock.advance(GRACE_S + 1)
        back = kept()
        assert await frontier.clear_chunks(strangers=False) == back
        assert kept() == 0
        await frontier.close()

    asyncio.run(run())


def rows_of(valkey: ValkeyServer, crawl: str, clock: Clock, chunks: ChunkStore | None) -> list[Row]:
    valkey.ask("DEL", f"nephila:{{{crawl}}}:workers")
    export = RedisExport(servers_of([valkey.name]), crawl, policy(), clock, AskedFor({}), chunks)
    try:
        return list(export.rows())
    finally:
        export.close()


def test_an_export_has_what_is_kept_elsewhere(valkey: ValkeyServer, chunks: PostgresChunks) -> None:
    """N2, F8: the same rows as before; without the database it says so."""

    async def spilled(crawl: str, clock: VirtualClock, *, spill: bool) -> None:
        frontier = await opened([valkey.name], crawl, policy(), clock, chunks)
        if spill:
            assert (await spill_all(frontier)).out
        else:
            await admit(frontier, urls_of(HOST, 300))
        await frontier.close()

    crawl, clock = name(), VirtualClock()
    asyncio.run(spilled(crawl, clock, spill=False))
    before = rows_of(valkey, crawl, clock, chunks)
    asyncio.run(spilled(crawl, clock, spill=True))
    after = rows_of(valkey, crawl, clock, chunks)
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    with pytest.raises(FrontierError):
        rows_of(valkey, crawl, clock, None)
