"""settle: end tasks under their token, links included, in one act.

A settle with an old token changes nothing. A page that is done is pending on its archive segment until `confirm`. What
the answer shows is written down in the same act: of the domain's health (P4), of the worth of its host (F5) and of the
shape of its URL (T2), when to come back (R2), and what its links bring their targets (R1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from xxhash import xxh3_64_intdigest

from nephila.frontier import health
from nephila.frontier import rank as ranks
from nephila.frontier.lifecycle import after
from nephila.interfaces.frontier import Admission, Settled
from nephila.interfaces.recrawl import Visit
from nephila.model.errors import FrontierError
from nephila.model.exchange import FailureKind
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    Dropped,
    OriginRules,
    Outcome,
    Release,
    Respelled,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.task import Candidate, PageTask, RobotsTask, Token

from . import trapping
from .admission import SEEDS, Source, admit, note_refused, take_on
from .book import Book, pack, read_lease
from .claiming import origin_note, put_robots, remove_robots
from .endings import fate_of, take_out
from .records import CaptureNote, DomainState, HostState, LeaseRecord, OriginNote, Place, RobotsEntry, UrlRecord
from .returning import put_back
from .shelving import refill, take_on_hosts
from .tables import pending_key, shorten
from .waking import look_further, wake

MEAN_WEIGHT = 8
"""The host's mean answer time moves by an eighth of each new one, as TCP's round-trip estimate does (RFC 6298)."""

USEFUL_AFTER = 3
"""Pages with new content that make a host count for its domain's budget of hosts: one is easily minted."""

LONGEST_GAP_S = 30 * 86_400
"""The gap between two visits that makes the second a whole vote again (see `rank.weight_of`); R2's longest interval."""

GONE = "gone"
_STRAINED = frozenset({FailureKind.TIMEOUT, FailureKind.RESET, FailureKind.CONNECT, "http_429"})


