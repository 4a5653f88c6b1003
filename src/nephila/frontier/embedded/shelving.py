"""Shelves: URLs that are known and wanted, but not now. Parked on disk, never dropped.

| reason | who is parked | when it comes back |
|---|---|---|
| over_budget | what a host has not earned (F5), or all of a host that its domain has not earned | when it is earned |
| trap | URLs of a pattern that stopped bringing anything new (T2) | one at a time; all when nothing holds them |
| coverage | URLs of domains that are known, in coverage mode (S4) | when enough domains were fetched |

A shelf is bundles like the queue's, under the host and the reason; those of a trap also under the skeleton, so that one
skeleton can be let go without the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nephila.frontier import budget, order
from nephila.model.outcome import DeferReason
from nephila.model.task import Candidate, Level

from .book import Book
from .bundle import Entry, Head, entries_of, find, fingerprint_of, pack_head, read_head, split, tail_of, without
from .marks import PARKED, RANK_BYTES, queued_mark, rank_in
from .queueing import Standing, enqueue, put_bundle, put_or_delete
from .records import DomainState, HostState
from .sections import in_section, section_of
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, PREFIX_BYTES, SHELF, URL, lengthen
from .tallies import GROUP_BYTES, hold_on

NO_GROUP = bytes(GROUP_BYTES)
REASONS = (DeferReason.BUDGET, DeferReason.TRAP, DeferReason.COVERAGE)
_CODES = {reason: bytes((code,)) for code, reason in enumerate(REASONS)}
_MARK = bytes((PARKED,))

OUTGROWN_EARNS = 5
"""A host that has outgrown its like earns a fifth."""

HOSTS_COMPARED = 64
"""Hosts of one domain that are looked at for the next one: a domain may have hundreds of thousands."""

RELEASED_AT_ONCE = 500
"""URLs that one call takes off a shelf: no verb is O(shelf)."""


def sort_out(
    book: Book, key: bytes, host: HostState, standing: Standing, head: Head, entries: list[Entry]
) -> list[Entry]:
    """Park what may not be queued now; returns what may."""
    if lets_in(book, host, len(entries)):
        return entries
    totals, policy = book.totals, book.policy
    covering = policy.target_domains and not totals.covered
    place = order.pack_place(*standing, bytes(4))
    domain = book.domain(key)
    if host.flagged:
        entries = _park_trapped(book, key, host, place, head, entries)
    if covering:
        kept = 0 if domain.pages > 0 or domain.queued > 0 else 1
        shelve(book, key, host, DeferReason.COVERAGE, NO_GROUP, place, head, entries[kept:])
        entries = entries[:kept]
    if host.sections:
        entries = _park_crowded(book, key, host, place, head, entries)
    room = 0 if host.over else room_of(book, host, domain)
    if room < len(entries):
        shelve(book, key, host, DeferReason.BUDGET, NO_GROUP, place, head, entries[room:])
        entries = entries[:room]
    if covering:
        domain.queued += len(entries)
    return entries


def lets_in(book: Book, host: HostState, count: int) -> bool:
    """Whether so many URLs may all be queued: the common case, decided without looking anything up."""
    if host.flagged or host.over or host.sections:
        return False
    totals, policy = book.totals, book.policy
    if totals.policies or (policy.target_domains and not totals.covered):
        return False
    most = host.admitted + count
    return most <= policy.budget.first_urls and most <= policy.budget.queued_per_host


def covers_no_more(book: Book) -> bool:
    """Whether URLs that were put off for coverage are to come back (S4): enough domains, or nobody asks for it now."""
    covered = book.totals.covered or not book.policy.target_domains
    return covered and bool(book.totals.shelved.get(DeferReason.COVERAGE))


def end_coverage(book: Book, key: bytes, host: HostState) -> None:
    """Take URLs that were put off for coverage off their shelf: into the queue, as far as the budget goes."""
    room = 0 if host.over else min(room_of(book, host, book.domain(key)), RELEASED_AT_ONCE)
    host.admitted += unshelve(book, key, host, DeferReason.COVERAGE, room)
    for _ in range(RELEASED_AT_ONCE // 10):
        if not _to_budget(book, key, host):
            return


def _to_budget(book: Book, key: bytes, host: HostState) -> bool:
    """Move a bundle from the shelf of coverage to that of the budget; False when there is none."""
    found = first_bundle(book, key, DeferReason.COVERAGE, NO_GROUP)
    if found is None:
        return False
    place, head, entries = found
    take_bundle(book, key, host, DeferReason.COVERAGE, NO_GROUP, place, len(entries))
    shelve(book, key, host, DeferReason.BUDGET, NO_GROUP, place, head, entries)
    return True


def _unlist(book: Book, key: bytes, host: HostState, reason: DeferReason, count: int) -> None:
    """URLs have left a shelf."""
    host.shelved -= count
    book.totals.shelved[reason] = book.totals.shelved.get(reason, 0) - count
    prefix = key + SHELF + _CODES[reason]
    if not (book.cursor.set_range(prefix) and book.cursor.key().startswith(prefix)):
        book.txn.delete(_CODES[reason] + key, db=book.db["shelves"])


def room_of(book: Book, host: HostState, domain: DomainState) -> int:
    """How many more URLs a host may have queued now (F5)."""
    settings = book.policy.budget
    _compare_with_its_like(book, host)
    fresh = host.fresh // OUTGROWN_EARNS if host.outgrown else host.fresh
    earned = budget.url_allowance(settings, fresh, host.referrers, book.policy_of(domain).quality)
    return max(0, min(earned - host.admitted, settings.queued_per_host - sum(host.queued)))


def _compare_with_its_like(book: Book, host: HostState) -> None:
    """Flag a host that has many times the URLs of an ordinary one (T5): it earns a fraction from then on."""
    ordinary = max(book.totals.urls / max(1, book.totals.hosts), book.policy.budget.first_urls)
    outgrown = host.admitted + host.shelved > book.policy.traps.times_its_like * ordinary
    book.totals.outgrown += outgrown - host.outgrown
    host.outgrown = outgrown


def _park_crowded(
    book: Book, key: bytes, host: HostState, place: bytes, head: Head, entries: list[Entry]
) -> list[Entry]:
    """Park the URLs of sections that have as many in the queue as they may (T1)."""
    limit = book.policy.budget.queued_per_prefix
    room: dict[bytes, int] = {}
    free: list[Entry] = []
    crowded: dict[bytes, list[Entry]] = {}
    for entry in entries:
        section = section_of(tail_of(entry))
        if section not in room:
            room[section] = limit - in_section(book, key, section)
        room[section] -= 1
        (free if room[section] >= 0 else crowded.setdefault(section, [])).append(entry)
    for section, parked in crowded.items():
        shelve(book, key, host, DeferReason.BUDGET, section, place, head, parked)
    return free


def _park_trapped(
    book: Book, key: bytes, host: HostState, place: bytes, head: Head, entries: list[Entry]
) -> list[Entry]:
    """Park the URLs that a trap's pattern holds back (T2)."""
    free: list[Entry] = []
    held: dict[bytes, list[Entry]] = {}
    for entry in entries:
        hold = hold_on(book, key, lengthen(tail_of(entry).decode(), host.name))
        if hold is None:
            free.append(entry)
        else:
            held.setdefault(hold.group, []).append(entry)
            _wake_at(book, host, hold.until_s)
    for group, caught in held.items():
        shelve(book, key, host, DeferReason.TRAP, group, place, head, caught)
    return free


