"""What people are told of the spool: while a crawl runs, beside it, and at its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nephila.cli.display import progress_line
from nephila.cli.live import frame
from nephila.cli.status import status_lines
from nephila.cli.summary import exit_code, summary_lines
from nephila.model.summary import SpoolStanding, StoppedBy

from .conftest import SNAPSHOT, STATUS, SUMMARY

WAITING = SpoolStanding("s3://crawls/x", segments=12, bytes=700_000_000, oldest_s=185.0)
TROUBLED = replace(WAITING, away="the archive's store is busy (503 SlowDown)", full=True)


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (SpoolStanding(), "nothing waits"),
        (WAITING, "12 segments, 700 MB, oldest 3 min"),
        (SpoolStanding(segments=1, bytes=1_200_000, oldest_s=59.4), "1 segment, 1.2 MB, oldest 59 s"),
        (SpoolStanding(segments=1500, bytes=96_000_000_000, oldest_s=9000), "1,500 segments, 96.0 GB, oldest 2 h"),
        (SpoolStanding(segments=3, bytes=10_000_000), "3 segments, 10 MB"),
        (SpoolStanding(segments=2, bytes=10_000_000, oldest_s=3 * 86_400.0), "2 segments, 10 MB, oldest 3 d"),
    ],
)
def test_what_waits_in_a_few_words(standing: SpoolStanding, words: str) -> None:
    """W2: how many, how much, since when; of a fleet nobody knows when."""
    assert standing.words() == words


def test_what_a_worker_is_held_up_by_is_told_to_its_fleet() -> None:
    """W2, N3: an idle worker with work to do says why; a full spool, a store that is away, or both."""
    assert WAITING.holds_up() == ""
    assert replace(WAITING, full=True).holds_up() == "its spool is full: fetching waits"
    assert TROUBLED.holds_up() == f"its spool is full: fetching waits; {TROUBLED.away}"


def test_the_live_view_and_plain_lines_show_the_spool_and_its_trouble() -> None:
    """W2, C4: and nothing of it where the archive lies in the crawl directory."""
    lines = [line.plain for line in frame(replace(SNAPSHOT, spool=TROUBLED), [], title="x", width=120)]
    assert any(
        line.startswith("spool") and "oldest 3 min (full: fetching waits) (the archive's store is busy" in line
        for line in lines
    )
    assert "spool: 12 segments, 700 MB, oldest 3 min (full" in progress_line(replace(SNAPSHOT, spool=TROUBLED))
    assert "spool" not in progress_line(SNAPSHOT)


def test_status_and_summary_say_where_the_archive_is_and_what_waits() -> None:
    """W2: with the command that brings it, and the exit code of a crawl that is not done."""
    status = " ".join(" ".join(status_lines(replace(STATUS, spool=WAITING), 100)).split())
    assert "archive s3://crawls/x; spool: 12 segments, 700 MB, oldest 3 min" in status
    unsent = replace(SUMMARY, spool=WAITING, stopped_by=StoppedBy.UNSENT)
    told = " ".join(" ".join(summary_lines(unsent, None, 100)).split())
    assert "s3://crawls/x; 12 segments, 700 MB, oldest 3 min wait in the spool" in told
    assert "nephila flush" in told
    assert exit_code(unsent) == 1
    sent = replace(SUMMARY, spool=SpoolStanding("s3://crawls/x"))
    told = " ".join(summary_lines(sent, None, 100))
    assert "s3://crawls/x" in told
    assert "flush" not in told
