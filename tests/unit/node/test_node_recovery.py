"""In which order what earlier runs have left is put right."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from worker import answer, page_task

from nephila.model.outcome import Release
from nephila.model.record import Capture, RecordRef, SegmentId, StoredCapture
from nephila.model.task import Pace, PageTask, Token
from nephila.node.recovery import Recovered, Recovery
from nephila.urls import Identifier, NormalRules, UrlLimits


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


def test_all_captures_of_a_lease_are_settled_before_it_ends() -> None:
    """N3, F10: several pages of a lease may lie in the archive unsettled; the first of them does not end it."""
    told: list[tuple[str, int | None]] = []
    captures = [_capture(number, token) for number, token in enumerate([1, 2, 1, 1])]

    async def settle_stored(
        _lease: Any, task: PageTask, _answer: Any, _judged: Any, _stored: Any, _rules: Any, release: Release | None
    ) -> bool:
        told.append((task.url, None if release is None else release.wait_ms))
        return True

    async def settle(token: Token, settlements: list[Any], release: Release) -> None:
        assert not settlements
        told.append((f"lease {token}", release.wait_ms))

    rests = iter([Release(3000, Pace(1000)), *[Release(1000, Pace(1000))] * 3])
    view = SimpleNamespace(
        marks=lambda _segments: {}, orphans=lambda _segment: (), holds=lambda *_: True, task=lambda *_: None,
        policy=lambda _domain: None, host=lambda _host: None,
    )  # fmt: skip
    identifier = Identifier(7, NormalRules(), UrlLimits())
    frontier: Any = SimpleNamespace(view=view, lose=_nothing, settle=settle)
    archive: Any = SimpleNamespace(
        unfinished=lambda: [SegmentId("a")], recover=lambda *_: 400, tail=lambda *_: iter(captures)
    )
    bookkeeper: Any = SimpleNamespace(looked_at=lambda _: 0, take=lambda _: [], adopt=_nothing)
    pipeline: Any = SimpleNamespace(settle_stored=settle_stored, advised=_judged, rest_after=lambda *_: next(rests))
    catalogue: Any = SimpleNamespace(upto=lambda _: 0)
    recovery = Recovery(frontier, archive, catalogue, pipeline, cast("Any", None), identifier, bookkeeper)
    for name in ("_rejudge", "_rules"):
        setattr(recovery, name, lambda *_: None)
    assert asyncio.run(recovery.of_spool()).settled == 4
    pages = [(capture.task.url, None) for capture, _ in captures]
    assert told == [*pages, ("lease 1", 3000), ("lease 2", 1000)]


def _capture(number: int, token: int) -> tuple[Capture, StoredCapture]:
    url = f"https://a.example/{number}"
    ref = RecordRef(SegmentId("a"), 100 * number, 100, 100 * number + 100)
    stored = StoredCapture(ref, f"urn:uuid:{number}", "sha1:X", "", 1, "response")
    return Capture(page_task(url), Token(token), 0, answer(url, body=b"x")), stored


async def _nothing(*_: object) -> int:
    return 0


async def _judged(_task: object, _answer: object, judged: object) -> object:
    return judged