def _wake_at(book: Book, host: HostState, until_s: int) -> None:
    """A URL on a trap's shelf may be tried at that time."""
    moment = book.now + max(1, until_s - book.wall_s) * 1000
    host.trap_at = min(host.trap_at, moment) if host.trap_at else moment


def groups_on_shelf(book: Book, key: bytes, reason: DeferReason, group: bytes = b"") -> list[bytes]:
    """The groups that lie on a shelf of a host, or that one if it does."""
    prefix = key + SHELF + _CODES[reason] + group
    found: list[bytes] = []
    start = len(key) + 2
    going = book.cursor.set_range(prefix)
    while going and book.cursor.key().startswith(prefix):
        found.append(book.cursor.key()[start : start + GROUP_BYTES])
        going = book.cursor.set_range(key + SHELF + _CODES[reason] + found[-1] + b"\xff" * order.PLACE_BYTES)
    return found


def shelve(
    book: Book,
    key: bytes,
    host: HostState,
    reason: DeferReason,
    group: bytes,
    place: bytes,
    head: Head,
    entries: Sequence[Entry],
) -> None:
    """Put URLs on a shelf of their host, to come back to the place that they would have had."""
    if not entries:
        return
    packed = pack_head(head, key)
    code = _CODES[reason]
    lane, step, depth, _ = order.read_place(place)
    writes: list[tuple[bytes, bytes]] = []
    for chunk in split(entries, len(packed)):
        exact = put_bundle(book, key + SHELF + code + group, host, Standing(lane, step, depth), packed, chunk)
        mark = _MARK + exact + RANK_BYTES[head.rank] + code + group
        writes += [(key + URL + fingerprint_of(entry)[:PREFIX_BYTES], mark) for entry in chunk]
    book.cursor.putmulti(writes)
    if reason is DeferReason.TRAP and not host.trap_at:
        host.trap_at = max(1, book.now)
    host.shelved += len(entries)
    book.totals.shelved[reason] = book.totals.shelved.get(reason, 0) + len(entries)
    book.txn.put(code + key, b"", db=book.db["shelves"])


