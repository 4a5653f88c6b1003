from __future__ import annotations

import time
from dataclasses import replace

import pytest

from nephila.export import Include, LeftOut, Selection, Use, refuses
from nephila.export.selection import MEANINGS, last_seen
from nephila.interfaces.catalogue import CaptureRow
from nephila.testing.contracts.catalogue import sample_row

PAGE = sample_row(5)


def changed(**fields: object) -> CaptureRow:
    return replace(PAGE, **fields)  # type: ignore[arg-type]  # checked by the fields


@pytest.mark.parametrize(
    ("selection", "row", "reason"),
    [
        (Selection(), PAGE, None),
        (Selection(), changed(robots=True), LeftOut.NOT_A_PAGE),
        (Selection(), changed(fingerprint=b""), LeftOut.NOT_A_PAGE),
        (Selection(), changed(content_hash=b""), LeftOut.NOT_A_PAGE),
        (Selection(), changed(status=404), LeftOut.STATUS),
        (Selection(), changed(status=304, kind="revisit"), LeftOut.UNCHANGED),
        (Selection(newest=False), changed(status=304, kind="revisit", content_type=""), None),
        (Selection(newest=False), changed(status=304), LeftOut.NOT_KEPT),
        (Selection(statuses=frozenset({404})), changed(status=404, content_hash=b""), None),
        (Selection(statuses=frozenset()), changed(status=500, content_hash=b""), None),
        (Selection(), changed(truncated="length"), LeftOut.TRUNCATED),
        (Selection(include=frozenset({Include.TRUNCATED})), changed(truncated="length", content_hash=b""), None),
        (Selection(include=frozenset({Include.TRUNCATED})), changed(truncated="unspecified"), LeftOut.NOT_KEPT),
        (Selection(bodies=False), changed(truncated="unspecified"), None),
        (Selection(), changed(kind="external"), LeftOut.NOT_KEPT),
        (Selection(bodies=False), changed(kind="external"), LeftOut.NOT_KEPT),
        (Selection(hosts=frozenset({"spiders.example"})), PAGE, None),
        (Selection(hosts=frozenset({"www.spiders.example"})), PAGE, LeftOut.SITE),
        (Selection(domains=frozenset({"spiders.example"})), changed(host="www.spiders.example"), None),
        (Selection(hosts=frozenset({"a.example"}), domains=frozenset({"spiders.example"})), PAGE, None),
        (Selection(since=PAGE.at), PAGE, None),
        (Selection(since=PAGE.at + 1), PAGE, LeftOut.TIME),
        (Selection(until=PAGE.at), PAGE, LeftOut.TIME),
        (Selection(until=PAGE.at + 1), PAGE, None),
        (Selection(types=("text/html",)), PAGE, None),
        (Selection(types=("text/*",)), PAGE, None),
        (Selection(types=("application/pdf",)), PAGE, LeftOut.TYPE),
        (Selection(types=("text/html",)), changed(content_type=""), None),
        (Selection(types=("text/html",)), changed(content_type="text/html, text/html; charset=utf-8"), None),
        (Selection(), changed(noindex=True), LeftOut.NOINDEX),
        (Selection(), changed(noarchive=True), LeftOut.NOARCHIVE),
        (Selection(include=frozenset({Include.NOINDEX})), changed(noindex=True), None),
        (Selection(include=frozenset({Include.NOINDEX})), changed(noindex=True, noarchive=True), LeftOut.NOARCHIVE),
        (Selection(unique=True), changed(near_duplicate_of="https://a.example/"), LeftOut.DUPLICATE),
        (Selection(unique=True), changed(duplicate_of="https://a.example/"), LeftOut.DUPLICATE),
        (Selection(unique=True), changed(duplicate_of=PAGE.url), None),
        (Selection(use=frozenset({Use.AI_TRAIN})), changed(signals="content-signal: ai-train=no"), LeftOut.USE),
        (Selection(use=frozenset({Use.SEARCH})), changed(signals="content-signal: ai-train=no"), None),
        (Selection(everything=True, bodies=False), changed(robots=True, content_hash=b""), None),
    ],
)
def test_a_capture_fits_or_is_left_out_for_one_reason(
    selection: Selection, row: CaptureRow, reason: LeftOut | None
) -> None:
    """W6, K3: status, type, site, time, whole bodies, and what the page and its site ask for."""
    assert selection.reason(row) is reason


def test_every_reason_has_its_meaning() -> None:
    """W6: the summary explains what it counts."""
    assert MEANINGS.keys() == set(LeftOut)


def test_of_a_url_the_newest_capture_that_fits_is_taken() -> None:
    """W6: one that failed since does not hide it; what came after the time that was asked for does not count."""
    url = PAGE.url
    rows = [sample_row(number, url) for number in (5, 6, 7)]
    rows[2] = replace(rows[2], status=500)
    selection = Selection()
    assert [selection.superseded(row, rows) for row in rows[:2]] == [LeftOut.OLDER, None]
    before = Selection(until=rows[1].at)
    assert before.superseded(rows[0], rows) is None


