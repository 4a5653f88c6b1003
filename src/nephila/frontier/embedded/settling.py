"""settle: end tasks under their token, links included, in one act.

A settle with an old token changes nothing. A page that is done is pending on its archive segment until `confirm`. What
the answer shows is written down in the same act: of the domain's health (P4), of the worth of its host (F5) and of the
shape of its URL (T2), when to come back (R2), and what its links bring their targets (R1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from xxhash import xxh3_64_intdigest

from nephila.frontier import budget
from nephila.frontier import rank as ranks
from nephila.frontier.change import as_seen, outlook_of, said_mark
from nephila.frontier.lifecycle import after
from nephila.interfaces.frontier import Admission, Settled
from nephila.interfaces.recrawl import Outlook, RecrawlPolicy, Visit
from nephila.model.errors import FrontierError
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    Dropped,
    Release,
    Respelled,
    Retry,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.task import Candidate, RobotsTask, Token

from . import trapping
from .admission import SEEDS, Source, admit, note_refused
from .book import ORDINARY, Book
from .coding import pack, read_lease
from .endings import take_out
from .learning import check_health, end_robots
from .records import CaptureNote, DomainState, Fate, HostState, LeaseRecord, Place, UrlRecord
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
FINGERPRINT_BYTES = 16
_DUE = DeferReason.DUE


def settle(
    book: Book,
    token: Token,
    settlements: Sequence[Settlement],
    release: Release | None,
    called_at: int | None = None,
) -> Settled:
    """End tasks of a lease; with `release`, end the lease and let the host rest, from `called_at` on or from now."""
    txn, leases = book.txn, book.db["leases"]
    token_key = token.to_bytes(8, "big")
    raw = txn.get(token_key, db=leases)
    if raw is None:
        return Settled(accepted=False)
    lease = read_lease(raw)
    key = lease.host_key
    host = book.known_host(key)
    entries = _entries(lease, settlements)
    if entries is None or book.token_of(key) != token:
        return Settled(accepted=False)
    book.covered.setdefault(token, [one[-FINGERPRINT_BYTES:] for one in lease.entries])
    brought: Admission | None = None
    outlook: Outlook | None = None
    each: list[Settled] = []
    for settlement, entry in zip(settlements, entries, strict=True):
        its_own: Outlook | None = None
        if entry:
            lease.entries.remove(entry)
            one, its_own = _end_page(book, key, host, settlement, entry)
            outlook = its_own
        else:
            end_robots(book, key, host, lease.origin, settlement.outcome)
            lease.origin = ""
            one = admit(book, settlement.links, SEEDS)
        brought = one if brought is None else _sum_of(brought, one)
        if len(entries) > 1:
            each.append(Settled(True, one, its_own))
    if release is None:
        txn.put(token_key, pack(lease), db=leases)
    else:
        txn.delete(token_key, db=leases)
        if any(entries):
            host.work_since = book.now or 1  # it was served; its robots.txt alone is no service
        _free(book, key, host, release, 0 if called_at is None else book.now - called_at)
    return Settled(True, brought or Admission(), outlook, tuple(each))


def _sum_of(one: Admission, other: Admission) -> Admission:
    return Admission(one.added + other.added, one.known + other.known, one.cooling + other.cooling)


def _entries(lease: LeaseRecord, settlements: Sequence[Settlement]) -> list[bytes] | None:
    """How the lease names each task, empty for a robots.txt; None when one is not (any more) this lease's to settle."""
    entries: list[bytes] = []
    for settlement in settlements:
        task = settlement.task
        if isinstance(task, RobotsTask):
            if lease.origin != task.origin:
                return None
            entries.append(b"")
            continue
        for entry in lease.entries:
            if entry.endswith(task.fingerprint) and entry not in entries:
                entries.append(entry)
                break
        else:
            return None
    return entries


def _end_page(
    book: Book, key: bytes, host: HostState, settlement: Settlement, entry: bytes
) -> tuple[Admission, Outlook | None]:
    """Apply the outcome of a page and admit the links that it brought; with it, what is planned for the page."""
    outcome = settlement.outcome
    url_key, record = take_out(book, key, host, entry[:-FINGERPRINT_BYTES], entry[-FINGERPRINT_BYTES:])
    domain = book.domain(key)
    source = _write_end(book, key, host, domain, url_key, record, settlement)
    new: list[Candidate] = []
    admission = admit(book, settlement.links, source, new)
    if budget.gives_back(outcome, admission.added):
        host.admitted = max(0, host.admitted - 1)
    if settlement.refused:
        note_refused(book, settlement.refused, url_key)
    check_health(book, domain, outcome)
    first = record.fate is not None and record.fate.fetched == 1
    if trapping.observe(book, key, host, settlement, new, first=first):
        _earn(book, key, host, domain)
    if book.policy.target_domains and not isinstance(outcome, Retry | Deferred | Respelled):
        look_further(book, key)
    if host.shelved:
        refill(book, key, host)
    if book.policy.recrawl is None or record.fate is None or not isinstance(outcome, Done):
        return admission, None
    return admission, outlook_of(record.fate.history)


