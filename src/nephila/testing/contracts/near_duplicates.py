"""What every `interfaces.near_duplicates.NearIndex` keeps.

A check takes `open_index`, which opens an index on storage of its own under a rule; calling it again opens the same
storage anew. An index that keeps nothing beyond the process passes all but the checks in `DURABLE_CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol

from nephila.dedup import NearRule
from nephila.interfaces.near_duplicates import NearIndex
from nephila.model.likeness import Likeness

RULE = NearRule(max_distance=6, min_resemblance=0.6)


class OpenNearIndex(Protocol):
    """Opens an index."""

    def __call__(self, rule: NearRule = RULE) -> NearIndex:
        """Under that rule."""


def sample_likeness(number: int) -> Likeness:
    """That of some page, unlike any other."""
    drawn = blake2b(number.to_bytes(8, "big"), digest_size=40).digest()
    return Likeness(int.from_bytes(drawn[:8], "big"), drawn[8:])


def sample_url(number: int) -> str:
    """Where that page is."""
    return f"https://spiders.example/{number}?é"


def changed(likeness: Likeness, bits: tuple[int, ...] = (), sketch_bytes: int = 0) -> Likeness:
    """A likeness with these bits of the hash, and so many bytes of the sketch, changed."""
    simhash = likeness.simhash
    for bit in bits:
        simhash ^= 1 << bit
    other = bytes(byte ^ 0xFF for byte in likeness.sketch[:sketch_bytes])
    return Likeness(simhash, other + likeness.sketch[sketch_bytes:])


def check_unlike_pages_are_not_found(open_index: OpenNearIndex) -> None:
    """D3: what is like nothing before is new, with an empty index too."""
    index = open_index()
    assert index.find(sample_likeness(2)) is None
    index.remember(sample_likeness(1), sample_url(1))
    for flushed in (False, True):
        if flushed:
            index.flush()
        assert index.find(sample_likeness(2)) is None
    index.close()


def check_near_pages_are_found_at_once(open_index: OpenNearIndex) -> None:
    """D3: within the distance and alike by the sketch, before and after a flush; what it tells is true."""
    index = open_index()
    index.remember(sample_likeness(1), sample_url(1))
    for flushed in (False, True):
        if flushed:
            index.flush()
        for bits in ((), (0,), (63, 5, 17), (1, 2, 20, 21, 40, 60)):
            found = index.find(changed(sample_likeness(1), bits, 4))
            assert found is not None
            assert (found.url, found.distance) == (sample_url(1), len(bits))
            assert 0.8 < found.resemblance < 0.9
    index.close()


def check_hash_and_sketch_must_both_agree(open_index: OpenNearIndex) -> None:
    """D3: one bit too many is no candidate; a candidate with another sketch is not confirmed."""
    index = open_index()
    index.remember(sample_likeness(1), sample_url(1))
    for flushed in (False, True):
        if flushed:
            index.flush()
        assert index.find(changed(sample_likeness(1), (0, 10, 20, 30, 40, 50, 60))) is None
        assert index.find(changed(sample_likeness(1), (), 16)) is None
    index.close()


def check_the_plain_rule_asks_no_sketch(open_index: OpenNearIndex) -> None:
    """D3: distance 3 on the hash alone, for those who want that."""
    index = open_index(NearRule.plain())
    index.remember(sample_likeness(1), sample_url(1))
    index.flush()
    found = index.find(changed(sample_likeness(1), (3, 30, 60), 32))
    assert found is not None
    assert found.resemblance == 1.0
    assert index.find(changed(sample_likeness(1), (3, 30, 60, 61))) is None
    index.close()


def check_the_earliest_page_is_the_original(open_index: OpenNearIndex) -> None:
    """D3: of several that are near, whichever is nearer; so two pages are never each other's near-duplicates."""
    index = open_index()
    index.remember(sample_likeness(1), sample_url(1))
    index.flush()
    index.remember(changed(sample_likeness(1), (7,)), sample_url(2))
    index.remember(changed(sample_likeness(1), (8,)), sample_url(3))
    for flushed in (False, True):
        if flushed:
            index.flush()
        for bits in ((), (7,), (8,)):
            found = index.find(changed(sample_likeness(1), bits))
            assert found is not None
            assert found.url == sample_url(1)
    index.close()


def check_remembering_twice_changes_nothing(open_index: OpenNearIndex) -> None:
    """D3, F3: what is settled again after a crash is remembered once."""
    index = open_index()
    assert index.remember(sample_likeness(1), sample_url(1))
    assert not index.remember(sample_likeness(1), sample_url(1))
    index.flush()
    assert not index.remember(sample_likeness(1), sample_url(1))
    assert index.snapshot().originals == 1
    assert index.remember(sample_likeness(1), sample_url(2))
    assert index.snapshot().originals == 2
    index.close()


def check_a_refused_page_is_forgotten(open_index: OpenNearIndex) -> None:
    """D3, F3: nothing is found near to a page whose settle was refused; others stay."""
    index = open_index()
    for flushed in (False, True):
        assert index.remember(sample_likeness(1), sample_url(1))
        index.remember(sample_likeness(1), sample_url(2))
        if flushed:
            index.flush()
        index.forget(sample_likeness(1), "https://another.example/")
        found = index.find(sample_likeness(1))
        assert found is not None
        assert found.url == sample_url(2 if flushed else 1)
        index.forget(sample_likeness(1), sample_url(1))
        index.flush()
        found = index.find(sample_likeness(1))
        assert found is not None
        assert found.url == sample_url(2)
    index.close()


def check_many_are_kept_apart(open_index: OpenNearIndex) -> None:
    """D3: each page has its own original, over many flushes; flushing nothing is harmless."""
    index = open_index()
    for number in range(700):
        index.remember(sample_likeness(number), sample_url(number))
        if number % 90 == 0:
            index.flush()
            index.flush()
    found = [index.find(changed(sample_likeness(number), (number % 64,))) for number in range(700)]
    assert [one.url for one in found if one is not None] == [sample_url(number) for number in range(700)]
    assert index.snapshot().originals == 700
    index.close()


def check_closing_keeps_everything(open_index: OpenNearIndex) -> None:
    """D3: the next run knows what this one found."""
    index = open_index()
    index.remember(sample_likeness(1), sample_url(1))
    index.flush()
    index.remember(sample_likeness(2), sample_url(2))
    assert index.snapshot().unwritten == 1
    index.close()
    index = open_index()
    assert index.snapshot().originals == 2
    for number in (1, 2):
        found = index.find(sample_likeness(number))
        assert found is not None
        assert found.url == sample_url(number)
    index.close()


DURABLE_CHECKS: tuple[Callable[[OpenNearIndex], None], ...] = (check_closing_keeps_everything,)

CHECKS: tuple[Callable[[OpenNearIndex], None], ...] = (
    check_unlike_pages_are_not_found,
    check_near_pages_are_found_at_once,
    check_hash_and_sketch_must_both_agree,
    check_the_plain_rule_asks_no_sketch,
    check_the_earliest_page_is_the_original,
    check_remembering_twice_changes_nothing,
    check_a_refused_page_is_forgotten,
    check_many_are_kept_apart,
)
