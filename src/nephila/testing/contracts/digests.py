"""What every `interfaces.duplicates.DigestIndex` keeps.

A check takes `open_index`, which opens an index on storage of its own; calling it again opens the same storage anew. An
index that keeps nothing beyond the process passes all but the checks in `DURABLE_CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from nephila.interfaces.duplicates import DigestIndex
from nephila.model.record import Original

OpenIndex = Callable[[], DigestIndex]


def sample_original(number: int) -> Original:
    """An original like those of a crawl."""
    return Original(
        url=f"https://spiders.example/{number}?é",
        record_id=f"urn:uuid:00000000-0000-8000-8000-{number:012x}",
        at=1_767_225_600_000 + number,
        payload_digest="sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        coding="chunked;gzip",
    )


def sample_digest(number: int) -> bytes:
    """The digest of some body."""
    return sha256(number.to_bytes(8, "big")).digest()


def check_unknown_content_is_not_found(open_index: OpenIndex) -> None:
    """D2: what was never remembered is new."""
    index = open_index()
    index.remember(sample_digest(1), sample_original(1))
    assert index.find(sample_digest(2)) is None


def check_remembered_content_is_found_at_once(open_index: OpenIndex) -> None:
    """D2: the next page with the same body finds the first, before and after a flush."""
    index = open_index()
    index.remember(sample_digest(1), sample_original(1))
    assert index.find(sample_digest(1)) == sample_original(1)
    index.flush()
    assert index.find(sample_digest(1)) == sample_original(1)


def check_a_refused_capture_is_forgotten(open_index: OpenIndex) -> None:
    """D2, F3: nothing may refer to a capture whose settle was refused; another one's entry stays."""
    index = open_index()
    for flushed in (False, True):
        index.remember(sample_digest(1), sample_original(1))
        if flushed:
            index.flush()
        index.forget(sample_digest(1), "urn:uuid:of-another-record")
        assert index.find(sample_digest(1)) == sample_original(1)
        index.forget(sample_digest(1), sample_original(1).record_id)
        assert index.find(sample_digest(1)) is None
        index.flush()
        assert index.find(sample_digest(1)) is None


def check_the_first_capture_wins(open_index: OpenIndex) -> None:
    """D2: a revisit refers to a response, so an original is never replaced."""
    index = open_index()
    for number in (1, 2):
        index.remember(sample_digest(1), sample_original(number))
    index.flush()
    index.remember(sample_digest(1), sample_original(3))
    index.flush()
    assert index.find(sample_digest(1)) == sample_original(1)


def check_flushing_nothing_is_harmless(open_index: OpenIndex) -> None:
    """D2: flush runs on a timer, whether there is something or not."""
    index = open_index()
    index.flush()
    index.flush()
    index.close()


def check_many_are_kept_apart(open_index: OpenIndex) -> None:
    """D2: each body has its own original."""
    index = open_index()
    for number in range(300):
        index.remember(sample_digest(number), sample_original(number))
        if number % 100 == 0:
            index.flush()
    assert [index.find(sample_digest(number)) for number in range(300)] == [
        sample_original(number) for number in range(300)
    ]


def check_closing_keeps_everything(open_index: OpenIndex) -> None:
    """D2: the next run knows what this one stored."""
    index = open_index()
    index.remember(sample_digest(1), sample_original(1))
    index.flush()
    index.remember(sample_digest(2), sample_original(2))
    index.close()
    index = open_index()
    assert [index.find(sample_digest(number)) for number in (1, 2)] == [sample_original(1), sample_original(2)]
    index.close()


DURABLE_CHECKS: tuple[Callable[[OpenIndex], None], ...] = (check_closing_keeps_everything,)

CHECKS: tuple[Callable[[OpenIndex], None], ...] = (
    check_unknown_content_is_not_found,
    check_remembered_content_is_found_at_once,
    check_a_refused_capture_is_forgotten,
    check_the_first_capture_wins,
    check_flushing_nothing_is_harmless,
    check_many_are_kept_apart,
)
