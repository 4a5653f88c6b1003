"""Admission's inner loops: the links of a page get their keys, known ones are told from new ones, new ones are packed.

These run for every link, so they are written in C too (`native/frontier.c`, `native/queueing.c`), and the C is used
where it was built. What stands here is what it does; the tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from xxhash import xxh32_digest, xxh32_intdigest

from nephila.frontier.lifecycle import State
from nephila.model.task import Candidate, Level
from nephila.native import AVAILABLE, native

from .bundle import BUNDLE_BYTES, Fields, pack_bundle, pack_entry, pack_head, split, tail_of
from .marks import DEPTH_AT, PARKED, PLACE_END, QUEUED, queued_mark
from .records import RANK_AT
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, URL, shorten

RANKS_PER_MOVE = 8
"""A waiting URL is given another place when its rank enters another band of so many: four doublings, ten points."""

New = dict[bytes, Candidate]
"""URLs by key."""
Keyed = tuple[list[bytes], Sequence[Candidate]]
"""The keys of the URLs of a page, each once, and the links to them, in the order of the page; packed, if they were."""
Kind = tuple[int, Level | None, int, int]
"""Depth, level, hops and bonus: what URLs must share to go into one bundle."""
Group = tuple[New, Kind | None]
"""The new URLs of a host, and their kind where they are all of one."""
Writes = list[tuple[bytes, bytes]]
Met = tuple[bytes, bytes, Candidate]
"""A known URL that needs a closer look: its key, what lies under it, and the link to it."""
Bundle = tuple[bytes, bytes, int]
"""Its key, its value, and how many URLs are in it."""


def plain_link_keys(
    candidates: Sequence[Candidate],
    host_keys: dict[str, bytes],
    find_host_key: Callable[[str], bytes],
    nearer: Callable[[Candidate, Candidate], Candidate],
) -> tuple[Keyed, list[bytes], dict[str, bytes]]:
    """The candidates and the keys of their URLs, those keys in order, and their hosts with their keys.

    Of two for one URL, what is best. In order they are looked up fastest: neighbours lie on one page of the store.
    """
    keyed: New = {}
    hosts: dict[str, bytes] = {}
    for candidate in candidates:
        _, name, _, fingerprint = candidate[0]
        key = hosts.get(name)
        if key is None:
            key = hosts[name] = host_keys.get(name) or find_host_key(name)
        url_key = key + URL + fingerprint[:8]
        keyed[url_key] = nearer(keyed[url_key], candidate) if url_key in keyed else candidate
    return (list(keyed), list(keyed.values())), sorted(keyed), hosts


def plain_sort_links(
    keyed: Keyed,
    found: list[tuple[bytes, bytes]],
    source: bytes,
    inside: tuple[int, ...] | None,
    abroad: tuple[int, ...] | None,
    salt: int,
    later_cycle: bool,
    writes: Writes,
) -> tuple[dict[str, Group], list[Met]]:
    """New URLs by host, and the known ones that need a closer look; ranks that rise go into `writes`.

    `found` is what lies under the known keys, in the order of the keys; `source` begins with the key of the page's
    domain, and `inside` and `abroad` are what its links bring (`rank.Part.known`).
    """
    known = dict(found)
    new: dict[str, New] = {}
    again: list[Met] = []
    for url_key, candidate in zip(*keyed, strict=True):
        raw = known.get(url_key)
        if raw is None:
            new.setdefault(candidate[0][1], {})[url_key] = candidate
            continue
        table = inside if url_key[:DOMAIN_KEY_BYTES] == source[:DOMAIN_KEY_BYTES] else abroad
        if raw[0] == PARKED:
            if candidate.level is Level.IMMEDIATE:
                again.append((url_key, raw, candidate))
            continue
        rank_at = PLACE_END if raw[0] == QUEUED else RANK_AT
        raised = risen(table, raw[rank_at], candidate, salt)
        if raw[0] == QUEUED:
            moves = raised // RANKS_PER_MOVE != raw[rank_at] // RANKS_PER_MOVE
            special = moves or candidate[2] is not None or candidate[1] < raw[DEPTH_AT]
        else:
            special = raw[1] == State.QUEUED or candidate.level is Level.IMMEDIATE or later_cycle
        if special:
            again.append((url_key, raw, candidate))
        elif raised != raw[rank_at]:
            writes.append((url_key, raw[:rank_at] + bytes((raised,)) + raw[rank_at + 1 :]))
    return {name: (urls, _kind_of(urls)) for name, urls in new.items()}, again


def risen(table: tuple[int, ...] | None, rank: int, candidate: Candidate, salt: int) -> int:
    """The rank of a known URL after a link. Chance goes by the spelling: fingerprints depend on the crawl's secret."""
    return rank if table is None else (table[rank] + xxh32_intdigest(candidate[0][2].encode(), salt)) >> 32


def plain_count_referrer(
    hosts: dict[str, bytes], own: bytes, bit: int, referred: dict[bytes, int], waiting: dict[bytes, int]
) -> list[bytes]:
    """Mark the hosts that a page links to, but for those of its own domain, whose keys begin with `own`.

    Those are told that were not marked in `referred` before: they are marked in `waiting` as well.
    """
    fresh: list[bytes] = []
    for key in hosts.values():
        counted = referred.get(key, 0)
        if counted & bit or key.startswith(own):
            continue
        referred[key] = counted | bit
        waiting[key] = waiting.get(key, 0) | bit
        fresh.append(key)
    return fresh


def _kind_of(urls: New) -> Kind | None:
    kinds = {candidate[1:] for candidate in urls.values()}
    return kinds.pop() if len(kinds) == 1 else None


def plain_pack_bundles(
    head: Fields, host: str, urls: New, most: int, seed: int, prefix: bytes, writes: Writes
) -> list[Bundle]:
    """New URLs of a host as bundles with their keys; the marks that go under the URLs' own keys are in `writes`.

    `most` is how many bytes a bundle may have; `prefix` begins the keys: the host, the queue, lane, step and depth.
    """
    bundles: list[Bundle] = []
    packed = pack_head(head, prefix[:HOST_KEY_BYTES])
    entries = [pack_entry(shorten(url, host).encode(), fingerprint) for (url, _, _, fingerprint), *_ in urls.values()]
    url_keys = iter(urls)
    for chunk in split(entries, BUNDLE_BYTES - most + len(packed)) if entries else ():
        key = prefix + xxh32_digest(host.encode() + tail_of(chunk[0]), seed & 0xFFFF_FFFF)
        bundles.append((key, pack_bundle(packed, chunk), len(chunk)))
        mark = queued_mark(key[HOST_KEY_BYTES + 1 :], head[2])
        writes += [(url_key, mark) for url_key in islice(url_keys, len(chunk))]
    return bundles


link_keys = native.link_keys if AVAILABLE else plain_link_keys
count_referrer = native.count_referrer if AVAILABLE else plain_count_referrer
sort_links = native.sort_links if AVAILABLE else plain_sort_links
pack_bundles = native.pack_bundles if AVAILABLE else plain_pack_bundles
