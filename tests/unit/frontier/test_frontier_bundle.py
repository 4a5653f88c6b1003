"""F8: queued URLs lie in bundles; whatever is packed comes out again, first to last, and no bundle grows too large."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nephila.frontier.embedded.bundle import (
    BUNDLE_BYTES,
    Head,
    entries_of,
    find,
    fingerprint_of,
    pack_bundle,
    pack_entry,
    pack_head,
    read_head,
    split,
    tail_of,
    without,
)

HOST_KEY = b"domainhost.."
MARK = b"\1"
fingerprints = st.binary(min_size=16, max_size=16)
prefixes = st.binary(min_size=8, max_size=8)
heads = st.builds(
    Head,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(0, 127),
    st.integers(0, 255),
    st.one_of(
        st.just(b""),
        prefixes.map(lambda prefix: HOST_KEY + MARK + prefix),
        prefixes.map(lambda prefix: b"anotherhost." + MARK + prefix),
    ),
)
some_urls = st.lists(
    st.tuples(st.binary(min_size=1, max_size=60), fingerprints),
    min_size=1,
    max_size=40,
    unique_by=lambda one: one[1][:8],
)


@settings(max_examples=200, deadline=None)
@given(heads)
def test_a_head_is_read_as_it_was_packed(head: Head) -> None:
    """F8, T8: the page that it was found on included, whether that is on the same host or on another."""
    assert read_head(pack_head(head, HOST_KEY), HOST_KEY, MARK) == head


@settings(max_examples=50, deadline=None)
@given(heads, st.integers(2**16, 2**40), st.integers(256, 2**20))
def test_what_a_head_has_no_room_for_is_cut_to_the_most_it_holds(head: Head, cycle: int, hops: int) -> None:
    """F8: rather than raise in the middle of a commit."""
    found = read_head(pack_head(head._replace(cycle=cycle, hops=hops), HOST_KEY), HOST_KEY, MARK)
    assert (found.cycle, found.hops) == (0xFFFF, 255)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000), fingerprints)
def test_an_entry_is_read_as_it_was_packed(tail: bytes, fingerprint: bytes) -> None:
    """F8: URLs of any length."""
    entry = pack_entry(tail, fingerprint)
    assert (tail_of(entry), fingerprint_of(entry)) == (tail, fingerprint)


@settings(max_examples=200, deadline=None)
@given(heads, some_urls)
def test_a_bundle_gives_back_its_urls_first_to_last(head: Head, urls: list[tuple[bytes, bytes]]) -> None:
    """F8, F6: in the order in which they were put in, whatever bytes they are made of."""
    entries = [pack_entry(*one) for one in urls]
    value = pack_bundle(pack_head(head, HOST_KEY), entries)
    assert list(entries_of(value)) == entries
    assert read_head(value, HOST_KEY, MARK) == head
    for entry, (_, fingerprint) in zip(entries, urls, strict=True):
        assert find(value, fingerprint) == entry
        assert find(value, fingerprint[:8]) == entry
    stranger = bytes(byte ^ 0xFF for byte in urls[0][1])
    assume(all(stranger[:8] != fingerprint[:8] for _, fingerprint in urls))
    assert find(value, stranger) is None


@settings(max_examples=200, deadline=None)
@given(heads, some_urls, st.randoms(use_true_random=False))
def test_urls_are_taken_out_one_by_one_in_any_order(
    head: Head, urls: list[tuple[bytes, bytes]], chance: object
) -> None:
    """F8: each leaves the others as they were; with the last one the bundle is gone."""
    entries = [pack_entry(*one) for one in urls]
    value: bytes | None = pack_bundle(pack_head(head, HOST_KEY), entries)
    leaving = list(entries)
    chance.shuffle(leaving)  # type: ignore[attr-defined]
    for entry in leaving:
        assert value is not None
        value = without(value, entry)
        entries.remove(entry)
        assert (list(entries_of(value)) if value is not None else []) == entries
    assert value is None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2500), fingerprints), min_size=1, max_size=60, unique_by=lambda one: one[1]),
    st.integers(9, 40),
)
def test_entries_are_split_so_that_every_bundle_stays_small(sizes: list[tuple[int, bytes]], head_bytes: int) -> None:
    """F8: LMDB gives values over half a page whole pages of their own; only a URL too long for that gets one."""
    entries = [pack_entry(b"s" * size, fingerprint) for size, fingerprint in sizes]
    pieces = split(entries, head_bytes)
    assert [entry for piece in pieces for entry in piece] == entries
    for piece in pieces:
        assert piece
        assert len(piece) == 1 or head_bytes + sum(map(len, piece)) <= BUNDLE_BYTES
