"""claim: lease the hosts that may be asked now, best first.

Nothing leaves its queue here: a lease names the places it covers, and only a settle under its token takes them out. So
a crashed worker costs its hosts one delay and nothing else.

robots.txt is work like any other. A page is leased only while rules for its origin are in force; where there are none,
the lease is on the robots.txt instead, and the pages come later.
"""

from __future__ import annotations

from collections.abc import Iterator

from xxhash import xxh3_64_digest

from nephila.frontier import order
from nephila.frontier.lifecycle import State
from nephila.model.outcome import DeferReason, RulesKind
from nephila.model.task import Lease, Level, Pace, PageTask, RobotsTask, Task, Token, Validators
from nephila.urls import Fingerprint, origin_of

from .admission import wake
from .book import Book, pack, read_origin
from .records import HostState, LeaseRecord, OriginNote, RobotsEntry, UrlRecord
from .tables import HOST_KEY_BYTES, lengthen
from .upkeep import sweep

PROMOTIONS_PER_CLAIM = 2_000
"""Bound on the work of one claim: what is left over is promoted by the next."""

SHORT_DELAY_MS = 50
"""Hosts with a longer delay are leased for one URL: holding a lease through its delays would keep a worker's place
busy with waiting, and the store keeps the time as well."""

ORIGINS_LOOKED_AT = 5_000
"""How many queued URLs are looked at for one whose origin is not blocked."""

RECOUNTS_PER_PICK = 16
"""Hosts whose place is corrected before one is taken: a domain of ten thousand hosts must not stop the claim."""

MOVED_POLL_MS = 2_000
MOVED_LIMIT_MS = 600_000
"""A robots.txt that was redirected to another host is waited for so long, then asked for anew."""


def claim(book: Book, hosts: int, lease_ms: int) -> list[Lease]:
    """Lease up to `hosts` hosts, best first by the comparator of `order`."""
    sweep(book)
    _promote(book)
    leases: list[Lease] = []
    while len(leases) < hosts:
        picked = _pick(book)
        if picked is None:
            break
        lease = _lease(book, *picked, lease_ms)
        if lease is not None:
            leases.append(lease)
    return leases


def _promote(book: Book) -> None:
    """Make ready what may be claimed now.

    With one exchange at a time the order must not depend on the clock: hosts that merely rest are all ready, and are
    waited for; retries, and hosts that wait for their robots.txt, come when there is nothing else.
    """
    ahead = _ahead_ms(book)
    if not book.policy.ordered:
        promote_due(book, ahead)
        promote_waiting(book, ahead)
        return
    promote_waiting(book, ahead, waiting_for_rules=False)
    if not book.totals.hosts_ready:
        promote_due(book, ahead)
        promote_waiting(book, ahead)


def _ahead_ms(book: Book) -> int:
    """How long before its time a host may be claimed."""
    return book.policy.ordered_wait_ms if book.policy.ordered else book.policy.settings.look_ahead_ms


def promote_waiting(book: Book, ahead_ms: int, *, waiting_for_rules: bool = True) -> None:
    """Make hosts ready whose time has come, or comes within `ahead_ms`."""
    horizon = book.now + ahead_ms
    due: list[bytes] = []
    with book.txn.cursor(db=book.db["waiting"]) as cursor:
        found = cursor.first()
        while found and len(due) < PROMOTIONS_PER_CLAIM and int.from_bytes(cursor.key()[:8], "big") <= horizon:
            due.append(cursor.key()[8:])
            found = cursor.next()
    for key in due:
        host = book.known_host(key)
        _rest_after_reboot(book, host)
        if host.free_at > horizon:
            book.wait(key, host, host.free_at)
        elif host.reason == DeferReason.ROBOTS and not waiting_for_rules:
            continue
        else:
            book.make_ready(key, host)


def _rest_after_reboot(book: Book, host: HostState) -> None:
    """The clock that knew how long a host has rested is gone with the last boot: it rests one full delay anew.

    Nor does the time that only the wall clock has seen pass count towards its rest: a Retry-After is kept.
    """
    timeline = book.timeline
    if timeline.rebooted_at and 0 < host.released_at <= timeline.rebooted_at:
        rested_at = host.free_at + timeline.slept_ms - host.slept_ms
        host.free_at = max(rested_at, timeline.rebooted_at + book.delay_of(host))
        host.slept_ms = timeline.slept_ms