def _write_end(
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
    record.state = after(record.state, outcome)
    record.cycle = totals.cycle  # it may have been queued in an earlier one; this is the cycle that it was asked in
    fate = record.fate
    if fate is None:
        fate = record.fate = Fate(book.wall_s)
    else:
        fate.settled_s, fate.reason, fate.detail = book.wall_s, "", ""
    match outcome:
        case Done():
            source = _share_out(book, domain, url_key, record, fate, settlement, outcome)
            seen = as_seen(fate.history, outcome)
            _store(book, url_key, fate, seen)
            _count(book, host, domain, outcome)
            if book.policy.recrawl is not None:
                _plan(book, book.policy.recrawl, domain, url_key, record, fate, seen)
            book.txn.put(url_key, pack(record))
            return source
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
            return Source(url_key)
        case RulesLearned() | RulesMoved():
            raise FrontierError("a page cannot end with the rules of an origin")
        case _:
            assert_never(outcome)
    book.put_url(url_key, record)
    return Source(url_key)


def _share_out(
    book: Book,
    domain: DomainState,
    url_key: bytes,
    record: UrlRecord,
    fate: Fate,
    settlement: Settlement,
    done: Done,
) -> Source:
    """What the links of a page bring their targets, and what is left to the page (R1)."""
    visits, weight = fate.fetched, 1.0
    salt = ranks.salt_of(settlement.task.url.encode(), visits)
    outlinks = len(settlement.links)
    outlinks = max(outlinks, done.outlinks)
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


def _plan(
    book: Book, recrawl: RecrawlPolicy, domain: DomainState, url_key: bytes, record: UrlRecord, fate: Fate, done: Done
) -> None:
    """Plan the next visit (R2), and tell what is gone (R5)."""
    policy = book.policy_of(domain) if domain.policed else ORDINARY
    home = record.tail in {"s/", "h/"}
    visit = Visit(
        book.wall_s,
        done.status,
        done.changed,
        home,
        policy.tier,
        policy.recrawl_s,
        done.listing,
        done.expected_s,
        said_mark(done),
    )
    planned = recrawl.plan(fate.history, visit)
    fate.history = planned.history
    book.totals.gone += planned.gone - fate.gone
    fate.gone = planned.gone
    if fate.gone:
        fate.reason = GONE
    book.delay(url_key, record, book.now + planned.wait_s * 1000, _DUE)


def _earn(book: Book, key: bytes, host: HostState, domain: DomainState) -> None:
    """A page with new content earns its host a larger budget, and its domain further hosts (F5)."""
    host.fresh += 1
    if host.fresh == USEFUL_AFTER:
        domain.useful += 1
        if domain.hosts_over:
            take_on_hosts(book, key, lambda other_key, other: wake(book, other_key, other))


def _store(book: Book, url_key: bytes, fate: Fate, done: Done) -> None:
    """Note the capture of a page, and that it waits for its segment."""
    old, ref, validators = fate.capture, done.ref, done.validators
    kept = done.digest or (old.digest if old and not done.changed else b"")
    changed_at = book.wall_s if done.changed or old is None else old.changed_at
    count = old.count + 1 if old else 1
    fate.fetched += 1
    fate.capture = CaptureNote(
        done.status,
        ref.segment,
        ref.offset,
        ref.end,
        kept,
        validators.etag,
        validators.last_modified,
        changed_at,
        count,
        done.page,
    )
    book.txn.put(pending_key(ref.segment, ref.end), url_key, db=book.db["pending"])
    book.totals.pending += 1


def _free(book: Book, key: bytes, host: HostState, release: Release, late_ms: int) -> None:
    """Let the host rest. What has passed since the answer (`late_ms`) is a part of its rest."""
    book.free(key, host)
    now, pace, wait_ms = book.now, release.pace, release.wait_ms - late_ms if late_ms > 0 else release.wait_ms
    wait_ms = max(wait_ms, 0)
    host.delay_ms = pace.delay_ms
    host.crawl_delay_ms = pace.crawl_delay_ms
    # The answer ended within this millisecond, not at its beginning: round up.
    host.free_at = now + wait_ms + (wait_ms > 0)
    host.released_at, host.slept_ms = now, book.timeline.slept_ms
    if release.elapsed_ms:
        host.mean_ms += (release.elapsed_ms - host.mean_ms) // MEAN_WEIGHT if host.mean_ms else release.elapsed_ms
    book.rest(key, host)
    if release.reason is not None and host.place is Place.WAITING:
        book.wait(key, host, host.free_at, release.reason)
