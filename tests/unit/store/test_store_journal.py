"""Rows that wait beside their segment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.record import RecordRef, SegmentId, StoredCapture
from nephila.store import RowJournal
from nephila.testing.contracts.archive import page_capture, row_of
from nephila.testing.disk import ForgetfulDisk

SEGMENT = SegmentId("nephila-20260101000000-00000-w0.warc.gz")
FOLDER = Path("/spool")
PATH = FOLDER / f"{SEGMENT}.rows"


def rows(count: int) -> list[CaptureRow]:
    made = []
    for number in range(count):
        ref = RecordRef(SEGMENT, number * 100, 60, number * 100 + 100)
        row = row_of(page_capture(number), StoredCapture(ref, "urn:uuid:x", "sha1:X", "", number))
        made.append(
            replace(row, simhash=-number if number % 2 else None, title="Spinne \u00fc", content_hash=bytes(32))
        )
    return made


def test_what_is_kept_comes_back_with_the_last_mark() -> None:
    """W2: every field of a row, in order; nothing where there is no journal."""
    disk = ForgetfulDisk()
    journal = RowJournal(FOLDER, disk)
    assert (journal.read(SEGMENT).rows, journal.read(SEGMENT).mark, journal.repair(SEGMENT)) == ([], 0, 0)
    kept = rows(5)
    journal.append(SEGMENT, kept[:2], 200)
    journal.append(SEGMENT, [], 250)
    journal.append(SEGMENT, kept[2:], 500)
    found = journal.read(SEGMENT)
    assert found.rows == kept
    assert found.mark == journal.repair(SEGMENT) == 500
    assert disk.open_files == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_torn_or_hurt_journal_only_moves_the_mark_back(data: st.DataObject) -> None:
    """W2, F10: wherever it is cut or changed, what is believed is whole, and it can be appended to."""
    disk = ForgetfulDisk()
    journal = RowJournal(FOLDER, disk)
    kept = rows(3)
    for number, row in enumerate(kept):
        journal.append(SEGMENT, [row], number * 100 + 100)
    whole = disk.contents(PATH)
    cut = data.draw(st.integers(0, len(whole)))
    hurt = bytearray(whole[:cut]) if data.draw(st.booleans()) else bytearray(whole[:cut] + bytes(len(whole) - cut))
    disk.overwrite(PATH, bytes(hurt))
    mark = journal.repair(SEGMENT)
    found = journal.read(SEGMENT)
    assert found.mark == mark == len(found.rows) * 100
    assert found.rows == kept[: len(found.rows)]
    journal.append(SEGMENT, kept, 900)
    assert journal.read(SEGMENT).rows == [*kept[: len(found.rows)], *kept]
    assert journal.read(SEGMENT).mark == 900
