"""N1, N3, N4, N7, F3, F10: the frontier on Valkey while connections are cut, servers killed and primaries replaced."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from cutting_proxy import CuttingProxy
from redis_harness import policy_for
from valkey_servers import ValkeyCluster, ValkeyServer, ValkeySingle
from waiting import wait_until

from nephila.engines.valkey import EngineError
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.shards import crawl_key
from nephila.interfaces.clock import Clock
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Lease, Pace, Token
from nephila.node.clock import SystemClock
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses
from nephila.testing.contracts.frontier_policy import Options

SEGMENT = SegmentId("segment")
HOSTS = 12
PAGES_OF_HOST = 7
EVERYTHING = {f"https://host{host}.test/{page}" for host in range(HOSTS) for page in range(PAGES_OF_HOST)}
"""Each page names the next of its host, and the first page of the next host: a chain that a lost link would break."""


def links_of(url: str) -> list[str]:
    host, page = url.removeprefix("https://host").split(".test/")
    found = [f"https://host{host}.test/{int(page) + 1}"] if int(page) + 1 < PAGES_OF_HOST else []
    return [*found, f"https://host{(int(host) + 1) % HOSTS}.test/0"]


async def opened(
    names: list[str], crawl: str, worker: str = "w1", clock: Clock | None = None, **options: object
) -> RedisFrontier:
    return await RedisFrontier.open(
        names,
        crawl,
        policy_for(Options(), robots=False),
        worker=worker,
        clock=clock or SystemClock(),
        options=Opening(**options),  # type: ignore[arg-type]
    )


class Crawler:
    """Fetches nothing, and settles as if it had."""

    def __init__(self, frontier: RedisFrontier, done: Counter[str]) -> None:
        self.frontier, self.done, self.end = frontier, done, 0
        self.begun = asyncio.Event()

    async def settle(self, lease: Lease) -> bool:
        task = lease.tasks[0]
        self.end += 100
        outcome = Done(RecordRef(SEGMENT, self.end - 100, 90, self.end), 200, b"d" * 32)
        links = [Candidate(address, 1) for address in addresses(*links_of(task.url))]
        settled = await self.frontier.settle(lease.token, [Settlement(task, outcome, links)], Release(1, Pace(1)))
        if settled.accepted:
            self.done[task.url] += 1
            if len(self.done) >= HOSTS:
                self.begun.set()
        return settled.accepted

    async def run(self, lease_s: float = 30.0) -> None:
        """Until everything was done; leases of others that died are taken back."""
        while len(self.done) < len(EVERYTHING):
            leases = await self.frontier.claim(4, lease_s)
            for lease in leases:
                await self.settle(lease)
            if not leases:
                await self.frontier.reap()
                await asyncio.sleep(0.02)


async def seed(frontier: RedisFrontier) -> None:
    await frontier.admit([Candidate(addresses("https://host0.test/0")[0], 0)])


def test_an_answer_that_was_lost_is_given_again() -> None:
    """N4, F3: a settle, a claim and an admit whose answers were lost are repeated, and have been done once."""

    async def run(server: ValkeyServer) -> None:
        proxy = CuttingProxy(server.port)
        await proxy.start()
        frontier = await opened([proxy.name], "lost", clock=VirtualClock(), virtual=True, shards=1)
        crawler = Crawler(frontier, Counter())
        proxy.lose_next_answer = True
        await seed(frontier)
        assert frontier.snapshot().urls == 1
        proxy.lose_next_answer = True
        (lease,) = await frontier.claim(5, 60)
        assert frontier.snapshot().hosts_leased == 1
        proxy.lose_next_answer = True
        assert await crawler.settle(lease)
        snapshot = frontier.snapshot()
        assert (snapshot.pages, snapshot.urls, snapshot.hosts_leased) == (1, 3, 0)
        assert not await crawler.settle(lease), "a second settle is not a repeated one"
        assert proxy.cuts == 3
        await frontier.close()
        await proxy.stop()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_a_settle_is_known_again_after_its_host_went_on_with_others() -> None:
    """N3, N4, F3: the answer was lost and the line is down for long: more settles of the host than it remembers."""

    async def run(server: ValkeyServer) -> None:
        proxy = CuttingProxy(server.port)
        await proxy.start()
        cut_off = await opened([proxy.name], "again", "cut off", shards=1)
        other = await opened([server.name], "again", "other", shards=1)
        pages = addresses(*(f"https://host0.test/{page}" for page in range(PAGES_OF_HOST)))
        await other.admit([Candidate(page, 0) for page in pages])
        first, crawler = Crawler(cut_off, Counter()), Crawler(other, Counter())
        while not first.done:  # its segment is known from now on: the next settle is one call
            for one in await cut_off.claim(1, 30):
                await first.settle(one)
        lease = None
        while lease is None:
            lease = next(iter(await cut_off.claim(1, 30)), None)
        proxy.lose_next_answer = proxy.away = True
        settling = asyncio.create_task(first.settle(lease))
        while len(crawler.done) < len(EVERYTHING) - 2:
            for one in await other.claim(1, 30):
                assert await crawler.settle(one)
            await asyncio.sleep(0.001)
        assert not {*first.done, lease.tasks[0].url} & {*crawler.done}
        proxy.away = False
        assert await settling
        assert (await other.look()).pages == len(EVERYTHING)
        await cut_off.close()
        await other.close()
        await proxy.stop()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_a_question_that_was_lost_is_asked_again() -> None:
    """N4: what never came is not taken for done."""

    async def run(server: ValkeyServer) -> None:
        proxy = CuttingProxy(server.port)
        await proxy.start()
        frontier = await opened([proxy.name], "asked", clock=VirtualClock(), virtual=True, shards=1)
        await seed(frontier)
        proxy.lose_next_question = True
        (lease,) = await frontier.claim(5, 60)
        proxy.lose_next_question = True
        assert await Crawler(frontier, Counter()).settle(lease)
        assert frontier.snapshot().pages == 1
        await frontier.close()
        await proxy.stop()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_connections_cut_at_random_lose_nothing() -> None:
    """N3, N4, F10: two workers whose connections are cut again and again do every page once."""

    async def run(server: ValkeyServer) -> None:
        proxy = CuttingProxy(server.port, Random(7), share=0.04)
        await proxy.start()
        done: Counter[str] = Counter()
        workers = [await opened([proxy.name], "cut", f"w{number}", shards=4, patience_s=60) for number in range(2)]
        await seed(workers[0])
        # A claim whose answer is lost may leave leases that nobody has: they run out soon.
        await asyncio.gather(*(Crawler(frontier, done).run(lease_s=2.0) for frontier in workers))
        await workers[0].confirm(SEGMENT, 1 << 40)
        total = await workers[0].look()
        assert set(done) == EVERYTHING
        assert set(done.values()) == {1}
        assert proxy.cuts > 10
        assert (total.pages, total.urls, total.states["completed"]) == (len(EVERYTHING),) * 3
        for frontier in workers:
            await frontier.close()
        await proxy.stop()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 60))


def test_a_server_that_is_killed_and_comes_back_has_lost_nothing() -> None:
    """N4, F10: what was answered is in the log of the server (appendfsync always); workers wait and go on."""

    async def run(server: ValkeyServer) -> None:
        done: Counter[str] = Counter()
        frontier = await opened([server.name], "killed", shards=4)
        await seed(frontier)
        crawl = asyncio.create_task(Crawler(frontier, done).run())
        for _ in range(3):
            await asyncio.sleep(0.15)
            before = Counter(done)
            await asyncio.to_thread(server.stop, signal.SIGKILL)
            await asyncio.to_thread(server.start)
            assert (await frontier.look()).pages >= sum(before.values())
        await crawl
        assert set(done) == EVERYTHING
        assert set(done.values()) == {1}
        await frontier.close()

    with ValkeySingle("--appendonly", "yes", "--appendfsync", "always") as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 60))


def test_crawls_live_side_by_side() -> None:
    """N7: each under its name, and none knows of the other."""

    async def run(server: ValkeyServer) -> None:
        one, other = await opened([server.name], "one", shards=2), await opened([server.name], "other", shards=3)
        await seed(one)
        assert (await other.look()).urls == 0
        assert await other.claim(5, 30) == []
        assert len(await one.claim(5, 30)) == 1
        assert one.secret != other.secret
        await one.close()
        await other.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_what_a_dead_worker_held_is_done_by_others() -> None:
    """N1, N3: shards of a dead worker are asked by the living; its leases run out."""

    async def run(server: ValkeyServer) -> None:
        done: Counter[str] = Counter()
        dead = await opened([server.name], "dead", "dead", shards=8)
        living = await opened([server.name], "dead", "living", shards=8)
        await seed(dead)
        held = await dead.claim(5, 1.0)
        assert len(held) == 1
        await Crawler(living, done).run()
        assert set(done) == EVERYTHING
        assert not await Crawler(dead, done).settle(held[0])
        await dead.close()
        await living.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 60))


def test_an_engine_that_is_not_there_is_told_in_a_sentence() -> None:
    """N4: at the start an engine that does not answer, or refuses, ends in one sentence with what to do."""

    async def run() -> None:
        with pytest.raises(EngineError, match=r"does not answer.*") as told:
            await opened(["127.0.0.1:1"], "nobody", patience_s=0.3)
        assert told.value.hint

    asyncio.run(run())


@pytest.mark.long
def test_a_primary_that_is_killed_is_replaced_and_nothing_is_lost() -> None:
    """N4, F10: with one replica in every answer, a fail-over loses nothing and leaves no page undone."""

    async def run(cluster: ValkeyCluster) -> None:
        done: Counter[str] = Counter()
        workers = [await opened(cluster.names, "over", f"w{number}", shards=16, replicas=1) for number in range(2)]
        await seed(workers[0])
        crawlers = [Crawler(frontier, done) for frontier in workers]
        crawlers[1].begun = crawlers[0].begun  # either may be the first
        crawls = [asyncio.create_task(crawler.run()) for crawler in crawlers]
        await crawlers[0].begun.wait()
        before = set(done)
        await asyncio.to_thread(cluster.servers[0].stop, signal.SIGKILL)
        await asyncio.gather(*crawls)
        assert before < EVERYTHING
        assert set(done) == EVERYTHING
        total = await workers[0].look()
        assert total.urls == len(EVERYTHING)
        assert total.pages == sum(done.values())
        for frontier in workers:
            await frontier.close()

    with ValkeyCluster() as cluster:
        asyncio.run(asyncio.wait_for(run(cluster), 120))


async def settled(frontier: RedisFrontier, segment: SegmentId, urls: list[str], links: list[str]) -> int:
    """Admit and settle these pages into a segment, each with these links; where it ends."""
    await frontier.admit([Candidate(one, 0) for one in addresses(*urls)])
    wanted, end = set(urls), 0
    while wanted:
        for lease in await frontier.claim(len(urls), 30):
            end += 100
            (task,) = lease.tasks
            done = Done(RecordRef(segment, end - 100, 90, end), 200, b"d" * 32)
            found = [Candidate(one, 1) for one in addresses(*links)]
            assert (await frontier.settle(lease.token, [Settlement(task, done, found)], Release(1, Pace(1)))).accepted
            wanted.remove(task.url)
    return end


def test_pages_are_confirmed_though_the_engine_has_forgotten_in_which_shards_they_wait() -> None:
    """N4, W2: a fail-over may take along what was written down of a segment: no page waits for it for ever."""

    async def run(server: ValkeyServer) -> None:
        frontier = await opened([server.name], "forgets", shards=8)
        for name in ("own", "of-the-dead"):
            segment = SegmentId(name)
            pages = [f"https://{name}{number}.test/" for number in range(20)]
            end = await settled(frontier, segment, pages, [])
            key = crawl_key("forgets", f"segment:{segment}")
            shards = sorted(server.ask("SMEMBERS", key))
            assert len(shards) > 4
            server.ask("SREM", key, *shards[2:])
            if name == "own":
                assert await frontier.confirm(segment, end) == len(pages)
                continue
            finder = await opened([server.name], "forgets", "w2", joining=True)
            assert await finder.lose(segment, end) == 0
            assert await finder.confirm(segment, end) == len(pages)
            await finder.close()
        assert await frontier.pending_segments() == set()
        await frontier.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 60))


def test_what_a_page_says_of_others_is_with_a_replica_before_the_page_counts(tmp_path: Path) -> None:
    """N4, F10: else a primary that dies takes links along of a page that is not asked again; seeds and marks alike."""

    async def run(server: ValkeyServer) -> None:
        def waits() -> int:
            told = server.info("commandstats").get("cmdstat_wait", "calls=0,")
            return int(told.partition(",")[0].removeprefix("calls="))

        frontier = await opened([server.name], "replicas", shards=8, replicas=1)
        here, *elsewhere = (f"https://host{number}.test/" for number in range(12))
        before = waits()
        await frontier.admit([Candidate(addresses(here)[0], 0)])
        assert waits() == before + 1, "a seed"
        (lease,) = await frontier.claim(1, 30)
        (task,) = lease.tasks
        shards = {frontier._shards.of_host(one.host) for one in addresses(here, *elsewhere)}
        assert len(shards) > 3
        before, done = waits(), Done(RecordRef(SEGMENT, 0, 90, 100), 200, b"d" * 32)
        links = [Candidate(one, 1) for one in addresses(*elsewhere)]
        assert (await frontier.settle(lease.token, [Settlement(task, done, links)], Release(1, Pace(1)))).accepted
        assert waits() == before + len(shards), "one for each shard that has to do with the page"
        before = waits()
        assert await frontier.confirm(SEGMENT, 100) == 1
        assert waits() == before + 1
        assert frontier._valkey.unreplicated == 0
        await frontier.close()

    with ValkeySingle() as valkey:
        replica = ValkeyServer(tmp_path / "replica", "--replicaof", f"127.0.0.1 {valkey.server.port}")
        try:
            replica.start()
            wait_until(
                lambda: replica.info("replication").get("master_link_status") == "up", "the replica does not follow"
            )
            asyncio.run(asyncio.wait_for(run(valkey.server), 60))
        finally:
            replica.stop(signal.SIGKILL)


def test_hosts_rest_once_for_another_clock_however_many_workers_notice_it() -> None:
    """N4, P2, Q2: each notices at its own time, of hundreds the last after a minute: the first is enough."""

    async def run(server: ValkeyServer) -> None:
        workers = [await opened([server.name], "clocks", f"w{number}", shards=1) for number in range(3)]
        first = workers[0]
        await first.admit([Candidate(one, 0) for one in addresses("https://host.test/0", "https://host.test/1")])
        (lease,) = await first.claim(1, 30)
        (task,) = lease.tasks
        done = Done(RecordRef(SEGMENT, 0, 90, 100), 200, b"d" * 32)
        assert (await first.settle(lease.token, [Settlement(task, done, ())], Release(1, Pace(400)))).accepted
        meta = f"{first._shards.keys[0]}:meta"

        async def all_notice() -> None:
            for worker in workers:
                await worker._every("rest")

        await all_notice()  # of another shard: this one's clock is the same
        assert server.ask("HGET", meta, "rebooted_at") is None
        server.ask("HSET", meta, "keeper", "of the primary that died")
        await workers[2]._every("rest")
        rests_from = int(server.ask("HGET", meta, "rebooted_at"))
        while not (leases := await first.claim(1, 30)):
            await all_notice()
        assert int(server.ask("HGET", meta, "rebooted_at")) == rests_from
        assert leases[0].not_before >= rests_from + 400
        for worker in workers:
            await worker.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_workers_that_are_gone_are_not_remembered_for_ever() -> None:
    """N3, F8: a fleet of machines that come and go for months, each with a directory of its own."""
    workers = 400

    async def run(server: ValkeyServer) -> None:
        frontier = await opened([server.name], "gone", shards=1)
        urls = (f"https://host{number}.test/0" for number in range(workers))
        await frontier.admit([Candidate(one, 0) for one in addresses(*urls)])
        crawler, held = Crawler(frontier, Counter()), []
        for number in range(workers):
            frontier._worker = f"worker{number}"
            (lease,) = await frontier.claim(1, 30)
            if number % 40:
                assert await crawler.settle(lease)
            else:
                held.append(frontier._worker.encode())
        noted = server.ask("HKEYS", f"{frontier._shards.keys[0]}:claims")
        assert set(held) <= set(noted), "a call that has leases may be repeated"
        assert len(noted) < workers / 2
        await frontier.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_what_was_lent_and_never_brought_back_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """C1, F8: workers of others that die, for months; what is brought back late is settled all the same."""
    monkeypatch.setattr("nephila.frontier.redis.engine.MOST_LENT", 5)

    async def run(server: ValkeyServer) -> None:
        frontier = await opened([server.name], "lent", shards=1)
        urls = (f"https://host{number}.test/" for number in range(20))
        await frontier.admit([Candidate(one, 0) for one in addresses(*urls)])
        lent = (await frontier.lend(20, 30)).leases
        assert len(lent) == 20
        assert len(frontier._facts) == 5
        (task,) = lent[0].tasks
        done = Done(RecordRef(SEGMENT, 0, 90, 100), 200, b"d" * 32)
        back = await frontier.take_back(lent[0].token, Settlement(task, done, ()), Release(1, Pace(1)))
        assert back.accepted
        await frontier.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_a_token_names_its_shard() -> None:
    """N1: whoever settles needs to know no more than the token."""

    async def run(server: ValkeyServer) -> None:
        frontier = await opened([server.name], "tokens", shards=5)
        await frontier.admit([Candidate(one, 0) for one in addresses(*(f"https://host{i}.test/0" for i in range(20)))])
        leases: list[Lease] = []
        while len(leases) < 20:
            leases += await frontier.claim(20, 30)
        assert len({lease.token for lease in leases}) == 20
        joined = await opened([server.name], "tokens", "w2", joining=True)
        assert {await joined.renew([lease.token], 30) == {lease.token} for lease in leases} == {True}
        assert await Crawler(joined, Counter()).settle(leases[0]), "another process may settle"
        assert await joined.renew([Token(10**12)], 30) == set()
        await frontier.close()
        await joined.close()

    with ValkeySingle() as valkey:
        asyncio.run(asyncio.wait_for(run(valkey.server), 30))


def test_a_rest_is_not_cut_short_when_the_engines_time_is_known_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """P2, N4: late answers leave the worker's timeline behind; a prompt one corrects it, and takes no time."""

    async def main() -> float:
        frontier = await opened(valkey.names, "leap")
        clock = SystemClock()
        try:
            urls = addresses("https://a.test/1", "https://a.test/2")
            await frontier.admit([Candidate(address, 0) for address in urls])
            (lease,) = await frontier.claim(1, 60)
            done = Done(RecordRef(SEGMENT, 0, 90, 100), 200, b"d" * 32)

            async def correct(*_: object) -> None:
                frontier.timeline.heard(frontier.timeline.now() + 400)

            monkeypatch.setattr(frontier, "_note_segments", correct)
            began_ms = clock.steady_ms()
            await frontier.settle(lease.token, [Settlement(lease.tasks[0], done, ())], Release(1000, Pace(1000)))
            async with asyncio.timeout(20):
                while True:
                    if await frontier.claim(1, 60):
                        break
                    await asyncio.sleep(0.005)
            return clock.steady_ms() - began_ms
        finally:
            await frontier.close()

    with ValkeySingle() as valkey:
        rested_ms = asyncio.run(main())
    assert rested_ms >= 1000