def shelf_code(reason: DeferReason) -> bytes:
    """The byte that stands for a reason in keys."""
    return _CODES[reason]


def reason_in(raw: bytes) -> DeferReason:
    """Why a URL is parked, from what lies under its key."""
    return REASONS[raw[11]]


def first_bundle(book: Book, key: bytes, reason: DeferReason, group: bytes) -> tuple[bytes, Head, list[Entry]] | None:
    """What lies first on a shelf: its place, its head and its URLs."""
    prefix = key + SHELF + _CODES[reason] + group
    if not (book.cursor.set_range(prefix) and book.cursor.key().startswith(prefix)):
        return None
    value = book.cursor.value()
    return book.cursor.key()[-order.PLACE_BYTES :], read_head(value, key, URL), list(entries_of(value))


def take_bundle(
    book: Book, key: bytes, host: HostState, reason: DeferReason, group: bytes, place: bytes, count: int
) -> None:
    """Take a whole bundle off a shelf."""
    book.txn.delete(key + SHELF + _CODES[reason] + group + place)
    _unlist(book, key, host, reason, count)


def unshelve(
    book: Book,
    key: bytes,
    host: HostState,
    reason: DeferReason,
    room: int,
    group: bytes = b"",
    tie: bytes | None = None,
) -> int:
    """Take up to `room` URLs (of one group) off a shelf and queue them, best first; how many."""
    code = _CODES[reason]
    prefix = key + SHELF + code + group
    moved = 0
    cursor = book.cursor
    while moved < room and cursor.set_range(prefix) and cursor.key().startswith(prefix):
        bundle_key, value = cursor.key(), cursor.value()
        place = bundle_key[-order.PLACE_BYTES :]
        chosen = list(entries_of(value))[: room - moved]
        left: bytes | None = value
        for entry in chosen:
            left = None if left is None else without(left, entry)
        put_or_delete(book, bundle_key, left)
        _queue_again(book, key, host, place, read_head(value, key, URL), chosen, tie)
        moved += len(chosen)
    _unlist(book, key, host, reason, moved)
    return moved


def _queue_again(
    book: Book, key: bytes, host: HostState, place: bytes, head: Head, entries: Sequence[Entry], tie: bytes | None
) -> None:
    lane, step, depth, _ = order.read_place(place)
    writes: list[tuple[bytes, bytes]] = []
    for exact, chunk in enqueue(book, key, host, Standing(lane, step, depth), head, entries, tie):
        mark = queued_mark(exact, head.rank)
        writes += [(key + URL + fingerprint_of(entry)[:PREFIX_BYTES], mark) for entry in chunk]
    book.cursor.putmulti(writes)


def refill(book: Book, key: bytes, host: HostState) -> int:
    """Let parked URLs of a host into its queue, as far as it has earned by now; how many."""
    domain = book.domain(key)
    if host.over or not host.shelved:
        return 0
    room = min(room_of(book, host, domain), RELEASED_AT_ONCE)
    moved = 0
    for group in groups_on_shelf(book, key, DeferReason.BUDGET) if room > 0 else ():
        left = room - moved
        if group != NO_GROUP:
            left = min(left, book.policy.budget.queued_per_prefix - in_section(book, key, group))
        if left > 0:
            moved += unshelve(book, key, host, DeferReason.BUDGET, left, group)
    host.admitted += moved
    return moved