def settle(book: Book, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
    """End tasks of a lease; with `release`, end the lease and let the host rest."""
    token_key = token.to_bytes(8, "big")
    raw = book.txn.get(token_key, db=book.db["leases"])
    if raw is None:
        return Settled(accepted=False)
    lease = read_lease(raw)
    key = lease.host_key
    host = book.known_host(key)
    entries = _entries(lease, settlements)
    if book.token_of(key) != token or entries is None:
        return Settled(accepted=False)
    added = known = cooling = 0
    for settlement, entry in zip(settlements, entries, strict=True):
        admission = _end(book, lease, host, settlement, entry)
        added, known, cooling = added + admission.added, known + admission.known, cooling + admission.cooling
    if release is None:
        book.txn.put(token_key, pack(lease), db=book.db["leases"])
    else:
        book.txn.delete(token_key, db=book.db["leases"])
        if any(isinstance(settlement.task, PageTask) for settlement in settlements):
            host.work_since = max(1, book.now)  # it was served; its robots.txt alone is no service
        _free(book, key, host, release)
    return Settled(True, Admission(added, known, cooling))


def _entries(lease: LeaseRecord, settlements: Sequence[Settlement]) -> list[bytes] | None:
    """How the lease names each task; None when one of them is not (any more) this lease's to settle."""
    entries: list[bytes] = []
    for settlement in settlements:
        match settlement.task:
            case PageTask() as task:
                entry = next((entry for entry in lease.entries if entry[-16:] == task.fingerprint), None)
                if entry is None or entry in entries:
                    return None
                entries.append(entry)
            case RobotsTask() as task:
                if lease.origin != task.origin:
                    return None
                entries.append(b"")
    return entries


def _end(book: Book, lease: LeaseRecord, host: HostState, settlement: Settlement, entry: bytes) -> Admission:
    """Apply one outcome and admit the links that it brought."""
    key = lease.host_key
    match settlement.task:
        case PageTask() as task:
            lease.entries.remove(entry)
            url_key, record = take_out(book, key, host, entry[:-16], task.fingerprint)
            domain = book.domain(key)
            source = _end_page(book, key, host, domain, url_key, record, settlement)
            new: list[Candidate] = []
            admission = admit(book, settlement.links, source, new)
            note_refused(book, settlement.refused, url_key)
            _check_health(book, domain, settlement.outcome)
            first = record.fate is not None and record.fate.fetched == 1
            if trapping.observe(book, key, host, settlement, new, first=first):
                _earn(book, key, host, domain)
            if not isinstance(settlement.outcome, Retry | Deferred | Respelled):
                look_further(book, key)
            if host.shelved:
                refill(book, key, host)
            return admission
        case RobotsTask() as task:
            lease.origin = ""
            _end_robots(book, key, host, task, settlement)
            return admit(book, settlement.links, SEEDS)


def _end_page(
    book: Book,
    key: bytes,
    host: HostState,
    domain: DomainState,
    url_key: bytes,
    record: UrlRecord,
    settlement: Settlement,
) -> Source:
    """Write what became of a page; returns it as the source of its links."""
    outcome, totals = settlement.outcome, book.totals
    source = Source(url_key)
    record.state = after(record.state, outcome)
    record.cycle = totals.cycle  # it may have been queued in an earlier one; this is the cycle that it was asked in
    fate = fate_of(record)
    fate.settled_s, fate.reason, fate.detail = book.wall_s, "", ""
    match outcome:
        case Done():
            source = _share_out(book, domain, url_key, record, settlement, outcome)
            _store(book, url_key, record, outcome)
            _count(book, host, domain, outcome)
            _plan(book, domain, url_key, record, outcome)
        case Retry():
            record.retries += 1
            fate.reason = DeferReason.RETRY
            fate.detail = f"{outcome.kind}: {outcome.detail}" if outcome.detail else outcome.kind
            book.delay(url_key, record, book.now + outcome.wait_ms, DeferReason.RETRY)
        case Deferred():
            fate.reason = outcome.reason
            book.delay(url_key, record, book.now + outcome.wait_ms, outcome.reason)
        case Dropped():
            fate.reason, fate.detail = outcome.reason, outcome.detail
            totals.dropped += 1
        case Dead():
            fate.reason, fate.detail = outcome.kind, outcome.detail
            book.txn.put(url_key, b"", db=book.db["dead"])
            totals.dead += 1
        case Respelled():
            fate.trail = (*fate.trail, settlement.task.url)
            record.hops += 1
            record.tail = shorten(outcome.address.url, host.name)
            put_back(book, key, host, url_key, record, record.level)
            return source
        case RulesLearned() | RulesMoved():
            raise FrontierError("a page cannot end with the rules of an origin")
        case _:
            assert_never(outcome)
    book.put_url(url_key, record)
    return source


def _share_out(
    book: Book, domain: DomainState, url_key: bytes, record: UrlRecord, settlement: Settlement, done: Done
) -> Source:
    """What the links of a page bring their targets, and what is left to the page (R1)."""
    fate = fate_of(record)
    visits, weight = fate.fetched, 1.0
    salt = ranks.salt_of(settlement.task.url.encode(), visits)
    outlinks = max(done.outlinks, len(settlement.links))
    name = xxh3_64_intdigest(domain.name.encode())
    if not outlinks:  # a 304, or a page that was not read: nothing is handed on
        return Source(url_key, None, salt, name)
    if visits:
        weight = ranks.weight_of(book.wall_s - fate.history.last_s, LONGEST_GAP_S)
    share = ranks.share(record.rank, outlinks, domain.pages + 1, weight)
    if visits:
        record.rank = ranks.kept(record.rank, weight, salt)
    return Source(url_key, share, salt, name)


def _count(book: Book, host: HostState, domain: DomainState, done: Done) -> None:
    totals = book.totals
    host.fetched += 1
    if done.lied:
        host.lied_in = totals.cycle
    if not done.page:
        return
    if host.cycle != totals.cycle:
        host.cycle, host.fetched_in_cycle = totals.cycle, 0
    host.fetched_in_cycle += 1
    domain.pages += 1
    totals.domains += domain.pages == 1
    totals.pages += 1
    totals.pages_in_cycle += 1
    if book.policy.target_domains and totals.domains >= book.policy.target_domains:
        totals.covered = True


def _plan(book: Book, domain: DomainState, url_key: bytes, record: UrlRecord, done: Done) -> None:
    """Plan the next visit (R2), and tell what is gone (R5)."""
    if book.policy.recrawl is None:
        return
    policy, fate = book.policy_of(domain), fate_of(record)
    home = record.tail in {"s/", "h/"}
    visit = Visit(
        book.wall_s, done.status, done.changed, home, policy.tier, policy.recrawl_s, done.listing, done.expected_s
    )
    planned = book.policy.recrawl.plan(fate.history, visit)
    fate.history = planned.history
    book.totals.gone += planned.gone - fate.gone
    fate.gone = planned.gone
    if fate.gone:
        fate.reason = GONE
    book.delay(url_key, record, book.now + planned.wait_s * 1000, DeferReason.DUE)


def _check_health(book: Book, domain: DomainState, outcome: Outcome) -> None:
    """What an answer shows of its domain: too many errors pause it (P4)."""
    seen = _seen(outcome)
    if seen is not None:
        before = domain.health
        domain.health, pause = health.after(before, seen, book.policy.politeness)
        book.totals.lowered += (domain.health.lowered > 0) - (before.lowered > 0)
        if pause:
            domain.paused_until = book.now + int(book.policy.politeness.pause_s * 1000)


def _earn(book: Book, key: bytes, host: HostState, domain: DomainState) -> None:
    """A page with new content earns its host a larger budget, and its domain further hosts (F5)."""
    host.fresh += 1
    if host.fresh == USEFUL_AFTER:
        domain.useful += 1
        if domain.hosts_over:
            take_on_hosts(book, key, lambda other_key, other: wake(book, other_key, other))


def _seen(outcome: Outcome) -> health.Seen | None:
    """What an outcome says of a server's health; None when the server was not asked."""
    match outcome:
        case Done() | Respelled():
            return health.Seen.OK
        case Retry(kind=kind) | Dead(kind=kind):
            if kind == "http_5xx":
                return health.Seen.SERVER_ERROR
            return health.Seen.ERROR if kind in _STRAINED else None
        case RulesLearned(rules=rules):
            return health.Seen.ERROR if rules.kind is RulesKind.UNAVAILABLE else health.Seen.OK
        case _:
            return None


def _store(book: Book, url_key: bytes, record: UrlRecord, done: Done) -> None:
    fate = fate_of(record)
    old = fate.capture
    kept = done.digest or (old.digest if old and not done.changed else b"")
    fate.fetched += 1
    fate.capture = CaptureNote(
        status=done.status,
        segment=done.ref.segment,
        offset=done.ref.offset,
        end=done.ref.end,
        digest=kept,
        etag=done.validators.etag,
        last_modified=done.validators.last_modified,
        changed_at=book.wall_s if done.changed or old is None else old.changed_at,
        count=old.count + 1 if old else 1,
        page=done.page,
    )
    book.txn.put(pending_key(done.ref.segment, done.ref.end), url_key, db=book.db["pending"])
    book.totals.pending += 1


def _end_robots(book: Book, key: bytes, host: HostState, task: RobotsTask, settlement: Settlement) -> None:
    match settlement.outcome:
        case RulesLearned(rules, crawl_delay_ms):
            remove_robots(book, key, host, task.origin)
            _put_rules(book, rules)
            _wake_origin(book, task.origin, crawl_delay_ms)
            _check_health(book, book.domain(key), settlement.outcome)
        case RulesMoved(origin, address, hops):
            remove_robots(book, key, host, origin)
            note = origin_note(book, origin) or OriginNote(RulesKind.UNAVAILABLE, 0, 0)
            moved = OriginNote(
                note.kind, note.stored_at, 0, note.status, note.failing_since, note.detail, max(1, book.now)
            )
            book.txn.put(origin.encode(), pack(moved), db=book.db["origins"])
            target_key = book.tables.host_key(address.host)
            target = book.host(target_key) or take_on(book, target_key, address.host)
            put_robots(book, target_key, target, RobotsEntry(origin, address.url, hops))
            at_limit = target.reason == DeferReason.HOST_LIMIT  # of pages: a robots.txt may still be asked for
            if not book.token_of(target_key) and (target.place is not Place.PARKED or at_limit):
                book.rest(target_key, target)
        case Deferred():
            pass  # stays first in its host's queue
        case other:
            raise FrontierError(f"a robots.txt cannot end as {type(other).__name__}")


def _put_rules(book: Book, rules: OriginRules) -> None:
    note = OriginNote(rules.kind, rules.stored_at, rules.fresh_until, rules.status, rules.failing_since, rules.detail)
    book.txn.put(rules.origin.encode(), pack(note), db=book.db["origins"])
    book.txn.put(rules.origin.encode(), rules.body, db=book.db["rules"])


def _wake_origin(book: Book, origin: str, crawl_delay_ms: int) -> None:
    """Let a host go on that waited for rules which were found on another host."""
    name = origin.split("://", 1)[1].rstrip(".")
    name = name if name.endswith("]") else name.rsplit(":", 1)[0]
    key = book.tables.host_key(name)
    host = book.host(key)
    if host is None or book.token_of(key):
        return
    if crawl_delay_ms:
        host.crawl_delay_ms = crawl_delay_ms
        host.free_at = max(host.free_at, host.released_at + crawl_delay_ms + 1)
    if host.place is Place.WAITING and host.reason == DeferReason.ROBOTS:
        book.wait(key, host, host.free_at)


def _free(book: Book, key: bytes, host: HostState, release: Release) -> None:
    """Let the host rest."""
    book.free(key, host)
    host.delay_ms = release.pace.delay_ms
    host.crawl_delay_ms = release.pace.crawl_delay_ms
    # The answer ended within this millisecond, not at its beginning: round up.
    host.free_at = book.now + release.wait_ms + (release.wait_ms > 0)
    host.released_at, host.slept_ms = book.now, book.timeline.slept_ms
    if release.elapsed_ms:
        host.mean_ms += (release.elapsed_ms - host.mean_ms) // MEAN_WEIGHT if host.mean_ms else release.elapsed_ms
    book.rest(key, host)
    if release.reason is not None and host.place is Place.WAITING:
        book.wait(key, host, host.free_at, release.reason)
