"""Hosts, leases, domains and traps counted anew."""

from __future__ import annotations

from collections import Counter, defaultdict

from nephila.frontier import order
from nephila.frontier.embedded.book import time_key
from nephila.frontier.embedded.records import HostState, Place
from nephila.frontier.embedded.settling import USEFUL_AFTER
from nephila.frontier.embedded.tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES
from nephila.frontier.embedded.tallies import group_of
from nephila.frontier.traps import TrapState
from nephila.model.outcome import DeferReason

from .queue import has_on_shelf
from .store import Store


def check_hosts(store: Store) -> None:
    """A host is in exactly one place, and the index of that place says so."""
    totals = store.book.totals
    waiting, ready, parked = set[bytes](), set[bytes](), set[bytes]()
    put_off: Counter[str] = Counter()
    for key, host in store.hosts.items():
        assert store.book.tables.host_key(host.name) == key
        assert host.robots == store.robots[key]
        assert min(host.queued) >= 0
        if host.reason:
            put_off[host.reason] += max(1, sum(host.queued))
        if key in store.leased:
            continue
        assert bool(host.ready) == (host.place is Place.READY)
        match host.place:
            case Place.IDLE:
                assert not any(host.queued), f"{host.name} has work and nobody knows"
                assert not host.robots, f"{host.name} has a robots.txt to fetch and nobody knows"
                assert not has_on_shelf(store, key, DeferReason.TRAP), f"nobody will try a trap of {host.name} again"
            case Place.WAITING:
                waiting.add(time_key(host.next_at) + key)
            case Place.PARKED:
                parked.add(key)
            case Place.READY:
                _check_ready(store, key, host)
                ready.update(place + key for place in host.ready)
    assert set(store.keys("waiting")) == waiting
    assert set(store.keys("ready")) == ready
    assert set(store.keys("parked")) == parked
    assert totals.hosts == len(store.hosts)
    counted = (totals.hosts_waiting, totals.hosts_ready, totals.hosts_leased)
    assert counted == (len(waiting), len({entry[-HOST_KEY_BYTES:] for entry in ready}), len(store.leased))
    lanes = Counter(entry[0] for entry in ready)
    assert totals.ready == [lanes[lane] for lane in range(order.LANES + 1)]
    assert {reason: count for reason, count in totals.put_off.items() if count} == put_off


def _check_ready(store: Store, key: bytes, host: HostState) -> None:
    """A ready host stands in the index by its best URL of each class, and once by how long it has had work.

    Only the domain's count in its keys may be old, and the class: waiting lifts it meanwhile. Of two bundles with the
    same score and depth it may be either that stands there.
    """
    *lanes, starving = host.ready
    assert starving == order.since_key(host.work_since, host.name, store.book.policy.random_seed)
    assert host.work_since > 0
    assert lanes, f"{host.name} is ready without work"
    assert len({place[0] for place in lanes}) == len(lanes)
    pages = store.book.domain(key).pages
    assert all(order.count_in_ready_key(place) <= pages for place in lanes)
    heads = store.book.heads(key, host)
    best = min(place[1:] for place in heads.values())
    assert best[:4] in {place[5:9] for place in lanes}, f"{host.name} has better work"


def check_leases(store: Store) -> None:
    """A leased host has exactly one lease, and is nowhere else; what a lease covers still waits at its place."""
    book = store.book
    assert {lease.host_key: token for token, lease in store.leases.items()} == store.leased
    assert len(store.leases) == len(store.leased)
    for token, lease in store.leases.items():
        assert 0 < token < book.totals.next_token
        host = store.hosts[lease.host_key]
        assert host.place is Place.READY
        assert not host.reason
        assert all(lease.host_key + entry[: order.PLACE_BYTES] in store.queue for entry in lease.entries)
        assert not lease.origin or store.robots[lease.host_key]


def check_domains(store: Store) -> None:
    """What a domain says of its hosts is so."""
    totals = store.book.totals
    taken, over, useful = Counter[bytes](), Counter[bytes](), Counter[bytes]()
    referrers: defaultdict[bytes, int] = defaultdict(int)
    for key, host in store.hosts.items():
        of = key[:DOMAIN_KEY_BYTES]
        (over if host.over else taken)[of] += 1
        useful[of] += host.fresh >= USEFUL_AFTER
        referrers[of] |= host.referrers
        if host.over and not (any(host.queued) or host.robots or key in store.leased):
            assert (host.place, host.reason) == (Place.PARKED, DeferReason.BUDGET), f"nobody will take on {host.name}"
    policed = {name.decode() for name in store.keys("policies")}
    for of, domain in store.domains.items():
        assert store.book.tables.domain_key(domain.name) == of
        assert referrers[of] | domain.referrers == referrers[of]
        counted = (domain.hosts, domain.hosts_over, domain.useful)
        assert counted == (taken[of], over[of], useful[of]), domain.name
        assert domain.policed == (domain.name in policed)
    assert totals.domains == sum(domain.pages > 0 for domain in store.domains.values())
    assert totals.domains_met == len(store.domains)


def check_traps(store: Store) -> None:
    """Patterns that hold URLs back are listed and counted, and their shelves are looked at again."""
    flagged: Counter[bytes] = Counter()
    held = set[bytes]()
    for tally_key, tally in store.tallies.items():
        assert tally_key[HOST_KEY_BYTES:] == group_of(tally.pattern)
        if tally.state is not TrapState.NORMAL:
            flagged[tally_key[:HOST_KEY_BYTES]] += 1
            held.add(tally_key)
    assert set(store.keys("trapped")) == held
    assert store.book.totals.traps == len(held)
    for key, host in store.hosts.items():
        assert host.flagged == flagged[key], host.name
        if has_on_shelf(store, key, DeferReason.TRAP):
            assert host.trap_at, f"nobody will try a trap of {host.name} again"
