"""How the ranks of domains come from whoever computes them to the workers: through a store that may be away (R3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from link_graphs import write_some_grades
from valkey_servers import ValkeySingle

from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.model.errors import ObjectChangedError, StoreRefusedError
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate
from nephila.node.clock import SystemClock
from nephila.node.fleet.repute import MOST_AFAR, Follower, PublishedRepute, VisitorRanks, key_of, publish
from nephila.node.importance.grades import LOOK_MS
from nephila.ranking import GRADES
from nephila.store import ArchivePlace
from nephila.testing.objects import SimulatedObjectStore, Weather
from nephila.testing.repute import GivenRepute
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

ME = "0" * 32
PLACE = ArchivePlace("bucket", "crawl")
AT_ONCE = Weather(latency_s=0.0, bytes_per_s=1e12)


class Clock(SystemClock):
    """One that is put forward."""

    ahead_ms = 0

    def steady_ms(self) -> int:
        return super().steady_ms() + self.ahead_ms


class Known:
    """A store, whoever computes, and a worker."""

    def __init__(self, folder: Path) -> None:
        self.store = SimulatedObjectStore(weather=AT_ONCE)
        self.told = list[str]()
        self.clock = Clock()
        self.made, self.worker = folder / "made", folder / "worker" / "rank"
        self.follower = Follower(self.worker, self.store, PLACE, self.clock, lambda _, told: self.told.append(told))
        self.follower.grades.identity = ME

    def publish(self, identity: str = ME, **known: int) -> bool:
        write_some_grades(self.made, identity, {f"{name}.test": grade for name, grade in known.items()})
        return asyncio.run(publish(self.store, PLACE, self.made))

    def seen(self, *names: str) -> list[int | None] | None:
        """What the worker's frontier is told after a look; None where there are no ranks."""
        asyncio.run(self.follower.look())
        self.clock.ahead_ms += LOOK_MS
        grades = self.follower.grades
        return [grades.grade_of(f"www.{name}.test") for name in names] if grades.look() else None


@pytest.fixture
def known(tmp_path: Path) -> Known:
    return Known(tmp_path)


def test_a_worker_has_what_was_published_last(known: Known) -> None:
    """R3: nothing before the first time; what is the same is neither stored nor brought again; what is gone is gone."""
    assert known.seen("a") is None
    assert known.publish(a=3)
    assert known.seen("a", "b") == [3, None]
    reads = known.store.asked["read"]
    assert not known.publish(a=3)
    assert known.seen("a", "b") == [3, None]
    assert known.store.asked["read"] == reads
    assert known.publish(a=4, b=64)
    assert known.seen("a", "b") == [4, 64]
    del known.store.objects[key_of(PLACE)]
    assert known.seen("a") is None
    assert known.told == []
    assert list(known.worker.iterdir()) == []


def test_a_worker_that_comes_back_has_the_ranks_it_had(known: Known) -> None:
    """R3, N3: at once, and it does not bring them again."""
    known.publish(a=3)
    assert known.seen("a") == [3]
    reads = known.store.asked["read"]
    known.store.away = True
    again = Known(known.made.parent)
    again.store = known.store
    again.follower = Follower(known.worker, known.store, PLACE, again.clock, lambda _, told: again.told.append(told))
    again.follower.grades.identity = ME
    assert again.seen("a") == [3]
    known.store.away = False
    assert again.seen("a") == [3]
    assert known.store.asked["read"] == reads


def test_a_store_that_refuses_is_told_of_once(known: Known) -> None:
    """R3: scores go by what is here; when it gives again and then refuses, that is told, too."""
    known.publish(a=3)
    assert known.seen("a") == [3]
    for _ in range(2):
        known.store.refuses = "not allowed"
        assert known.seen("a") == [3]
        assert known.seen("a") == [3]
        known.store.refuses = ""
        assert known.seen("a") == [3]
    assert len(known.told) == 2
    assert "not allowed" in known.told[0]


def test_what_is_replaced_while_it_is_brought_is_brought_the_next_time(known: Known) -> None:
    """R3: half of one file and half of another is none."""
    known.publish(a=3)
    assert known.seen("a") == [3]
    known.publish(a=4)
    read, key = known.store.read, key_of(PLACE)

    def changed(*asked: object) -> bytes:
        known.store.read = read  # type: ignore[method-assign]
        known.publish(a=5, b=5)
        return known.store.read(*asked)  # type: ignore[arg-type]

    known.store.read = changed  # type: ignore[method-assign]
    assert known.seen("a") == [3]
    assert key in known.store.objects
    assert known.seen("a", "b") == [5, 5]
    assert [path.name for path in known.worker.iterdir()] == [GRADES]


