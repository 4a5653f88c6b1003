"""Counting what is different."""

import sys
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from nephila.observe.distinct import Distinct

NUMBERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 40).map(lambda one: one << 40), max_size=400)


@given(numbers=NUMBERS)
def test_each_number_counts_once(numbers: list[int]) -> None:
    """O1: as a set would say, whatever the bits that numbers have in common; only 0 and 1 are one."""
    known: set[int] = set()
    distinct = Distinct()
    for number in numbers:
        assert distinct.add(number) == ((number or 1) not in known)
        known.add(number or 1)
        assert len(distinct) == len(known)


def test_a_number_takes_a_few_bytes() -> None:
    """Q3: less than half of what a set takes, at the worst time, which is after growing."""
    numbers = [hash(f"h{number}.example") for number in range(100_000)]
    tracemalloc.start()
    try:
        distinct = Distinct()
        for number in numbers:
            distinct.add(number)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(distinct) == len(set(numbers))
    assert held / len(distinct) < 25
    assert held < (sys.getsizeof(set(numbers)) + 32 * len(numbers)) / 2
