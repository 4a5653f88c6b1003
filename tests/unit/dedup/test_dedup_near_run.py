"""Runs of fingerprints: nothing within the distance is missed, nothing beyond it is told, in C as in Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.dedup import near_run, near_twin
from nephila.dedup.near_run import FARTHEST, TABLES, pack_entry, run_bytes
from nephila.native import AVAILABLE, native

Merge = Callable[[bytearray, Sequence[bytes | bytearray], bytes], None]
Find = Callable[[Sequence[bytes | bytearray], int, int], list[tuple[int, int]]]

ENGINES: list[tuple[Merge, Find]] = [(near_twin.merge, near_twin.find_in_runs)]
if AVAILABLE:
    ENGINES.append((native.near_merge, native.near_find))


def packed(fingerprints: Sequence[int], first: int = 0) -> bytes:
    return b"".join(pack_entry(fingerprint, number) for number, fingerprint in enumerate(fingerprints, first))


def run_of(fingerprints: Sequence[int], merge: Merge = near_run.merge_into) -> bytearray:
    out = bytearray(run_bytes(len(fingerprints)))
    merge(out, [], packed(fingerprints))
    return out


def flipped(fingerprint: int, bits: Sequence[int]) -> int:
    for bit in bits:
        fingerprint ^= 1 << bit
    return fingerprint


def brute(fingerprints: Sequence[int], wanted: int, distance: int) -> list[tuple[int, int]]:
    apart = [(number, (one ^ wanted).bit_count()) for number, one in enumerate(fingerprints)]
    return [(number, bits) for number, bits in apart if bits <= distance]


@pytest.mark.parametrize("engine", ENGINES, ids=["python", "native"][: len(ENGINES)])
def test_every_spread_of_up_to_seven_bits_over_the_blocks_is_found(engine: tuple[Merge, Find]) -> None:
    """D3: all ways in which the differing bits can fall into the four blocks, at the first and the last places."""
    merge, find = engine
    fingerprint = 0x0123_4567_89AB_CDEF
    run = run_of([fingerprint], merge)
    others = run_of([random.Random(number).getrandbits(64) for number in range(3000)] + [fingerprint], merge)
    spreads = [spread for spread in product(range(8), repeat=TABLES) if sum(spread) <= FARTHEST]
    assert len(spreads) == 330
    for spread in spreads:
        for first in (True, False):
            bits = [
                48 - 16 * block + (place if first else 15 - place)
                for block in range(TABLES)
                for place in range(spread[block])
            ]
            for distance in range(FARTHEST + 1):
                wanted = [(0, sum(spread))] if sum(spread) <= distance else []
                assert find([run], flipped(fingerprint, bits), distance) == wanted
                known = [(3000, sum(spread))] if wanted else []
                assert find([others], flipped(fingerprint, bits), distance) == known


def test_fewer_places_than_blocks_and_neighbours_would_be_enough() -> None:
    """D3: why the neighbours of `distance - 3` tables suffice: any so many blocks hold one with a single bit."""
    for distance in range(4, FARTHEST + 1):
        spreads = [one for one in product(range(1, 8), repeat=TABLES) if sum(one) <= distance]
        assert spreads
        for spread, asked in product(spreads, combinations(range(TABLES), distance - 3)):
            assert any(spread[block] == 1 for block in asked)


@settings(max_examples=150, deadline=None)
@given(
    base=st.lists(st.integers(0, 2**64 - 1), max_size=40, unique=True),
    near=st.lists(st.tuples(st.integers(0, 39), st.lists(st.integers(0, 63), max_size=9, unique=True)), max_size=40),
    distance=st.integers(0, FARTHEST),
)
def test_a_run_finds_what_looking_at_every_one_finds(
    base: list[int], near: list[tuple[int, list[int]]], distance: int
) -> None:
    """D3: no more and no less, each once; by both engines, in one run, in several, and among packed entries."""
    fingerprints = base + [flipped(base[number], bits) for number, bits in near if number < len(base)]
    halves = len(fingerprints) // 2
    for wanted in [*fingerprints[-12:], 0, 2**64 - 1]:
        expected = brute(fingerprints, wanted, distance)
        assert near_run.scan_entries(packed(fingerprints), wanted, distance) == expected
        assert near_twin.scan_entries(packed(fingerprints), wanted, distance) == expected
        for merge, find in ENGINES:
            assert sorted(find([run_of(fingerprints, merge)], wanted, distance)) == expected
        first = run_of(fingerprints[:halves])
        rest = bytearray(run_bytes(len(fingerprints) - halves))
        near_run.merge_into(rest, [], packed(fingerprints[halves:], halves))
        assert sorted(near_run.find_in_runs([first, rest], wanted, distance)) == expected


@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 0, 0), (0, 5, 1), (40, 31, 33), (5000, 900, 0), (3000, 70, 4096)])
def test_merging_is_the_same_in_any_order_and_by_both_engines(sizes: tuple[int, int, int]) -> None:
    """D3: byte for byte; fingerprints that are equal keep the order of their ids."""
    drawn = random.Random(7)
    fingerprints = [drawn.getrandbits(64) if drawn.random() < 0.9 else drawn.getrandbits(4) for _ in range(sum(sizes))]
    first, second, third = (
        packed(fingerprints[: sizes[0]]),
        packed(fingerprints[sizes[0] : sizes[0] + sizes[1]], sizes[0]),
        packed(fingerprints[sizes[0] + sizes[1] :], sizes[0] + sizes[1]),
    )
    made = []
    for merge, _ in ENGINES:
        runs = [bytearray(run_bytes(sizes[0])), bytearray(run_bytes(sizes[1]))]
        merge(runs[0], [], first)
        merge(runs[1], [], second)
        for sources in (runs, runs[::-1]):
            out = bytearray(run_bytes(sum(sizes)))
            merge(out, sources, third)
            made.append(out)
    assert all(one == run_of(fingerprints) for one in made)
    assert near_run.is_run(made[0], sum(sizes))


@pytest.mark.parametrize("engine", ENGINES, ids=["python", "native"][: len(ENGINES)])
def test_what_is_no_run_is_refused(engine: tuple[Merge, Find]) -> None:
    """D3: bytes that were not written as a run are neither searched nor merged; distances end with the tables'."""
    merge, find = engine
    run = run_of([1, 2, 3])
    for bad in (b"", bytes(run[:-8]), bytes(len(run)), bytes(run) + bytes(8)):
        assert not near_run.is_run(bad, 3)
        with pytest.raises(ValueError, match="not a run"):
            find([bad], 1, 3)
        with pytest.raises(ValueError, match="not a run"):
            merge(bytearray(8), [bad], b"")
    with pytest.raises(ValueError, match="room"):
        merge(bytearray(len(run) + 8), [run], b"")
    for distance in (-1, 8):
        with pytest.raises(ValueError, match="0 to 7"):
            find([run], 1, distance)
