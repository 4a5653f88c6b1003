"""Seeds into the frontier: batches, reports, and the http twins of bare domains."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from nephila.frontier.scope import Scope
from nephila.interfaces.frontier import Admission
from nephila.model.errors import UsageError
from nephila.model.exchange import FailureKind
from nephila.model.settings import ScopeSettings
from nephila.model.task import Candidate, Level
from nephila.node.seedreader import BATCH
from nephila.node.sowing import Sower
from nephila.seeds import ArgumentSeeds, Seed, SeedRefused
from nephila.testing.loop import run_virtual
from nephila.urls import Identifier, NormalRules, UrlLimits


class SeenFrontier:
    """Knows what it has met; notes in which order scope and seeds became durable."""

    def __init__(self) -> None:
        self.met: dict[str, Candidate] = {}
        self.batches: list[int] = []
        self.log: list[str] = []

    async def admit(self, candidates: Sequence[Candidate]) -> Admission:
        self.log.append("admit")
        self.batches.append(len(candidates))
        new = {candidate.address.key: candidate for candidate in candidates if candidate.address.key not in self.met}
        self.met |= new
        return Admission(len(new), len(candidates) - len(new))


class Field:
    """A sower over such a frontier."""

    def __init__(self, *, threaded: bool = False, **scope: Any) -> None:
        self.frontier = SeenFrontier()
        self.scope = Scope(ScopeSettings(**scope))
        identifier = Identifier(7, NormalRules(), UrlLimits())
        self.woken = 0
        self.refused: list[SeedRefused] = []
        self.sower = Sower(
            self.frontier,  # type: ignore[arg-type]
            identifier,
            self.scope,
            self.save,
            threaded=threaded,
            tell_refused=self.refused.append,
        )

    def save(self) -> None:
        if self.scope.unsaved():
            self.frontier.log.append("scope")

    def wake(self) -> None:
        self.woken += 1

    def sow(self, *sources: Any) -> Any:
        return run_virtual(lambda: self.sower.sow(sources, self.wake))

    def twins(self, origin: str, kind: FailureKind = FailureKind.CONNECT) -> list[str]:
        return [twin.address.url for twin in self.sower.twins(origin, kind)]


def test_each_answer_says_what_was_added_known_and_refused() -> None:
    """S1: and why, with examples."""
    field = Field()
    report = field.sow(ArgumentSeeds(["https://a.test/", "a.test", "https://b.test/x", "ftp://c.test/", "no url"]))
    assert (report.added, report.known, sum(report.refused.values())) == (2, 1, 2)
    assert len(report.examples) == 2
    assert {candidate.level for candidate in field.frontier.met.values()} == {Level.HIGH}
    assert {candidate.depth for candidate in field.frontier.met.values()} == {0}


def test_every_refused_seed_is_told() -> None:
    """S1: whoever gives a list of thousands can find those that were not taken; passwords are nobody's business."""
    field = Field(exclude=("private",))
    wrong = [f"ftp://c{number}.test/" for number in range(10)]
    report = field.sow(ArgumentSeeds([*wrong, "me:secret@a test", "https://a.test/private/"]))
    assert len(report.examples) == 5
    assert [one.text for one in field.refused[:10]] == wrong
    assert {one.reason for one in field.refused} == {"scheme", "malformed", "excluded"}
    assert "secret" not in field.refused[10].text


def test_the_scope_is_saved_before_the_seeds_are_admitted() -> None:
    """S2, F10: a crash must not leave a seed outside of it."""
    field = Field()
    field.sow(ArgumentSeeds(["https://a.test/"]))
    assert field.frontier.log == ["scope", "admit"]
    field.sow(ArgumentSeeds(["https://a.test/2"]))
    assert field.frontier.log[2:] == ["admit"]


def test_a_seed_that_was_excluded_by_hand_is_refused() -> None:
    """S2, S1: by the same rule as any link."""
    report = Field(exclude=("private",)).sow(ArgumentSeeds(["https://a.test/private/x"]))
    assert (report.added, dict(report.refused)) == (0, {"excluded": 1})