def promote_due(book: Book, ahead_ms: int) -> None:
    """Put URLs whose time has come back into their queues."""
    horizon = book.now + ahead_ms
    due: list[bytes] = []
    with book.txn.cursor(db=book.db["due"]) as cursor:
        found = cursor.first()
        while found and len(due) < PROMOTIONS_PER_CLAIM and int.from_bytes(cursor.key()[:8], "big") <= horizon:
            due.append(cursor.key()[8:])
            found = cursor.next()
    for url_key in due:
        record = book.url(url_key)
        due_at = record.due_at
        book.end_delay(url_key, record)
        record.state = State.QUEUED
        key = url_key[:HOST_KEY_BYTES]
        host = book.known_host(key)
        _rest_after_reboot(book, host)
        host.free_at = max(host.free_at, due_at)  # promoted ahead of its time, it must not be asked for before it
        place = book.place_of(host, record, url_key[HOST_KEY_BYTES:])
        book.enqueue(key, host, place)
        book.put_url(url_key, record)
        wake(book, key, host, (place,))


def _pick(book: Book) -> tuple[bytes, HostState, int] | None:
    """The next host by the comparator, with the level it was picked for."""
    with book.txn.cursor(db=book.db["ready"]) as cursor:
        present = [level for level in Level if cursor.set_range(bytes((level,))) and cursor.key()[0] == level]
    if not present:
        return None
    level = order.draw_level(present, book.policy.random_seed, book.totals.draws)
    book.totals.draws += 1
    for recounts in range(RECOUNTS_PER_PICK + 1):
        with book.txn.cursor(db=book.db["ready"]) as cursor:
            if not cursor.set_range(bytes((level,))):
                break
            entry = cursor.key()
        key = entry[order.READY_KEY_BYTES :]
        host = book.known_host(key)
        if recounts == RECOUNTS_PER_PICK or order.count_in_ready_key(entry) >= book.domain_count(host.domain):
            return key, host, level
        # Its domain was asked since. Counts only grow, so putting it back with the true count is exact; only where one
        # domain has very many ready hosts is the order a little behind the counts for a while.
        book.make_ready(key, host)
    return None


def _lease(book: Book, key: bytes, host: HostState, level: int, lease_ms: int) -> Lease | None:
    """Lease a ready host, or put it off and return None."""
    _rest_after_reboot(book, host)
    if host.free_at > book.now + _ahead_ms(book):
        book.wait(key, host, host.free_at)
        return None
    robots = book.first_robots(key)
    if robots is not None:
        return _robots_lease(book, key, host, robots[1], lease_ms)
    if _pages_left(book, host) == 0:
        book.park(key, host, DeferReason.HOST_LIMIT)
        return None
    found = _first_unblocked(book, key, level)
    if isinstance(found, int):
        book.wait(key, host, max(found, host.free_at), DeferReason.ROBOTS)
        return None
    origin, note, work = found
    if note is None:
        entry = RobotsEntry(origin, f"{origin}/robots.txt", 0)
        put_robots(book, key, entry)
        return _robots_lease(book, key, host, entry, lease_ms)
    tasks = tuple(
        page_task(url_key, record, host, book.url_at(record.via), verify=_verifies(book, host, record))
        for _, url_key, record in work
    )
    places = [place for place, _, _ in work]
    return _make(book, key, host, tasks, LeaseRecord(key, book.now + lease_ms, places), note.stored_at)


def _pages_left(book: Book, host: HostState) -> int | None:
    """How many pages of a host may still be fetched in this cycle; None when there is no limit."""
    if host.cycle != book.totals.cycle:
        host.cycle, host.fetched_in_cycle = book.totals.cycle, 0
    limit = book.policy.max_pages_per_host
    return max(0, limit - host.fetched_in_cycle) if limit else None


Work = tuple[bytes, bytes, UrlRecord]


def _first_unblocked(book: Book, key: bytes, level: int) -> int | tuple[str, OriginNote | None, list[Work]]:
    """The next pages of one origin whose rules are known or may be fetched; else the time when that may change."""
    host = book.known_host(key)
    wanted = book.policy.settings.urls_per_lease if book.delay_of(host) < SHORT_DELAY_MS else 1
    wanted = min(wanted, _pages_left(book, host) or wanted)
    blocked: dict[str, int] = {}
    origin, note, work = "", None, list[Work]()
    for place, url_key, record in _queued(book, key, level):
        its_origin = origin_of(lengthen(record.tail, host.name))
        if work and its_origin != origin:
            break
        if not work:
            if its_origin in blocked:
                continue
            note = origin_note(book, its_origin) if book.policy.robots else OriginNote(RulesKind.ALLOW_ALL, 0, 0)
            until = _blocked_until(book, note)
            if until is not None:
                blocked[its_origin] = until
                continue
            if book.policy.robots and (note is None or note.fresh_until <= book.now):
                return its_origin, None, []
            origin = its_origin
        work.append((place, url_key, record))
        if len(work) >= wanted:
            break
    if work:
        return origin, note, work
    return min(blocked.values(), default=book.now + MOVED_POLL_MS)


