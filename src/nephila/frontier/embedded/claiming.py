"""claim: lease the hosts that may be asked now, best first.

Nothing leaves its queue here: a lease names the places it covers, and only a settle under its token takes them out. So
a crashed worker costs its hosts one delay and nothing else.

Before a host is leased, what holds for its domain is asked anew: a policy, a block or a pause takes effect with the
next claim. robots.txt is work like any other: a page is leased only while rules for its origin are in force; where
there are none, the lease is on the robots.txt instead, and the pages come later.
"""

from __future__ import annotations

from itertools import compress

from nephila.frontier import order
from nephila.frontier.span import urls_in_lease
from nephila.model.outcome import DeferReason
from nephila.model.task import Lease, Pace, PageTask, RobotsTask, Task, Token, Validators
from nephila.urls import Fingerprint, origin_of

from . import trapping
from .book import ORDINARY, Book
from .coding import pack, read_spelling
from .endings import drop
from .holding_off import pages_left, reason_to_wait
from .marks import DEPTH_IN_PLACE, PARKED
from .origins import put_robots, rules_of
from .passing import Looking
from .promoting import ahead_of, empty_coverage_shelves, promote, refresh_classes, rest_after_reboot
from .queueing import Work
from .records import DomainState, HostState, LeaseRecord, OriginNote, RobotsEntry
from .replanning import replan
from .sharing import entitled, familiar
from .tables import HOST_KEY_BYTES, lengthen
from .upkeep import sweep

_LANES = tuple(range(order.LANES))

PROMOTIONS_PER_CLAIM = 2_000
"""Bound on the work of one claim: what is left over is promoted by the next."""

RECOUNTS_PER_PICK = 16
"""Hosts whose place is corrected before one is taken: a domain of ten thousand hosts must not stop the claim."""


def claim(book: Book, hosts: int, lease_ms: int, promotions: int = PROMOTIONS_PER_CLAIM) -> list[Lease]:
    """Lease up to `hosts` hosts, best first by the comparator of `order`."""
    replan(book)
    sweep(book)
    empty_coverage_shelves(book)
    promote(book, promotions)
    refresh_classes(book)
    if book.policy.sharing is not None:
        hosts = entitled(book, book.policy.sharing, hosts)
    leases, ahead_ms = list[Lease](), ahead_of(book)
    while len(leases) < hosts and book.page_quota > 0:
        picked = _pick(book)
        if picked is None:
            break
        lease = _lease(book, *picked, lease_ms, ahead_ms)
        if lease is not None:
            leases.append(lease)
    return leases


def _pick(book: Book) -> tuple[bytes, HostState, int] | None:
    """The next host by the comparator of `order`, with the lane it was picked for."""
    policy, totals, ready = book.policy, book.totals, book.ready
    present = list(compress(_LANES, totals.ready))
    if not present:
        return None
    totals.draws += 1
    if present[0] != 0 and not policy.ordered and order.reserved(totals.draws, policy.random_seed, policy.priority):
        starving = _starving(book)
        if starving is not None:
            return starving
    lane = order.draw_lane(present, totals.draws, policy.random_seed, policy.priority)
    for recounts in range(RECOUNTS_PER_PICK + 1):
        if not totals.ready[lane]:  # a host that was put back has left the lane empty: the others are drawn from
            present = list(compress(_LANES, totals.ready))
            lane = order.draw_lane(present, totals.draws, policy.random_seed, policy.priority)
        ready.set_range(bytes((lane,)))
        entry = ready.key() if policy.sharing is None else familiar(ready, policy.sharing)
        key = entry[order.READY_KEY_BYTES :]
        host = book.known_host(key)
        if recounts == RECOUNTS_PER_PICK or order.count_in_ready_key(entry) >= book.domain_seen(key).pages:
            return key, host, lane
        # Its domain was asked since. Counts only grow, so putting it back with the true count is exact; only where one
        # domain has very many ready hosts is the order a little behind the counts for a while.
        book.make_ready(key, host)
    return None


