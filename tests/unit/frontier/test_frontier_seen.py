"""Whether a page has changed: by what it says, where that is known, else by its bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nephila.frontier.change import as_seen, said_mark
from nephila.frontier.estimated import EstimatedRecrawl
from nephila.frontier.schedule import SimpleRecrawl
from nephila.interfaces.recrawl import History, Visit
from nephila.model.outcome import Done
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import RecrawlSettings

REF = RecordRef(SegmentId("s"), 0, 10, 10)
ONE, OTHER = Done(REF, 200, b"1" * 32, said=b"one text"), Done(REF, 200, b"2" * 32, said=b"another.")
SILENT = Done(REF, 200, b"3" * 32)
START, DAY = 1_800_000_000, 86_400


def visited(*answers: Done, settings: RecrawlSettings | None = None, kind: type = EstimatedRecrawl) -> History:
    """The history after these answers, a day apart."""
    policy, history = kind(settings or RecrawlSettings()), History()
    for number, answer in enumerate(answers):
        seen = as_seen(history, answer)
        visit = Visit(START + number * DAY, seen.status, seen.changed, said=said_mark(seen))
        history = policy.plan(history, visit).history
    return history


@pytest.mark.parametrize("kind", [SimpleRecrawl, EstimatedRecrawl])
def test_a_page_that_says_the_same_has_not_changed_though_its_bytes_have(kind: type) -> None:
    """R2: and one that says something else has."""
    assert visited(ONE, replace(ONE, digest=b"9" * 32), ONE, kind=kind).changes == 0
    assert visited(ONE, OTHER, ONE, ONE, kind=kind).changes == 2


def test_where_the_text_of_one_visit_is_not_known_bytes_decide() -> None:
    """R2: a page without main text, a capture of another program, a crawl of an earlier version."""
    assert visited(ONE, SILENT, ONE).changes == 2
    assert visited(SILENT, SILENT).changes == 1
    assert visited(SILENT, replace(SILENT, changed=False)).changes == 0
    old = History(DAY, 3, 1, START)
    assert as_seen(old, ONE).changed
    assert as_seen(old, replace(ONE, changed=False)) == replace(ONE, changed=False)


def test_a_304_and_a_missing_page_leave_what_was_said() -> None:
    """R2, H3, R5: the next whole answer is held against it."""
    same, missing = Done(REF, 304, b"1" * 32, changed=False), Done(REF, 404, page=False)
    assert visited(ONE, same, ONE).changes == 0
    assert visited(ONE, missing).said == said_mark(ONE)
    assert visited(ONE, missing, ONE).changes == 1, "coming back counts as a change"


def test_bytes_alone_count_where_that_is_asked_for() -> None:
    """R2: recrawl.changed."""
    by_bytes = RecrawlSettings(changed="bytes")
    assert visited(ONE, ONE, ONE, settings=by_bytes).changes == 2
    assert visited(ONE, settings=by_bytes).said == 0


def test_what_is_remembered_fits_into_a_number_of_every_engine() -> None:
    """R2: exact as a double, and never 0 for a page that says something."""
    assert 0 < said_mark(replace(ONE, said=b"\xff" * 8)) < 2**53
    assert said_mark(replace(ONE, said=bytes(8))) == 1
    assert said_mark(SILENT) == 0
