"""What is new on ordinary hosts, queued in C and in Python: the same for whatever comes."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_digest

from nephila.frontier import order
from nephila.frontier.embedded import arrivals, links
from nephila.frontier.embedded.arrivals import FIELDS, Ledger, Page
from nephila.frontier.embedded.book import Book
from nephila.frontier.embedded.records import HostState, Place
from nephila.model.task import Candidate, Level
from nephila.native import native
from nephila.urls import Address, Fingerprint

HOSTS = ("a.example", "www.a.example", "c.test", "münchen.example")
BOOK = cast("Book", object())
"""It is handed on to whoever is asked for hosts and standings, and nothing else."""


def key_of(host: str) -> bytes:
    domain = host.removeprefix("www.")
    return xxh3_128_digest(domain.encode())[:6] + xxh3_128_digest(host.encode())[:6]


def candidate(host: str, path: str, depth: int, level: Level | None, bonus: int) -> Candidate:
    url = f"https://{host}/{path}"
    return Candidate(Address(url, host, url, Fingerprint(xxh3_128_digest(url.encode()))), depth, level, 0, bonus)


ready_keys = st.lists(
    st.builds(
        lambda lane, count, step, depth: order.ready_key(lane, count, order.pack_place(lane, step, depth, b"tie!"), 7),
        st.integers(0, 6),
        st.integers(0, 3),
        st.integers(0, 200),
        st.integers(0, 3),
    ),
    max_size=3,
)
states = st.builds(
    HostState,
    st.sampled_from(HOSTS),
    st.lists(st.integers(0, 9), min_size=7, max_size=7),
    place=st.sampled_from(list(Place)),
    ready=ready_keys,
    reason=st.sampled_from(("", "", "", "robots")),
    work_since=st.sampled_from((0, 5)),
    admitted=st.integers(0, 30),
    referrers=st.integers(0, 2**64 - 1),
    flagged=st.sampled_from((0, 0, 0, 1)),
    sections=st.sampled_from((False, False, False, True)),
    over=st.sampled_from((False, False, False, True)),
)
pages = st.lists(
    st.builds(
        candidate,
        st.sampled_from(HOSTS),
        st.integers(0, 99).map(lambda number: f"section/page-{number}"),
        st.sampled_from((1, 1, 1, 2)),
        st.sampled_from((None, None, None, None, Level.LOW)),
        st.sampled_from((0, 0, 0, 5)),
    ),
    max_size=30,
)


@given(
    pages,
    st.fixed_dictionaries(dict.fromkeys(HOSTS, states)),
    st.sets(st.sampled_from(HOSTS)),
    st.sets(st.sampled_from(HOSTS)),
    st.sampled_from((b"", key_of(HOSTS[0]) + b"\1" + bytes(8))),
    st.sampled_from((None, 900_000)),
    st.sampled_from((0, 1)),
    st.sampled_from((60, 200, 4000)),
)
def test_what_is_new_on_ordinary_hosts_is_queued_alike(
    page: list[Candidate],
    found: dict[str, HostState],
    at_hand: set[str],
    leased: set[str],
    via: bytes,
    mean: int | None,
    lowered: int,
    bundle_bytes: int,
) -> None:
    """F8, F3: bundles, marks, counts, and who is woken or needs a closer look."""
    hosts = {host: key_of(host) for host in HOSTS}
    new: dict[str, links.Group] = {}
    for one in page:
        urls = new.setdefault(one.address.host, ({}, None))[0]
        urls[hosts[one.address.host] + b"\1" + one.address.fingerprint[:8]] = one
    for host, (urls, _) in new.items():
        kinds = {one[1:] for one in urls.values()}
        new[host] = (urls, kinds.pop() if len(kinds) == 1 else None)

    def run(queue_new: Any) -> list[object]:
        hidden = {key_of(host): state for host, state in copy.deepcopy(found).items()}
        ledger = Ledger(
            {hosts[host]: hidden[hosts[host]] for host in at_hand},
            {hosts[HOSTS[2]]: 1},
            dict.fromkeys((hosts[host] for host in leased), 9),
            {},
            lambda book, key, name: hidden[key],
            lambda book, key, host, rank, depth, bonus: order.pack_standing(1 + bonus % 3, rank, depth),
            FIELDS,
            40,
            60,
            bundle_bytes,
            11,
            1_700_000_000,
            12_345,
        )
        queued, ages, writes = [0] * 7, [0] * 4, [(b"before", b"")]
        told = queue_new(BOOK, ledger, Page(via, 20, 30, mean, 3, lowered), new, hosts, queued, ages, writes)
        return [told, queued, ages, writes, hidden]

    assert run(native.queue_new) == run(arrivals.plain_queue_new)


@pytest.mark.parametrize("in_c", [True, False])
def test_two_bundles_with_one_tie_break_need_a_closer_look(in_c: bool) -> None:
    """F3: none takes the place of the other."""
    queue_new: Any = native.queue_new if in_c else arrivals.plain_queue_new
    one = candidate(HOSTS[0], "page", 1, None, 0)
    key, host = key_of(HOSTS[0]), HostState(HOSTS[0], [0] * 7)
    new: dict[str, links.Group] = {HOSTS[0]: ({key + b"\1" + bytes(8): one, key + b"\1" + b"\1" * 8: one}, one[1:])}
    standings = {(20, 1, 0, 0): bytes((1, 0, 0, 9, 1))}
    never: Any = pytest.fail
    ledger = Ledger({key: host}, {}, {}, standings, never, never, FIELDS, 40, 60, 40, 1, 1, 1)
    writes: links.Writes = []
    told = queue_new(BOOK, ledger, Page(b"", 20, 20, None, 1, 0), new, {HOSTS[0]: key}, [0] * 7, [0] * 4, writes)
    assert told == ([], [(key, host, *new[HOSTS[0]], 20)], [], 0, 0)
    assert not writes
    assert not host.admitted