def test_ranks_of_another_crawl_are_as_none(known: Known) -> None:
    """R3: one of the same name, begun anew in the same place."""
    known.publish("1" * 32, a=3)
    assert known.seen("a") is None


def test_two_who_publish_at_the_same_moment_do_not_mix(known: Known) -> None:
    """R3: the second is told that the object is not the one it looked at."""
    known.publish(a=3)
    look = known.store.look

    async def overtaken(key: str) -> object:
        found = await look(key)
        known.store.objects[key] = (b"other", "2" * 64)
        return found

    known.store.look = overtaken  # type: ignore[method-assign,assignment]
    with pytest.raises(ObjectChangedError):
        known.publish(a=4)


def test_whoever_looks_at_a_url_asks_the_store(known: Known) -> None:
    """T8, R3: for `why`; a store that does not answer is as one without ranks."""
    repute = PublishedRepute(known.store, PLACE, ME)
    assert not repute.look()
    assert repute.grade_of("www.a.test") is None
    known.publish(a=3)
    assert repute.look()
    assert (repute.grade_of("www.a.test"), repute.grade_of("b.test")) == (3, None)
    known.store.away = True
    assert repute.grade_of("www.a.test") is None
    assert not repute.look()
    known.store.away = False
    assert not PublishedRepute(known.store, PLACE, "1" * 32).look()


def test_whoever_may_not_write_there_is_told_so(known: Known) -> None:
    """R3, C4: `--no-publish` is for those."""
    known.store.refuses = "not allowed"
    with pytest.raises(StoreRefusedError, match="not allowed"):
        known.publish(a=3)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_frontier_heeds_ranks_unless_its_order_is_promised(valkey: ValkeySingle, ordered: bool) -> None:
    """R3, F6: with one exchange at a time no timing may change the order, and ranks come when they come."""

    async def steps() -> list[int]:
        policy = Policy(FrontierSettings(), base_delay_ms=1000, ordered=ordered)
        name = f"heed-{ordered}".lower()
        frontier = await RedisFrontier.open(valkey.names, name, policy, worker="w", clock=SystemClock())
        try:
            frontier.heed(GivenRepute({"a.test": 64, "b.test": 0}))
            identifier = Identifier(frontier.secret, NormalRules(), UrlLimits())
            found = list[int]()
            for url in ("https://a.test/", "https://b.test/"):
                address = identifier.identify(url)
                assert isinstance(address, Address)
                await frontier.admit([Candidate(address, 1, None)])
                story = await asyncio.to_thread(frontier.story, address.host, address.fingerprint)
                assert story is not None
                found.append(story.step)
            return found
        finally:
            await frontier.close()

    first, second = asyncio.run(steps())
    assert (second > first) != ordered


def test_a_command_asks_for_a_few_domains_and_brings_all_where_there_are_many(known: Known) -> None:
    """R3: either way with the same answers; a store that is away, or goes away, is as one without ranks."""
    names = {f"d{number}": number % 65 for number in range(3 * MOST_AFAR)}
    known.publish(**names)

    def begun(identity: str = ME) -> VisitorRanks:
        ranks = VisitorRanks(known.store, PLACE, identity)
        asyncio.run(ranks.begin())
        return ranks

    ranks = begun()
    assert ranks.look()
    reads = list[int]()
    for name, grade in names.items():
        assert (ranks.grade_of(f"www.{name}.test"), ranks.grade_of(f"{name}.test")) == (grade, grade)
        reads.append(known.store.asked["read"])
    assert reads[MOST_AFAR - 1] > MOST_AFAR
    assert reads[-1] == reads[MOST_AFAR], "they are here"
    assert ranks.grade_of("unknown.test") is None
    ranks.close()
    fails = begun()
    assert fails.grade_of("d1.test") == 1
    known.store.away = True
    assert fails.grade_of("d2.test") is None
    assert not fails.look()
    assert not begun().look()
    known.store.away = False
    assert not begun("1" * 32).look()
