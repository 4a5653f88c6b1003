"""How many leases a process takes on at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from nephila.node.crew import LASTING_PER_EXCHANGE, LEASES_PER_EXCHANGE, Crew
from nephila.pipeline.departures import Departures


def crew_of(
    concurrency: int, leases: int, settling: int, *, waiting: int = 0, room: bool = True, last: bool = False
) -> tuple[Crew, Any]:
    """A crew that works on so many leases, of which so many are being settled, and so many wait for their moment.

    `last`: leases last through the delays of their hosts.
    """
    departures = Departures(lambda: 0)
    departures.waiting = waiting
    machinery: Any = SimpleNamespace(
        pipeline=SimpleNamespace(settling=settling, departures=departures, stopping=False),
        bookkeeper=SimpleNamespace(on_room=lambda _: None, has_room=lambda: room),
        shipper=None,
        settings=SimpleNamespace(fetch=SimpleNamespace(concurrency=concurrency)),
        leases_last=last,
    )
    crew = Crew(machinery, lambda _: None)
    working: Any = dict.fromkeys(range(leases))
    crew._working = working
    return crew, machinery.pipeline


@pytest.mark.parametrize(
    ("concurrency", "leases", "settling", "waiting", "places"),
    [
        (8, 0, 0, 0, 8),
        (8, 8, 0, 0, 0),
        (8, 8, 3, 0, 3),
        (8, 8, 0, 3, 3),
        (8, 20, 7, 11, 6),
        (8, 8 * LEASES_PER_EXCHANGE, 8 * LEASES_PER_EXCHANGE, 0, 0),
        (8, 8 * LEASES_PER_EXCHANGE - 1, 10, 21, 1),
        (1, 1, 1, 0, 0),
        (1, 1, 0, 1, 0),
        (1, 0, 0, 0, 1),
    ],
)
def test_who_waits_and_who_is_being_settled_takes_nobodys_place(
    concurrency: int, leases: int, settling: int, waiting: int, places: int
) -> None:
    """Q2, F6: a host whose time has come does not wait for others' settling; one at a time stays one at a time."""
    crew, _ = crew_of(concurrency, leases, settling, waiting=waiting)
    assert crew.places == places


def test_leases_that_last_are_held_in_greater_number() -> None:
    """N1, Q2: most of them wait for their moment, and take no place; one at a time stays one at a time."""
    most = 256 * LASTING_PER_EXCHANGE
    assert most == 2048
    assert crew_of(256, most - 100, 0, waiting=most - 300, last=True)[0].places == 56
    assert crew_of(256, most - 10, 0, waiting=most - 10, last=True)[0].places == 10
    assert crew_of(1, 1, 0, waiting=1, last=True)[0].places == 0


def test_leases_that_wait_for_their_moment_are_not_told_as_in_flight() -> None:
    """O1, O2: in a fleet most leases wait; what is asked or being settled is in flight."""
    crew, _ = crew_of(256, 2048, 100, waiting=1900, last=True)
    assert (len(crew), crew.in_flight) == (2048, 148)


def test_no_more_leave_than_may_be_asked_at_once() -> None:
    """H1: five moments come together with two places; each answer lets the next one leave, in order."""
    asked: list[int] = []
    at_once: list[int] = []

    async def main() -> None:
        _, pipeline = crew_of(2, 5, 0)

        async def ask(number: int) -> None:
            await pipeline.departures.until(0)
            asked.append(number)
            at_once.append(5 - pipeline.settling - pipeline.departures.waiting)
            await asyncio.sleep(0.001)
            pipeline.settling += 1
            pipeline.answered()

        await asyncio.gather(*(ask(number) for number in range(5)))

    asyncio.run(main())
    assert asked == [0, 1, 2, 3, 4]
    assert max(at_once) == 2


def test_who_is_to_stop_does_not_wait_for_a_place() -> None:
    """F9: those in line hear of a stop at once."""

    async def main() -> None:
        _, pipeline = crew_of(1, 3, 0)
        pipeline.stopping = True
        async with asyncio.timeout(10):
            await asyncio.gather(*(pipeline.departures.until(0) for _ in range(3)))

    asyncio.run(main())


def test_nothing_is_taken_on_while_the_books_are_full() -> None:
    """Q5: whatever is being settled."""
    crew, _ = crew_of(8, 8, 8, room=False)
    assert crew.places == 0


def test_the_first_place_that_an_answer_makes_is_told() -> None:
    """Q2: whoever claims sleeps when there is none; every further one would wake it for nothing."""

    async def main() -> list[bool]:
        crew, pipeline = crew_of(8, 8, 0)
        woken = []
        for settling in (1, 2):
            pipeline.settling = settling
            pipeline.answered()
            woken.append(crew.woken.is_set())
            crew.woken.clear()
        return woken

    assert asyncio.run(main()) == [True, False]


def test_a_lease_is_not_believed_to_last_longer_than_it_does() -> None:
    """F3, P2: it was renewed when the engine did so, not when its answer came, which may be much later."""
    lease_s, took_ms = 60, 15_000
    now = 1_000_000
    expiries = {1: now + 20_000, 2: now + 20_000, 3: now + 59_000}

    async def renew(tokens: list[int], seconds: float) -> set[int]:
        nonlocal now
        assert (tokens, seconds) == ([1, 2], lease_s)
        now += took_ms
        return {1}

    machinery: Any = SimpleNamespace(
        pipeline=SimpleNamespace(departures=Departures(lambda: 0)),
        bookkeeper=SimpleNamespace(on_room=lambda _: None),
        shipper=None,
        settings=SimpleNamespace(frontier=SimpleNamespace(lease_s=lease_s)),
        frontier=SimpleNamespace(timeline=SimpleNamespace(now=lambda: now), renew=renew),
        expiries=expiries,
    )
    asyncio.run(Crew(machinery, lambda _: None).renew())
    assert expiries == {1: now - took_ms + lease_s * 1000, 2: 0, 3: 1_059_000}
