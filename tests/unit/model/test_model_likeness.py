"""When two texts are near duplicates."""

from __future__ import annotations

import pytest

from nephila.model.likeness import LEAST_RESEMBLANCE, MAX_DISTANCE, Likeness, distance, is_near_duplicate, resemblance

FULL = bytes(range(1, 65))


def test_both_the_simhash_and_the_sketch_must_agree() -> None:
    """D3: few bits apart, and most of the text in common."""
    one = Likeness(0b1011, FULL, 500)
    assert is_near_duplicate(one, one)
    assert is_near_duplicate(one, Likeness(0b1011 ^ (1 << MAX_DISTANCE) - 1, FULL, 400))
    assert not is_near_duplicate(one, Likeness(0b1011 ^ (1 << MAX_DISTANCE + 1) - 1, FULL, 500))
    assert not is_near_duplicate(one, Likeness(0b1011, FULL[::-1], 500))


def test_texts_too_short_to_be_compared_are_no_duplicates() -> None:
    """D3: not even of themselves."""
    assert not is_near_duplicate(Likeness(words=5), Likeness(words=5))
    assert not is_near_duplicate(Likeness(0, FULL, 50), Likeness(words=5))


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        (FULL, FULL, 1.0),
        (FULL, FULL[:32] + bytes(32), 0.5),
        (b"\1\0\0", b"\1\0\2", 0.5),
        (b"", b"", 0.0),
        (FULL, b"", 0.0),
    ],
)
def test_places_that_neither_text_has_do_not_count(one: bytes, other: bytes, share: float) -> None:
    """D3: short texts leave places of the sketch empty."""
    assert resemblance(one, other) == resemblance(other, one) == share


def test_the_distance_is_a_number_of_bits() -> None:
    """D3: of 64."""
    assert distance(Likeness(0), Likeness(2**64 - 1)) == 64
    assert 0 < LEAST_RESEMBLANCE < 1