def _queued(book: Book, key: bytes, level: int) -> Iterator[Work]:
    """The first queued URLs of a host, beginning with the level it was picked for; each read when it is asked for."""
    for start, stop in ((bytes((level,)), b"\xff"), (b"", bytes((level,)))):
        place = start
        for _ in range(ORIGINS_LOOKED_AT):
            with book.txn.cursor(db=book.db["queue"]) as cursor:
                if not cursor.set_range(key + place) or cursor.key()[:HOST_KEY_BYTES] != key:
                    break
                place = cursor.key()[HOST_KEY_BYTES:]
            if place >= stop:
                break
            found = book.find(key + order.prefix_of(place))
            if found is not None:
                yield place, *found
            place += b"\0"


def _blocked_until(book: Book, note: OriginNote | None) -> int | None:
    """When an origin whose pages may not be claimed is worth another look; None when it is not blocked."""
    if note is None or not book.policy.robots:
        return None
    if note.moved_at and book.now - note.moved_at < MOVED_LIMIT_MS:
        return book.now + MOVED_POLL_MS
    if note.kind is RulesKind.UNAVAILABLE and note.fresh_until > book.now:
        return note.fresh_until
    return None


def origin_note(book: Book, origin: str) -> OriginNote | None:
    """What is known of an origin's robots.txt."""
    raw = book.txn.get(origin.encode(), db=book.db["origins"])
    return None if raw is None else read_origin(raw)


def put_robots(book: Book, key: bytes, entry: RobotsEntry) -> None:
    """Put a robots.txt first into a host's queue."""
    book.txn.put(robots_key(key, entry.origin), pack(entry), db=book.db["robots"])


def robots_key(key: bytes, origin: str) -> bytes:
    """The key of a robots.txt in a host's queue."""
    return key + xxh3_64_digest(origin.encode())


def _robots_lease(book: Book, key: bytes, host: HostState, entry: RobotsEntry, lease_ms: int) -> Lease:
    task = RobotsTask(entry.origin, entry.url, entry.hops)
    return _make(book, key, host, (task,), LeaseRecord(key, book.now + lease_ms, [], entry.origin), 0)


def _make(
    book: Book, key: bytes, host: HostState, tasks: tuple[Task, ...], record: LeaseRecord, rules_at: int
) -> Lease:
    token = book.totals.next_token
    book.totals.next_token += 1
    book.lease(key, host, token)
    book.txn.put(token.to_bytes(8, "big"), pack(record), db=book.db["leases"])
    delay = book.policy.base_delay_ms if host.delay_ms < 0 else host.delay_ms
    return Lease(
        token=Token(token),
        host=host.name,
        domain=host.domain,
        tasks=tasks,
        not_before=max(book.now, host.free_at),
        expires_at=record.expires_at,
        pace=Pace(delay, host.crawl_delay_ms),
        claimed_at=book.now,
        rules_at=rules_at,
    )


def _verifies(book: Book, host: HostState, record: UrlRecord) -> bool:
    """Whether a page is to be asked for in full although it has validators: see `order.is_sample`.

    A host that was caught is asked in full for the rest of that cycle and for the whole next one, which shows whether
    it still lies.
    """
    every, cycle = book.policy.verify_every, book.totals.cycle
    if not every:
        return False
    caught = bool(host.lied_in) and cycle <= host.lied_in + 1
    return caught or order.is_sample(f"{host.name} {record.tail}", cycle, every, book.policy.random_seed)


def page_task(url_key: bytes, record: UrlRecord, host: HostState, via: str, *, verify: bool = False) -> PageTask:
    """A URL's record as a task."""
    capture = record.capture
    return PageTask(
        fingerprint=Fingerprint(url_key[HOST_KEY_BYTES:]),
        url=lengthen(record.tail, host.name),
        depth=record.depth,
        level=record.level,
        hops=record.hops,
        retries=record.retries,
        cycle=record.cycle,
        validators=Validators(capture.etag, capture.last_modified) if capture else Validators(),
        digest=capture.digest if capture else b"",
        via=via,
        verify=verify,
        trail=record.trail,
    )