def take_on_hosts(book: Book, key: bytes, wake: Callable[[bytes, HostState], None]) -> None:
    """Take on hosts of a domain that it has earned by now (F5)."""
    domain = book.domain(key)
    quality = book.policy_of(domain).quality
    if domain.hosts_over:
        add_up_referrers(book, key)
    while domain.hosts_over and domain.hosts < budget.host_allowance(
        book.policy.budget, domain.useful, domain.referrers, quality
    ):
        found = _next_over(book, key[:DOMAIN_KEY_BYTES])
        if found is None:
            return
        other_key, other = found
        domain.hosts += 1
        domain.hosts_over -= 1
        other.over = False
        if not book.token_of(other_key):
            book.leave(other_key, other)
        refill(book, other_key, other)
        wake(other_key, other)


def _next_over(book: Book, domain_key: bytes) -> tuple[bytes, HostState] | None:
    """Of the hosts of a domain that wait until they are earned, the first by a plain hash; a few are compared."""
    found: list[tuple[bytes, HostState]] = []
    with book.txn.cursor(db=book.web) as cursor:
        going = cursor.set_range(domain_key + bytes(6) + b"\xff")
        while going and cursor.key().startswith(domain_key) and len(found) < HOSTS_COMPARED:
            key = cursor.key()[:HOST_KEY_BYTES]
            host = book.known_host(key)
            if host.over:
                found.append((key, host))
            going = cursor.set_range(key + b"\xff")
    # A host that was met in this book is not in the store yet.
    found += [(key, host) for key, host in book.hosts.items() if host.over and key.startswith(domain_key)]
    return min(found, key=lambda one: tie_of_host(book, one[1]), default=None)


def add_up_referrers(book: Book, key: bytes) -> None:
    """Bring up to date which domains link to any host of a domain; it is asked for only where hosts are many."""
    domain_key = key[:DOMAIN_KEY_BYTES]
    domain, looked_at = book.domain(key), 0
    for other, host in book.hosts.items():
        if other.startswith(domain_key):
            domain.referrers |= host.referrers
    with book.txn.cursor(db=book.web) as cursor:
        going = cursor.set_range(domain_key + bytes(6) + b"\xff")
        while going and cursor.key().startswith(domain_key) and looked_at < HOSTS_COMPARED:
            looked_at += 1
            other = cursor.key()[:HOST_KEY_BYTES]
            domain.referrers |= book.known_host(other).referrers
            going = cursor.set_range(other + b"\xff")


def has_shelf(book: Book, key: bytes, reason: DeferReason) -> bool:
    """Whether a host has URLs parked for a reason."""
    return book.txn.get(_CODES[reason] + key, db=book.db["shelves"]) is not None


def tie_of_host(book: Book, host: HostState) -> bytes:
    """What decides between two hosts that are alike."""
    return order.tie_of(host.name.encode(), book.policy.random_seed)


def fetch_from_shelf(book: Book, key: bytes, url_key: bytes, raw: bytes, candidate: Candidate) -> bytes | None:
    """Take one URL off its shelf because somebody wants it now; returns its place."""
    reason, host = reason_in(raw), book.known_host(key)
    bundle_key = key + SHELF + raw[11:12] + raw[12:20] + raw[1:10]
    value = book.txn.get(bundle_key)
    if value is None:
        return None
    entry = find(value, candidate.address.fingerprint)
    if entry is None:
        return None
    put_or_delete(book, bundle_key, without(value, entry))
    _unlist(book, key, host, reason, 1)
    head = read_head(value, key, URL)
    lane = order.lane_of(order.Supply.NEW, candidate.level or Level.IMMEDIATE)
    standing = Standing(lane, order.step_for(book.step, order.TOP_SCORE), candidate.depth)
    ((place, _),) = enqueue(book, key, host, standing, head, [entry])
    book.txn.put(url_key, queued_mark(place, rank_in(raw)))
    return place
