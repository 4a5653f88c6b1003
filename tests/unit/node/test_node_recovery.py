"""In which order what earlier runs have left is put right."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from nephila.model.record import SegmentId
from nephila.node.recovery import Recovered, Recovery


def test_all_files_are_durable_before_anything_that_may_be_held_up_is_done_for_one() -> None:
    """Q4, F10: rows and indexes wait for the catalogue and the disk, and the power may fail meanwhile."""
    done: list[tuple[str, str]] = []

    def recover(segment: SegmentId, confirmed: int) -> int:
        done.append((f"durable behind {confirmed}", segment))
        return 0

    async def lose(segment: SegmentId, end: int) -> int:
        done.append((f"gone through, behind {end}", segment))
        return 1

    unfinished = [SegmentId("a"), SegmentId("b")]
    archive = SimpleNamespace(unfinished=lambda: unfinished, recover=recover)
    view = SimpleNamespace(marks=lambda _segments: {"a": 7})
    frontier, bookkeeper = SimpleNamespace(view=view, lose=lose), SimpleNamespace(looked_at=lambda _segment: 5)
    parts = cast("tuple[Any, ...]", (frontier, archive, None, None, None, None, bookkeeper))
    assert asyncio.run(Recovery(*parts).of_spool()) == Recovered(segments=2, lost=2)
    assert done == [
        ("durable behind 7", "a"),
        ("durable behind 5", "b"),
        ("gone through, behind 0", "a"),
        ("gone through, behind 0", "b"),
    ]
