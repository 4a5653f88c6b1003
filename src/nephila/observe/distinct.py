"""How many different things there were, exactly, in as little memory as that takes.

A crawl meets millions of hosts, and its figures say how many. A set of numbers takes some seventy bytes for each; here
each is eight bytes in a table with open addressing, twelve to twenty-four with the free places. There are many small
tables instead of a large one, so that none of them is ever long in growing: the loop of the crawl waits for it.
"""

from __future__ import annotations

from array import array

_WORD = (1 << 64) - 1
_TABLES = 256
_FIRST_PLACES = 8
_EMPTY = 0


class Distinct:
    """Counts different 64-bit hashes; those of Python do, as their bits are mixed well."""

    __slots__ = ("_count", "_tables", "_used")

    def __init__(self) -> None:
        self._tables = [array("Q", bytes(8 * _FIRST_PLACES)) for _ in range(_TABLES)]
        self._used = [0] * _TABLES
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, number: int) -> bool:
        """Count a hash; whether it was not there yet."""
        number = number & _WORD or 1
        which = number % _TABLES
        table = self._tables[which]
        last = len(table) - 1
        place = number // _TABLES & last
        if table[place] == number:  # most of what is added is there, where it belongs
            return False
        place = _place(table, number)
        if table[place] == number:
            return False
        table[place] = number
        self._count += 1
        self._used[which] += 1
        if 3 * self._used[which] > 2 * len(table):
            self._tables[which] = _grown(table)
        return True


def _place(table: array[int], number: int) -> int:
    """Where a number lies, or would lie."""
    last = len(table) - 1
    place = number // _TABLES & last
    while (held := table[place]) != number and held != _EMPTY:
        place = place + 1 & last
    return place


def _grown(table: array[int]) -> array[int]:
    larger = array("Q", bytes(16 * len(table)))
    for number in table:
        if number != _EMPTY:
            larger[_place(larger, number)] = number
    return larger
