"""Queues and shelves counted anew: an entry of a bundle is valid or was moved elsewhere, and only valid ones count."""

from __future__ import annotations

from collections import Counter

from nephila.frontier import order
from nephila.frontier.embedded.book import AGE_STEP_S
from nephila.frontier.embedded.bundle import BUNDLE_BYTES, entries_of, fingerprint_of, read_head, tail_of
from nephila.frontier.embedded.marks import PARKED, QUEUED, place_in
from nephila.frontier.embedded.sections import section_of
from nephila.frontier.embedded.shelving import REASONS
from nephila.frontier.embedded.tables import HOST_KEY_BYTES, PREFIX_BYTES, URL
from nephila.frontier.lifecycle import State
from nephila.model.outcome import DeferReason

from .store import Store


def check_queue(store: Store) -> None:
    """Every queued URL is in the bundle that it names, exactly once; lanes and ages are counted by valid entries."""
    standing = _standing(store)
    found: Counter[bytes] = Counter()
    lanes: Counter[tuple[bytes, int]] = Counter()
    ages: Counter[tuple[int, int]] = Counter()
    sections: Counter[bytes] = Counter()
    for bundle_key, value in store.queue.items():
        key, place = bundle_key[:HOST_KEY_BYTES], bundle_key[HOST_KEY_BYTES:]
        head = read_head(value, key, URL)
        entries = list(entries_of(value))
        assert entries, "an empty bundle"
        assert len(value) <= BUNDLE_BYTES or len(entries) == 1, "a bundle is too large"
        for entry in entries:
            url_key = key + URL + fingerprint_of(entry)[:PREFIX_BYTES]
            if standing.get(url_key) == place:
                found[url_key] += 1
                lanes[key, place[0]] += 1
                if store.hosts[key].sections:
                    sections[key + section_of(tail_of(entry))] += 1
                ages[head.admitted_s // AGE_STEP_S, order.level_of_lane(place[0])] += 1
    assert found == dict.fromkeys(standing, 1), "a queued URL is not in its bundle, or twice"
    for key, host in store.hosts.items():
        assert host.queued == [lanes[key, lane] for lane in range(order.LANES)], host.name
    assert {section: count for section, count in store.sections.items() if count} == sections, "queued URLs by section"
    totals = store.book.totals
    assert totals.queued == [sum(host.queued[lane] for host in store.hosts.values()) for lane in range(order.LANES)]
    kept = {
        (age, level): count for age, levels in store.book.ages.items() for level, count in enumerate(levels) if count
    }
    assert kept == ages, "queued URLs by age"


def _standing(store: Store) -> dict[bytes, bytes]:
    """The place of each queued URL, as its own key names it."""
    standing = {url_key: place_in(raw) for url_key, raw in store.marks.items() if raw[0] == QUEUED}
    for url_key, record in store.records.items():
        if record.state is State.QUEUED:
            assert record.place[0] == order.lane_of(order.supply_of_lane(record.place[0]), record.level)
            standing[url_key] = record.place
        else:
            assert not record.place, f"a {record.state.name} URL has a place in the queue"
    return standing


def check_shelves(store: Store) -> None:
    """Every parked URL is in the bundle that it names, nothing else lies on a shelf, and all of it is counted."""
    parked = {
        url_key[:HOST_KEY_BYTES] + raw[11:20] + place_in(raw): set[bytes]()
        for url_key, raw in store.marks.items()
        if raw[0] == PARKED
    }
    for url_key, raw in store.marks.items():
        if raw[0] == PARKED:
            parked[url_key[:HOST_KEY_BYTES] + raw[11:20] + place_in(raw)].add(url_key[HOST_KEY_BYTES + 1 :])
    lying: dict[bytes, set[bytes]] = {}
    hosts: Counter[bytes] = Counter()
    reasons: Counter[str] = Counter()
    for shelf_key, value in store.shelves.items():
        entries = [fingerprint_of(entry)[:PREFIX_BYTES] for entry in entries_of(value)]
        assert len(set(entries)) == len(entries) > 0
        lying[shelf_key] = set(entries)
        hosts[shelf_key[:HOST_KEY_BYTES]] += len(entries)
        reasons[REASONS[shelf_key[HOST_KEY_BYTES]]] += len(entries)
    assert lying == parked, "what lies on the shelves is not what is parked"
    for key, host in store.hosts.items():
        assert host.shelved == hosts[key], host.name
    assert {reason: count for reason, count in store.book.totals.shelved.items() if count} == reasons
    named = {shelf_key[HOST_KEY_BYTES : HOST_KEY_BYTES + 1] + shelf_key[:HOST_KEY_BYTES] for shelf_key in store.shelves}
    assert set(store.keys("shelves")) == named


def has_on_shelf(store: Store, key: bytes, reason: DeferReason) -> bool:
    """Whether a host has URLs parked for a reason."""
    prefix = key + bytes((REASONS.index(reason),))
    return any(shelf_key.startswith(prefix) for shelf_key in store.shelves)