def test_a_long_list_is_admitted_in_batches() -> None:
    """S1, F8: the crawl is woken after each."""
    field = Field(mode="all")
    report = field.sow(ArgumentSeeds(f"https://a.test/{number}" for number in range(2 * BATCH + 5)))
    assert report.added == 2 * BATCH + 5
    assert field.frontier.batches == [BATCH, BATCH, 5]
    assert field.woken == 3


def test_no_seeds_are_a_report_of_nothing() -> None:
    """S1: going on without new ones."""
    field = Field()
    report = field.sow()
    assert (report.added, report.known, field.frontier.batches) == (0, 0, [])


# Twins


def test_a_bare_domain_has_an_http_twin_once() -> None:
    """S1: a bare domain is tried as https first, then as http."""
    field = Field()
    field.sow(ArgumentSeeds(["a.test", "a.test/x", "https://b.test/", "c.test:8443"]))
    assert sorted(field.frontier.met)[:2] == ["https://a.test/", "https://a.test/x"]
    assert field.twins("https://a.test") == ["http://a.test/", "http://a.test/x"]
    assert field.twins("https://a.test") == []
    assert field.twins("https://b.test") == [], "somebody asked for https"
    assert field.twins("https://c.test:8443") == ["http://c.test:8443/"]


@pytest.mark.parametrize("kind", [FailureKind.NO_SUCH_NAME, FailureKind.ADDRESS])
def test_what_is_the_same_for_both_schemes_is_not_tried_twice(kind: FailureKind) -> None:
    """S1, H6: a name that does not exist, an address that may not be asked."""
    field = Field()
    field.sow(ArgumentSeeds(["a.test"]))
    assert field.twins("https://a.test", kind) == []
    assert field.twins("https://a.test", FailureKind.TLS) == ["http://a.test/"]


# Reading beside the loop


class Trickle:
    """A pipe into which somebody writes now and then."""

    def __init__(self) -> None:
        self.more = threading.Semaphore(0)
        self.texts = [f"https://a.test/{number}" for number in range(3)]

    def __iter__(self) -> Iterator[Seed]:
        for text in self.texts:
            self.more.acquire()
            yield Seed(text, "pipe")
        self.more.acquire()


def test_seeds_that_trickle_in_are_admitted_as_they_come() -> None:
    """S1, F10: a pipe into which nobody writes does not stop the loop."""
    field = Field(threaded=True)
    pipe = Trickle()

    async def main() -> None:
        woken = asyncio.Event()
        sowing = asyncio.create_task(field.sower.sow([pipe], woken.set))
        for count in (1, 2, 3):
            pipe.more.release()
            await asyncio.wait_for(woken.wait(), 10)
            woken.clear()
            assert len(field.frontier.met) == count
            assert not sowing.done()
        pipe.more.release()
        assert (await sowing).added == 3

    asyncio.run(main())


def test_reading_can_be_left_while_the_pipe_is_silent() -> None:
    """F10: Ctrl-C is still heard."""
    field = Field(threaded=True)
    pipe = Trickle()

    async def main() -> None:
        sowing = asyncio.create_task(field.sower.sow([pipe], field.wake))
        await asyncio.sleep(0)
        sowing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sowing

    asyncio.run(main())
    for _ in range(4):
        pipe.more.release()


def test_what_a_source_raises_comes_after_what_it_gave() -> None:
    """S1: a list that cannot be read to its end is told, not passed over."""
    field = Field(threaded=True)

    class Torn:
        def __iter__(self) -> Iterator[Seed]:
            yield Seed("https://a.test/", "file")
            raise UsageError("the file is no text")

    async def main() -> None:
        with pytest.raises(UsageError, match="no text"):
            await field.sower.sow([Torn()], field.wake)

    asyncio.run(main())
    assert len(field.frontier.met) == 1
