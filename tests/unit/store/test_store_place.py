"""What lies under a prefix, and whose it is."""

from nephila.store import ArchivePlace
from nephila.store.trail_place import TrailListing

OURS = [
    "crawls/nephila-crawl",
    "crawls/nephila-20260101000000-00000-w0.warc.gz",
    "crawls/2026-01-01/ab/cd-20260101000000-00001-w0.warc.gz",
    "crawls/2026-01-01/ab/cd-20260101000000-00001-w0.cdxj",
    "crawls/trail/0123456789abcdef/events-000001.jsonl",
]
REGION = [
    "crawls/eu/nephila-20260101000000-00000-w5.warc.gz",
    "crawls/eu/2026-01-01/ab/cd-20260101000000-00001-w5.warc.gz",
    "crawls/eu/trail/fedcba9876543210/events-000001.jsonl",
]


def test_other_crawls_below_a_prefix_are_told_apart() -> None:
    """W1, W2, N6: by their marker or their trail; folders of our own are ours."""
    place = ArchivePlace("bucket", "crawls")
    assert list(place.names(OURS).values()) == OURS
    assert list(place.names([*OURS, *REGION]).values()) == OURS, "a trail is enough"
    marked = [*OURS, "crawls/us/nephila-crawl", "crawls/us/x-20260101000000-00000-w7.warc.gz"]
    assert list(place.names(marked).values()) == OURS, "so is a marker"
    assert list(ArchivePlace("bucket", "crawls/eu").names(REGION).values()) == REGION


def test_archives_in_folders_are_listed_with_their_trail() -> None:
    """K1, W1: by their whole name."""
    listing = TrailListing(ArchivePlace("bucket", "crawls"), [*OURS, *REGION])
    assert sorted(listing.archives) == [
        "2026-01-01/ab/cd-20260101000000-00001-w0.cdxj",
        "2026-01-01/ab/cd-20260101000000-00001-w0.warc.gz",
        "nephila-20260101000000-00000-w0.warc.gz",
    ]
    assert listing.owners == ["0123456789abcdef"]