def test_captures_of_the_same_instant_are_told_apart_by_their_place() -> None:
    """W6: of each URL exactly one, whatever clocks say."""
    rows = [replace(sample_row(number, PAGE.url), at=7) for number in (5, 6)]
    assert [Selection().superseded(row, rows) for row in rows] == [LeftOut.OLDER, None]


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_gone_since_is_left_out(status: int) -> None:
    """W6, R5: what its owner has removed is not given away; a later failure of another kind does not remove it."""
    later = replace(sample_row(9, PAGE.url), status=status)
    assert Selection().superseded(PAGE, [PAGE, later]) is LeftOut.GONE
    back = sample_row(10, PAGE.url)
    assert Selection().superseded(back, [PAGE, later, back]) is None
    assert Selection(until=later.at).superseded(PAGE, [PAGE, later]) is None


@pytest.mark.parametrize(
    ("wish", "reason", "without"),
    [
        ({"noindex": True}, LeftOut.NOINDEX, Selection(include=frozenset({Include.NOINDEX}))),
        ({"noarchive": True}, LeftOut.NOARCHIVE, Selection(include=frozenset({Include.NOARCHIVE}))),
        ({"signals": "content-signal: ai-train=no"}, LeftOut.USE, Selection()),
    ],
)
@pytest.mark.parametrize("kept", [{}, {"truncated": "unspecified"}, {"status": 304, "kind": "revisit"}])
def test_a_page_that_asks_for_it_since_is_left_out(
    wish: dict[str, object], reason: LeftOut, without: Selection, kept: dict[str, object]
) -> None:
    """K3: no older capture stands in for it, whatever is kept of the later one; --until gives it as it was then."""
    later = replace(sample_row(9, PAGE.url), **wish, **kept)  # type: ignore[arg-type]  # checked by the fields
    selection = Selection(use=frozenset({Use.AI_TRAIN}))
    assert selection.superseded(PAGE, [later, PAGE]) is reason
    assert without.superseded(PAGE, [later, PAGE]) is (None if kept else LeftOut.OLDER)
    back = sample_row(10, PAGE.url)
    assert selection.superseded(PAGE, [back, later, PAGE]) is LeftOut.OLDER
    assert selection.superseded(back, [back, later, PAGE]) is None
    assert replace(selection, until=later.at).superseded(PAGE, [PAGE, later]) is None


def test_what_a_page_has_come_to_last_is_why_it_is_left_out() -> None:
    """W6, K3: one reason of several, whatever order they are listed in."""
    private = replace(sample_row(8, PAGE.url), noindex=True)
    gone = replace(sample_row(9, PAGE.url), status=410)
    assert Selection().superseded(PAGE, [PAGE, private, gone]) is LeftOut.GONE
    assert Selection().superseded(PAGE, [replace(private, at=gone.at + 1), gone]) is LeftOut.NOINDEX


def test_a_site_that_allows_a_use_again_has_its_pages_exported() -> None:
    """K3: the last visit counts, an unchanged page's as well; what workers outside report says nothing of a site."""
    refused = replace(sample_row(8, PAGE.url), status=304, kind="revisit", signals="content-signal: ai-train=no")
    allowed = replace(sample_row(9, PAGE.url), status=304, kind="revisit", signals="content-signal: ai-train=yes")
    outside = replace(sample_row(10, PAGE.url), kind="external", signals="")
    selection = Selection(use=frozenset({Use.AI_TRAIN}))
    assert selection.superseded(PAGE, [PAGE, refused, allowed]) is None
    assert selection.superseded(PAGE, [PAGE, refused, outside]) is LeftOut.USE


def test_a_page_was_last_seen_when_it_was_last_found_unchanged() -> None:
    """W6, H3: a 304 renews it, one that came after a change does not."""
    unchanged = [replace(sample_row(number, PAGE.url), status=304, kind="revisit") for number in (6, 7, 9)]
    other = sample_row(8, PAGE.url)
    assert last_seen(PAGE, [PAGE, *unchanged, other]) == unchanged[1].at
    assert last_seen(PAGE, ()) == PAGE.at
    assert last_seen(other, [PAGE, *unchanged, other]) == unchanged[2].at


@pytest.mark.parametrize(
    ("signals", "refused"),
    [
        ("", set()),
        ("content-signal: search=yes, ai-train=no", {Use.AI_TRAIN}),
        ("content-signal: search=no,ai-input=no", {Use.SEARCH, Use.AI_INPUT}),
        ("Content-Usage: train-ai=n", {Use.AI_TRAIN}),
        ("content-usage: /drafts/ train-ai=n", {Use.AI_TRAIN}),
        ("content-usage: bots=n", {Use.AI_TRAIN, Use.AI_INPUT}),
        ("disallowaitraining: /", {Use.AI_TRAIN}),
        ("disallowaitraining:", set()),
        ("content-signal: ai-train=yes\ncontent-signal: ai-train = no", {Use.AI_TRAIN}),
        ("search=no", {Use.SEARCH}),
    ],
)
def test_preferences_of_sites_in_all_their_spellings(signals: str, refused: set[Use]) -> None:
    """K3: what is unclear is a no."""
    assert {use for use in Use if refuses(signals, use)} == refused


@pytest.mark.parametrize("piece", ["a", "-", "a-", "=", "a=", " ", "a =", "a= "])
def test_a_preference_without_an_end_is_read_in_a_moment(piece: str) -> None:
    """K3, Q5: it may be as long as a robots.txt, and every page of its site is held against it."""
    started = time.process_time()
    for use in Use:
        assert not refuses(f"content-signal: {piece * (500_000 // len(piece))}", use)
    assert time.process_time() - started < 2