def _starving(book: Book) -> tuple[bytes, HostState, int] | None:
    """The ready host that has had work for longest, if that is too long (F7)."""
    if not book.ready.set_range(bytes((order.STARVING_LANE,))):
        return None
    entry = book.ready.key()
    if int.from_bytes(entry[1:9], "big") > book.now - book.policy.priority.starving_s * 1000:
        return None
    key = entry[order.SINCE_KEY_BYTES :]
    host = book.known_host(key)
    book.totals.reserved += 1
    return key, host, min(ready[0] for ready in host.ready)


def _lease(book: Book, key: bytes, host: HostState, lane: int, lease_ms: int, ahead_ms: int) -> Lease | None:
    """Lease a ready host, or put it off and return None."""
    if book.timeline.rebooted_at:
        rest_after_reboot(book, key, host)
    domain, left = book.domain_seen(key), pages_left(book, host) if book.policy.max_pages_per_host else None
    held = reason_to_wait(book, key, host, domain, left, ahead_ms)
    if held is not None:
        if held.until is None:
            book.park(key, host, held.reason)
        else:
            book.wait(key, host, held.until, held.reason)
        return None
    robots = book.first_robots(key) if host.robots else None
    if robots is not None:
        return _robots_lease(book, key, host, domain, robots[1], lease_ms)
    if host.trap_at:
        trapping.take_probe(book, key, host)
    found = _first_unblocked(book, key, host, domain, lane, left)
    if found is None:
        book.rest(key, host)
        return None
    if isinstance(found, int):
        book.wait(key, host, max(found, host.free_at), DeferReason.ROBOTS if found > book.now else "")
        return None
    origin, note, work = found
    if note is None:
        entry = RobotsEntry(origin, f"{origin}/robots.txt", 0)
        put_robots(book, key, host, entry)
        return _robots_lease(book, key, host, domain, entry, lease_ms)
    tasks, places = list[PageTask](), list[bytes]()
    for one, url in work:
        tasks.append(page_task(book, host, one, url))
        places.append(one.place + one.fingerprint)
    record = LeaseRecord(key, book.now + lease_ms, places)
    return _make(book, key, host, domain, tuple(tasks), record, note.stored_at)


def _first_unblocked(
    book: Book, key: bytes, host: HostState, domain: DomainState, lane: int, left: int | None
) -> int | tuple[str, OriginNote | None, list[tuple[Work, str]]] | None:
    """The next pages of one origin whose rules are known or may be fetched, `left` at most; each with its URL.

    Else the time when that may change; None when the host has no work left: all of it was put on shelves or ended on
    the way.
    """
    wanted = _urls_wanted(book, host, domain, left)
    watched = host.flagged or book.blocks is not None or book.totals.policies
    blocked: dict[str, int] = {}
    origin, note, work = "", None, list[tuple[Work, str]]()
    looking = Looking(book, key, host, lane)
    for one in looking:
        url = lengthen(one.tail, host.name)
        its_origin = origin_of(url)
        if its_origin in blocked or (watched and _ends_here(book, key, host, one, url)):
            continue
        if work and its_origin != origin:
            break
        if not work:
            note, until = rules_of(book, its_origin)
            if until is not None:
                blocked[its_origin] = until
                continue
            if note is None:
                return its_origin, None, []
            origin = its_origin
            looking.found(blocked)
        work.append((one, url))
        if len(work) >= wanted:
            break
    if work:
        return origin, note, work
    return looking.found_nothing(blocked) if any(host.queued) else None


def _urls_wanted(book: Book, host: HostState, domain: DomainState, left: int | None) -> int:
    """How many URLs a lease on a host is for."""
    policy = book.policy
    if policy.ordered:
        return 1
    delay_ms = max(book.base_delay_ms(domain) if host.delay_ms < 0 else host.delay_ms, host.crawl_delay_ms)
    wanted = urls_in_lease(delay_ms, policy.settings.urls_per_lease, policy.lease_span_ms)
    return min(wanted, left or wanted, book.page_quota)


