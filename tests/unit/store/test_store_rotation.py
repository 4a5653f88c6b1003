"""File names and when a file is full."""

from nephila.store.rotation import HOUR_MS, RollLimits, SegmentKey, index_name, next_serial, segment_name

NOON = 1_767_268_800_000


def test_names_sort_by_time_then_serial() -> None:
    """W1: a listing is a timeline."""
    names = [
        segment_name("nephila", SegmentKey(), NOON, 9, 0),
        segment_name("nephila", SegmentKey(), NOON, 10, 0),
        segment_name("nephila", SegmentKey(), NOON + 1_000, 3, 0),
    ]
    assert names == sorted(names)
    assert names[0] == "nephila-20260101120000-00009-w0.warc.gz"


def test_writers_never_share_a_name() -> None:
    """W1: several processes write into one directory."""
    assert segment_name("x", SegmentKey(), NOON, 1, 0) != segment_name("x", SegmentKey(), NOON, 1, 1)


def test_the_domain_and_its_hour_are_in_the_name() -> None:
    """W1: one file per domain and hour, found by its name."""
    key = SegmentKey("spiders.example", NOON // HOUR_MS)
    assert segment_name("x", key, NOON + 1_234_567, 0, 2) == "x-20260101120000-00000-w2-spiders.example.warc.gz"


def test_hostile_domains_make_harmless_names() -> None:
    """Q5: nothing in a host leaves the directory or overflows a file name."""
    name = segment_name("x", SegmentKey("[2001:db8::1]/../" + "a" * 400, 1), NOON, 0, 0)
    assert "/" not in name
    assert len(name) < 200


def test_serials_count_on_from_the_highest_of_the_same_writer() -> None:
    """W1: a restart within the same second takes no name twice."""
    names = [
        "nephila-20260101120000-00007-w0.warc.gz",
        "nephila-20260101120000-00009-w1.warc.gz",
        "nephila-20260101120000-00004-w0-a-b.example.warc.gz",
        "nephila-20260101120000-00050-w0.cdxj",
        "notes.txt",
    ]
    assert next_serial(names, 0) == 8
    assert next_serial(names, 1) == 10
    assert next_serial([], 0) == 0


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
