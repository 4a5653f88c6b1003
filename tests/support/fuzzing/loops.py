"""The other loops in C against their twins: bundles, near-duplicates, hashes."""

from __future__ import annotations

from xxhash import xxh3_128_digest, xxh32_intdigest

from nephila.dedup import near_twin
from nephila.dedup.near_run import run_bytes
from nephila.frontier.embedded import links, unpacking
from nephila.frontier.embedded.bundle import BUNDLE_BYTES
from nephila.model.page import Link
from nephila.model.task import Candidate, Level
from nephila.native import AVAILABLE, native
from nephila.pipeline.outlinks import plain_outlinks
from nephila.store.warc import plain_base32
from nephila.urls import Address, Fingerprint

from .target import Choices, Target, text_of

_HOSTS = ("a.example", "www.b.example", "c.test:8080")
_TABLE = tuple((rank << 32) + rank * 30_000_000 for rank in range(128))
_ENTRY = 12
_PREFIX_BYTES = 18


def _key_of(host: str) -> bytes:
    return xxh3_128_digest(host.encode())[:12]


def _nearer(one: Candidate, other: Candidate) -> Candidate:
    return one if one.depth <= other.depth else other


def _candidates(choices: Choices) -> list[Candidate]:
    found = []
    levels = (None, None, Level.IMMEDIATE, Level.LOW)
    for _ in range(choices.number(40)):
        host = _HOSTS[choices.number(3)]
        tail = ("/", "/a", "?y", "", "/b?x=1", "/\u00fc", "/" + "long/" * 100, f"/{choices.number(9)}")[
            choices.number(8)
        ]
        url = f"{('https', 'http')[choices.number(2)]}://{host}{tail}"
        address = Address(url, host, url, Fingerprint(xxh3_128_digest(url.encode())))
        found.append(
            Candidate(address, choices.number(4), levels[choices.number(4)], choices.number(2), choices.number(2))
        )
    return found  # fmt: skip


def check_bundles(data: bytes) -> None:
    """Links get the same keys, the same places and the same bytes in C and in Python."""
    if not AVAILABLE:
        return
    choices = Choices(data)
    page, later, room = _candidates(choices), bool(choices.number(2)), choices.number(200)
    keys = {host: _key_of(host) for host in _HOSTS}
    plain = links.plain_link_keys(page, keys, _key_of, _nearer)
    assert native.link_keys(page, keys, _key_of, _nearer) == plain
    found = []
    for key in plain[1]:
        match choices.number(4):
            case 0:
                found.append(
                    (key, b"\0" + bytes(choices.number(256) for _ in range(9)) + bytes((choices.number(128),)))
                )
            case 1:
                found.append((key, b"\1" + bytes(choices.number(256) for _ in range(19))))
            case 2:
                found.append((key, bytes((0x9E, choices.number(8), choices.number(128))) + bytes(choices.number(20))))
    writes: tuple[links.Writes, links.Writes] = ([], [])
    rest = (found, _key_of(_HOSTS[0]), _TABLE, _TABLE, choices.number(256), later)
    expected = links.plain_sort_links(plain[0], *rest, writes[0])
    new, again = native.sort_links(plain[0], *rest, writes[1])
    assert ({host: tuple(group) for host, group in new.items()}, again) == expected
    assert writes[0] == writes[1]
    urls: dict[bytes, Candidate] = {one.address.fingerprint: one for one in page}
    if not urls:
        return
    marks: tuple[links.Writes, links.Writes] = ([], [])
    prefix, rank = bytes(range(_PREFIX_BYTES)), choices.number(128)
    head = (1, 2, rank, 4, bytes(room % 30))
    told = (head, _HOSTS[0], urls, BUNDLE_BYTES - room, 7, prefix)
    bundles = links.plain_pack_bundles(*told, marks[0])
    assert native.pack_bundles(*told, marks[1]) == bundles
    assert marks[0] == marks[1]
    for fingerprint in urls:
        for size in (8, 16):
            wanted = fingerprint[:size]
            moved = native.split_off(bundles[0][1], wanted, rank)
            assert moved == unpacking.plain_split_off(bundles[0][1], wanted, rank)
            told_of = native.take_url(bundles[0][1], wanted, bytes(12))
            assert told_of == unpacking.plain_take_url(bundles[0][1], wanted, bytes(12))
    end: int = len(bundles[0][1])
    while (found := native.next_url(bundles[0][1], end, bytes(12))) is not None:
        assert found == unpacking.plain_next_url(bundles[0][1], end, bytes(12))
        end = found[0]


def check_near(data: bytes) -> None:
    """Runs are merged and searched alike; nothing within the distance is missed."""
    choices = Choices(data)
    distance, cut = choices.number(8), choices.number(8)
    rest = choices.rest()
    entries = rest[: len(rest) // _ENTRY * _ENTRY]
    count = len(entries) // _ENTRY
    first, second = entries[: count * cut // 8 * _ENTRY], entries[count * cut // 8 * _ENTRY :]
    runs = []
    for merge in (near_twin.merge, *((native.near_merge,) if AVAILABLE else ())):
        one = bytearray(run_bytes(len(first) // _ENTRY))
        merge(one, [], first)
        both = bytearray(run_bytes(count))
        merge(both, [bytes(one)], second)
        runs.append(bytes(both))
    assert len(set(runs)) == 1
    wanted = int.from_bytes(entries[:8], "little") ^ choices.number(8)
    near = near_twin.scan_entries(entries, wanted, distance)
    assert sorted(near_twin.find_in_runs(runs[:1], wanted, distance)) == sorted(near)
    if AVAILABLE:
        assert native.near_scan(entries, wanted, distance) == near
        assert sorted(native.near_find(runs[:1], wanted, distance)) == sorted(near)


def check_texts(data: bytes) -> None:
    """Hashes, digests and lists of outlinks."""
    if not AVAILABLE:
        return
    assert native.xxh32(data, len(data)) == xxh32_intdigest(data, len(data))
    digest = data[:20].ljust(20, b"x")
    assert native.base32(digest) == plain_base32(digest)
    page = tuple(Link(url, "a", "", "") for url in text_of(data).split("\n"))
    assert native.outlinks(page) == plain_outlinks(page)


TARGETS = (
    Target("bundles", check_bundles, (bytes(range(1, 200)), bytes([39, 5, 200]) * 90), (), 1024),
    Target("near", check_near, (bytes([3, 4]) + bytes(range(240)), bytes([6, 1]) + b"\xff" * 600), (), 2400),
    Target("texts", check_texts, (b"http://a.test/\nhttp://b.test/\n", bytes(20), bytes(range(64))), (b"\n",), 400),
)  # fmt: skip