def _ends_here(book: Book, key: bytes, host: HostState, one: Work, url: str) -> bool:
    """Whether a queued URL is not fetched after all: blocked or too deep by a person's word, or in a trap by now."""
    if book.blocks is not None and (block := book.blocks.of_url(url, one.fingerprint)) is not None:
        drop(book, key, host, one, "blocked", f"{block.pattern}: {block.reason}")
        return True
    if not book.totals.policies:
        return bool(host.flagged) and trapping.catch(book, key, host, one, url)
    domain = book.domain(key)
    deepest = book.policy_of(domain).max_depth
    if deepest is not None and one.place[4] > deepest:
        detail = f"depth {one.place[4]}, the policy of {domain.name} allows {deepest}"
        drop(book, key, host, one, "policy_depth", detail)
        return True
    return bool(host.flagged) and trapping.catch(book, key, host, one, url)


def _robots_lease(
    book: Book, key: bytes, host: HostState, domain: DomainState, entry: RobotsEntry, lease_ms: int
) -> Lease:
    task = RobotsTask(entry.origin, entry.url, entry.hops)
    return _make(book, key, host, domain, (task,), LeaseRecord(key, book.now + lease_ms, [], entry.origin), 0)


def _make(
    book: Book,
    key: bytes,
    host: HostState,
    domain: DomainState,
    tasks: tuple[Task, ...],
    record: LeaseRecord,
    rules_at: int,
) -> Lease:
    token, now = book.totals.next_token, book.now
    book.totals.next_token += 1
    if book.policy.sharing is not None:
        record.holder = book.policy.sharing.number
        book.page_quota -= len(record.entries)
    book.lease(key, host, token)
    book.txn.put(token.to_bytes(8, "big"), pack(record), db=book.db["leases"])
    policy = book.policy_of(domain) if domain.policed else ORDINARY
    base = -1 if policy.delay_s is None else int(policy.delay_s * 1000)
    delay = book.base_delay_ms(domain) if host.delay_ms < 0 else host.delay_ms
    return Lease(
        Token(token),
        host.name,
        domain.name,
        tasks,
        max(host.free_at, now),
        record.expires_at,
        Pace(delay, host.crawl_delay_ms, base),
        now,
        rules_at,
        policy.user_agent,
        policy.render,
    )


def _verifies(book: Book, host: HostState, tail: str) -> bool:
    """Whether a page is to be asked for in full although it has validators: see `order.is_sample`.

    A host that was caught is asked in full for the rest of that cycle and for the whole next one, which shows whether
    it still lies.
    """
    every, cycle = book.policy.verify_every, book.totals.cycle
    if not every:
        return False
    caught = bool(host.lied_in) and cycle <= host.lied_in + 1
    return caught or order.is_sample(f"{host.name} {tail}", cycle, every, book.policy.random_seed)


def page_task(book: Book, host: HostState, one: Work, url: str) -> PageTask:
    """A queued URL as a task."""
    record, fingerprint, depth = one.record, Fingerprint(one.fingerprint), one.place[DEPTH_IN_PLACE]
    if record is None:
        level, via = order.LEVELS[one.place[0]], url_at(book, one.via)
        return PageTask(fingerprint, url, depth, level, one.hops, 0, one.cycle, via=via)
    fate = record.fate
    capture = fate.capture if fate else None
    return PageTask(
        fingerprint,
        url,
        depth,
        record.level,
        record.hops,
        record.retries,
        record.cycle,
        Validators(capture.etag, capture.last_modified) if capture else Validators(),
        digest=capture.digest if capture else b"",
        via=url_at(book, record.via),
        verify=capture is not None and _verifies(book, host, one.tail),
        trail=fate.trail if fate else (),
    )


def url_at(book: Book, url_key: bytes) -> str:
    """The URL with that key; empty when there is none, or when nothing but its key is known."""
    raw = book.txn.get(url_key) if url_key else None
    if raw is None or raw[0] <= PARKED:
        return ""
    return lengthen(read_spelling(raw).tail, book.known_host(url_key[:HOST_KEY_BYTES]).name)
