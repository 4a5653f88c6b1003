"""How many leases a process takes on at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from nephila.node.crew import LEASES_PER_EXCHANGE, Crew


def crew_of(concurrency: int, leases: int, settling: int, *, room: bool = True) -> tuple[Crew, Any]:
    """A crew that works on so many leases, of which so many are being settled."""
    machinery: Any = SimpleNamespace(
        pipeline=SimpleNamespace(settling=settling),
        bookkeeper=SimpleNamespace(on_room=lambda _: None, has_room=lambda: room),
        shipper=None,
        settings=SimpleNamespace(fetch=SimpleNamespace(concurrency=concurrency)),
    )
    crew = Crew(machinery, lambda _: None)
    working: Any = dict.fromkeys(range(leases))
    crew._working = working
    return crew, machinery.pipeline


@pytest.mark.parametrize(
    ("concurrency", "leases", "settling", "places"),
    [
        (8, 0, 0, 8),
        (8, 8, 0, 0),
        (8, 8, 3, 3),
        (8, 8 * LEASES_PER_EXCHANGE, 8 * LEASES_PER_EXCHANGE, 0),
        (1, 1, 1, 0),
        (1, 0, 0, 1),
    ],
)
def test_answers_that_are_being_settled_take_nobodys_place(
    concurrency: int, leases: int, settling: int, places: int
) -> None:
    """Q2, F6: a host whose time has come does not wait for others' settling; one at a time stays one at a time."""
    crew, _ = crew_of(concurrency, leases, settling)
    assert crew.places == places


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
