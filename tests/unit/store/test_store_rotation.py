"""What names tell, and when a file is full."""

import pytest

from nephila.store.rotation import (
    LONGEST_SERIAL,
    LONGEST_WRITER,
    RollLimits,
    begun_at,
    index_name,
    longest_tail,
    next_serial,
    tail_of_name,
    writer_of,
)

NOON = 1_767_268_800_000
LIKE_A_TAIL = "a-20250101000000-00077-w9-b.example"


def test_serials_count_on_from_the_highest_of_the_same_writer() -> None:
    """W1: a restart within the same second takes no name twice, whatever the layout was before."""
    names = [
        "nephila-20260101120000-00007-w0.warc.gz",
        "nephila-20260101120000-00009-w1.warc.gz",
        "nephila-20260101120000-00004-w0-a-b.example.warc.gz",
        "nephila-20260101120000-00050-w0.cdxj",
        "2026-01-01/ab/cd-20260101120000-00011-w2.warc.gz",
        "notes.txt",
    ]
    assert next_serial(names, 0) == 8
    assert next_serial(names, 1) == 10
    assert next_serial(names, 2) == 12
    assert next_serial([], 0) == 0


@pytest.mark.parametrize(
    "name",
    [
        "nephila-20260101120000-00007-w3.warc.gz",
        f"nephila-20260101120000-00007-w3-{LIKE_A_TAIL}.warc.gz",
        f"{LIKE_A_TAIL}/{LIKE_A_TAIL}-20260101120000-00007-w3.warc.gz",
        f"{LIKE_A_TAIL}/x-20260101120000-00007-w3.warc.zst",
    ],
)
def test_a_host_does_not_pass_for_what_a_name_tells(name: str) -> None:
    """W1, Q5: who wrote a file, which one it was and when it was begun, though a host looks like that."""
    assert (writer_of(name), next_serial([name], 3), begun_at(name)) == (3, 8, NOON)


def test_a_name_of_somebody_else_tells_nothing() -> None:
    """W1: a file that was put there by hand is nobody's, and of no time."""
    assert (writer_of("notes.warc.gz"), begun_at("a/notes.warc.gz")) == (0, None)
    assert begun_at("x-20269999999999-00000-w0.warc.gz") is None


def test_the_longest_tail_is_counted_on() -> None:
    """W1: with every digit there may be, and the end of a draft's name."""
    tail = tail_of_name(NOON, 10 ** (LONGEST_SERIAL - 1), 10 ** (LONGEST_WRITER - 1))
    assert len(f"{tail}.warc.zst.purge") == longest_tail()


def test_a_file_is_full_by_size_or_age() -> None:
    """W1: rolled by size or age; a new file takes a capture of any size."""
    limits = RollLimits(max_bytes=1_000, max_age_ms=60_000)
    assert not limits.reached(0, 5_000, 0)
    assert not limits.reached(900, 100, 59_999)
    assert limits.reached(900, 101, 0)
    assert limits.reached(1, 1, 60_000)


def test_the_index_lies_beside_its_file() -> None:
    """W1: x.warc.gz has its index in x.cdxj."""
    assert index_name("x.warc.gz") == "x.cdxj"
    assert index_name("a/b/x.warc.zst") == "a/b/x.cdxj"
