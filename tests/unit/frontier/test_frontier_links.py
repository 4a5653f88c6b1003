"""The loops of admission in C against their twins in Python: the same for whatever comes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_digest, xxh32_intdigest

from nephila.frontier.embedded import links, unpacking
from nephila.frontier.embedded.bundle import BUNDLE_BYTES, Fields
from nephila.frontier.lifecycle import State
from nephila.frontier.scope import Scope, ScopeSeeds
from nephila.frontier.sieve import ScopeSieve
from nephila.model.settings import ScopeSettings
from nephila.model.task import Candidate, Level
from nephila.native import AVAILABLE, native
from nephila.parse import links_that_matter, parse_html
from nephila.urls import Address, Fingerprint, Identifier, NormalRules, UrlLimits

HOSTS = ("a.example", "www.b.example", "c.test:8080", "münchen.example")
PREFIX = bytes(range(18))
TABLE = tuple((rank << 32) + rank * 30_000_000 for rank in range(128))
EVEN = tuple((rank << 32) + (1 << 31) for rank in range(128))
"""Every other link raises the rank, as its spelling has it."""


def test_the_extension_is_there() -> None:
    """Without it the comparisons below would compare the twins with themselves."""
    assert AVAILABLE


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    host = draw(st.sampled_from(HOSTS))
    scheme = draw(st.sampled_from(("https", "http")))
    port = draw(st.sampled_from(("", ":81")))
    path = draw(
        st.sampled_from(("/", "/a", "/b?x=1", "?y", "", "/ü/é", "/" + "long/" * 200, f"/{draw(st.integers(0, 40))}"))
    )
    url = f"{scheme}://{host}{port}{path}"
    address = Address(url, host, url, Fingerprint(xxh3_128_digest(url.encode())))
    return Candidate(
        address,
        draw(st.integers(0, 3)),
        draw(st.sampled_from((None, None, None, Level.IMMEDIATE, Level.LOW))),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 1)),
    )


def nearer(one: Candidate, other: Candidate) -> Candidate:
    return one if one.depth <= other.depth else other


def key_of(host: str) -> bytes:
    return xxh3_128_digest(host.encode())[:12]


class HostKeys(dict[str, bytes]):
    def find(self, host: str) -> bytes:
        self[host] = key_of(host)
        return self[host]


raws = st.one_of(
    st.none(),
    st.builds(
        lambda place, rank: b"\0" + place + bytes((rank,)), st.binary(min_size=9, max_size=9), st.integers(0, 127)
    ),
    st.builds(lambda rest: b"\1" + rest, st.binary(min_size=19, max_size=19)),
    st.builds(
        lambda state, rank, rest: b"\x9e" + bytes((state, rank)) + rest,
        st.sampled_from([int(state) for state in State]),
        st.integers(0, 127),
        st.binary(max_size=20),
    ),
)


@given(st.lists(candidates(), max_size=30), st.data())
def test_keys_new_and_known_links_are_told_apart_alike(page: list[Candidate], data: st.DataObject) -> None:
    """F8: what C says of the links of a page is what Python says."""
    plain_keys, native_keys = HostKeys(), HostKeys()
    plain = links.plain_link_keys(page, plain_keys, plain_keys.find, nearer)
    assert native.link_keys(page, native_keys, native_keys.find, nearer) == plain
    keyed, ordered, _ = plain
    known = {key: data.draw(raws) for key in ordered}
    found = [(key, raw) for key, raw in known.items() if raw is not None]
    source = key_of(HOSTS[0])
    inside = data.draw(st.sampled_from((TABLE, None)))
    salt, later = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.booleans())
    plain_writes: links.Writes = []
    native_writes: links.Writes = []
    expected = links.plain_sort_links(keyed, found, source, inside, TABLE, salt, later, plain_writes)
    new, again = native.sort_links(keyed, found, source, inside, TABLE, salt, later, native_writes)
    assert ({host: tuple(group) for host, group in new.items()}, again) == expected
    assert native_writes == plain_writes


def packed_candidates(paths: list[str]) -> Sequence[Candidate]:
    """What a page with these links brings to the frontier, as the sieve leaves it."""
    settings = ScopeSettings(mode="all")
    seeds = ScopeSeeds(frozenset({"a.example"}), frozenset({"a.example"}))
    identifier = Identifier(7, NormalRules(), UrlLimits())
    sieve = ScopeSieve(identifier, Scope(settings, 9, seeds), settings, links_that_matter, lambda: None)
    body = "".join(f'<a href="{path}">x</a>' for path in paths).encode()
    return sieve.sift(parse_html(body, "https://a.example/x/", "text/html", agent="x"), 2).candidates


@given(
    st.lists(
        st.sampled_from(
            (
                "/",
                "a",
                "b?x=1",
                "b?utm_source=y",
                "//b.example/ü",
                "https://b.example/c",
                "p%41",
                "pA",
                "//A.example:80/q",
            )
        ),
        max_size=12,
    ),
    st.data(),
)
def test_packed_links_are_told_apart_like_others(paths: list[str], data: st.DataObject) -> None:
    """F8, Q1: of links that lie packed nothing is made that need not be, and they go the way of others."""
    packed, nouns = packed_candidates(paths), list(packed_candidates(paths))
    plain_keys, native_keys = HostKeys(), HostKeys()
    keyed, ordered, hosts = links.plain_link_keys(nouns, plain_keys, plain_keys.find, nearer)
    packed_keyed, packed_ordered, packed_hosts = native.link_keys(packed, native_keys, native_keys.find, nearer)
    assert (packed_keyed[0], packed_ordered, packed_hosts) == (keyed[0], ordered, hosts)
    found = [(key, raw) for key in ordered if (raw := data.draw(raws)) is not None]
    source = key_of(HOSTS[0])
    salt = data.draw(st.integers(0, 2**32 - 1))
    inside, later = data.draw(st.sampled_from((EVEN, None))), data.draw(st.booleans())
    plain_writes: links.Writes = []
    native_writes: links.Writes = []
    expected = links.plain_sort_links(keyed, found, source, inside, EVEN, salt, later, plain_writes)
    new, again = native.sort_links(packed_keyed, found, source, inside, EVEN, salt, later, native_writes)
    assert ({host: tuple(group) for host, group in new.items()}, again) == expected
    assert native_writes == plain_writes
    assert list(packed_keyed[1]) == keyed[1]


heads = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(0, 70_000),
    st.integers(0, 127),
    st.integers(0, 300),
    st.sampled_from((b"", PREFIX[:12] + b"\1" + bytes(8), b"\7" * 21)),
)


@given(st.lists(candidates(), max_size=60), heads, st.integers(0, 2**40))
def test_bundles_are_packed_alike(page: list[Candidate], head: Fields, seed: int) -> None:
    """F8: bundles from C are those from Python, byte for byte, however many there are, and so are the marks of URLs."""
    urls = {one.address.fingerprint: one for one in page}
    plain_writes: links.Writes = [(b"before", b"")]
    native_writes: links.Writes = [(b"before", b"")]
    expected = links.plain_pack_bundles(head, HOSTS[0], urls, BUNDLE_BYTES, seed, PREFIX, plain_writes)
    assert native.pack_bundles(head, HOSTS[0], urls, BUNDLE_BYTES, seed, PREFIX, native_writes) == expected
    assert native_writes == plain_writes
    assert [key for key, _ in native_writes] == [b"before", *urls]


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1))
def test_the_hash_is_xxh32(text: bytes, seed: int) -> None:
    assert native.xxh32(text, seed) == xxh32_intdigest(text, seed)


@given(st.lists(candidates(), min_size=1, max_size=20), st.integers(0, 30), st.sampled_from((8, 16)))
def test_entries_are_split_off_alike(page: list[Candidate], at: int, size: int) -> None:
    """F3: a URL leaves its bundle, and nothing else does."""
    head = (1, 2, 3, 4, bytes(21))
    urls = {one.address.fingerprint: one for one in page}
    ((_, bundle, _),) = native.pack_bundles(head, HOSTS[0], urls, 100_000, 0, PREFIX, [])
    wanted = [*urls, bytes(16)][at % (len(urls) + 1)][:size]
    assert native.split_off(bundle, wanted, 127) == unpacking.plain_split_off(bundle, wanted, 127)


@given(
    st.lists(candidates(), min_size=1, max_size=20),
    st.integers(0, 30),
    st.sampled_from((8, 16)),
    st.integers(0, 2**32 - 1),
    st.sampled_from((b"", PREFIX[:12] + b"\1" + bytes(8), b"\7" * 21)),
)
def test_urls_are_taken_out_alike(page: list[Candidate], at: int, size: int, admitted_s: int, via: bytes) -> None:
    """F3: what a bundle knows of a URL is the same in C and in Python, whichever page it was found on."""
    head = (admitted_s, 65_535, 3, 255, via)
    urls = {one.address.fingerprint: one for one in page}
    ((_, bundle, _),) = native.pack_bundles(head, HOSTS[0], urls, 100_000, 0, PREFIX, [])
    wanted = [*urls, bytes(16)][at % (len(urls) + 1)][:size]
    taken = native.take_url(bundle, wanted, PREFIX[:12])
    assert taken == unpacking.plain_take_url(bundle, wanted, PREFIX[:12])
    if taken is not None:
        assert taken[1:5] == (admitted_s, 65_535, 255, via)
    met, end = list[bytes](), len(bundle)
    while (found := native.next_url(bundle, end, PREFIX[:12])) is not None:
        assert found == unpacking.plain_next_url(bundle, end, PREFIX[:12])
        end = found[0]
        met.append(found[2])
    assert met == list(urls)
    assert unpacking.plain_next_url(bundle, end, PREFIX[:12]) is None


@pytest.mark.parametrize("bundle", [b"", bytes(8), bytes(8) + b"\5", bytes(9) + bytes(17), bytes(9) + b"\xff" * 20])
def test_a_damaged_bundle_is_told(bundle: bytes) -> None:
    """F8: nothing is read beyond the bytes that are there."""
    for call in (
        lambda: native.split_off(bundle, bytes(16), 0),
        lambda: native.take_url(bundle, bytes(16), bytes(12)),
        lambda: native.next_url(bundle, len(bundle), bytes(12)),
    ):
        with pytest.raises(ValueError, match="damaged"):
            call()


bitmaps = st.dictionaries(st.sampled_from([key_of(host) for host in HOSTS]), st.integers(0, 2**64 - 1))


@given(st.sets(st.sampled_from(HOSTS)), st.sampled_from(HOSTS), st.integers(0, 63), bitmaps, bitmaps)
def test_referrers_are_counted_alike(
    linked: set[str], own: str, bit: int, referred: dict[bytes, int], waiting: dict[bytes, int]
) -> None:
    """F5: the same hosts are marked in C and in Python, and the same ones are told to be new."""
    hosts = {host: key_of(host) for host in sorted(linked)}
    plain, quick = (dict(referred), dict(waiting)), (dict(referred), dict(waiting))
    expected = links.plain_count_referrer(hosts, key_of(own)[:6], 1 << bit, *plain)
    assert native.count_referrer(hosts, key_of(own)[:6], 1 << bit, *quick) == expected
    assert quick == plain
