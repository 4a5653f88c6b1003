"""admit: add what is new, know what is known, remember what was refused.

The hot path of the frontier: sixty links a page. All of them are looked up in one call; what is new of one host goes
into its queue as one bundle (see `bundle`); of what is known nothing is read but the few bytes under its key, and
nothing is written unless its rank rises (see `frontier.rank`). What is done for every link is done in `links`.

What is new is not always queued: a host has a budget, a trap is not fed, and in coverage mode a domain that is known
must wait (see `shelving`). Such URLs are parked, not dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nephila.frontier import budget, order
from nephila.frontier import rank as ranks
from nephila.interfaces.frontier import Admission, Found
from nephila.model.noun import quick
from nephila.model.outcome import DeferReason
from nephila.model.task import Candidate, Refusal
from nephila.urls import registrable_domain

from . import shelving
from .arrivals import FIELDS, Ledger, Page, Woken, queue_new
from .book import Book
from .bundle import BUNDLE_BYTES, Head, fingerprint_of, pack_entry
from .coding import pack
from .links import Group, Kind, New, Writes, count_referrer, link_keys, sort_links
from .marks import place_in, queued_mark, rank_in
from .queueing import Standing, enqueue, enqueue_new, put_beside
from .records import HostState, RefusalNote
from .returning import give_place, meet_again, renew
from .rising import rise
from .scoring import standing_of
from .sections import counts_sections
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, PREFIX_BYTES, QUEUE, URL, shorten
from .waking import is_behind, wake


@quick
class Source(NamedTuple):
    """The page that links were found on."""

    url_key: bytes = b""
    share: ranks.Share | None = None
    """What its links bring their targets; None for seeds."""
    salt: int = 0
    """Differs for every page and visit: what chance decides is the same when the same links are settled again."""
    domain: int = 0
    """A hash of its registrable domain that does not depend on the crawl's secret: it decides what is counted (F5)."""
    first_rank: int = ranks.SEED_RANK
    """The rank of what is new where nothing is shared out."""

    def is_inside(self, key: bytes) -> bool:
        """Whether a host belongs to the page's own registrable domain."""
        return key[:DOMAIN_KEY_BYTES] == self.url_key[:DOMAIN_KEY_BYTES]


SEEDS = Source()
_NOTHING = Admission()

REFERRED_REMEMBERED = 10_000
"""Hosts of which it is known which referrers are counted: some two megabytes. What is forgotten is marked once more, in
a microsecond."""

REFERRED_HOSTS = 20_000
"""Hosts whose latest referrers wait in memory to be counted: some four megabytes."""


def admit(
    book: Book, candidates: Sequence[Candidate], source: Source = SEEDS, met: list[Candidate] | None = None
) -> Admission:
    """Add the candidates that are new; those are told in `met`, where it is given."""
    if not candidates:
        return _NOTHING
    tables, totals, cursor = book.tables, book.totals, book.cursor
    url_key, share, salt, domain, _ = source
    keyed, ordered, hosts = link_keys(candidates, tables.host_keys, tables.host_key, _nearer)
    found = cursor.getmulti(ordered)
    inside = abroad = None
    if share is not None:
        (_, inside), (_, abroad) = share
    writes: Writes = []
    new, again = sort_links(keyed, found, url_key, inside, abroad, salt, totals.cycle > 1, writes)
    cooling = 0
    if again and not totals.policies:
        own = url_key[:DOMAIN_KEY_BYTES]
        moves, again = rise(again, _ledger(book), book.covered, own, inside, abroad, salt, writes)
        for move in moves:
            give_place(book, move, writes)
    for known_key, raw, candidate in again:
        part = inside if source.is_inside(known_key) else abroad
        cooling += meet_again(book, known_key, raw, candidate, part, salt, writes)
    if domain:
        _count_referrers(book, hosts, source)
    added = _admit_new(book, new, hosts, source, writes) if new else 0
    if met is not None:
        for urls, _ in new.values():
            met += urls.values()
    if writes:
        cursor.putmulti(writes)
    totals.urls += added
    return Admission(added, len(candidates) - len(ordered) + len(found), cooling)


def admit_found(book: Book, candidates: Sequence[Candidate], found: Found) -> Admission:
    """Admit what stands in a list: its own word alone makes nothing important. What is said to have changed is due."""
    source = SEEDS if found.via is None else Source(via_of(book, found), first_rank=0)
    admission = admit(book, candidates, source)
    if not found.changed or book.policy.recrawl is None:
        return admission
    renewed = [
        candidate.address.fingerprint
        for candidate in candidates
        if (said_s := found.changed.get(candidate.address.fingerprint)) and renew(book, candidate.address, said_s)
    ]
    return Admission(admission.added, admission.known, admission.cooling, tuple(renewed))


def via_of(book: Book, found: Found) -> bytes:
    """The key of the list that candidates stand in; empty where they stand in none."""
    return b"" if found.via is None else book.tables.url_key(found.via.host, found.via.fingerprint)


def _nearer(one: Candidate, other: Candidate) -> Candidate:
    """Of two candidates for one URL, what is best of both."""
    levels = [level for level in (one.level, other.level) if level is not None]
    return one._replace(depth=min(one.depth, other.depth), level=min(levels, default=None))


def _admit_new(book: Book, new: dict[str, Group], hosts: dict[str, bytes], source: Source, writes: Writes) -> int:
    """Queue or park the new URLs of a page, host by host; how many. What is to be written so far is written here."""
    totals, policy, share = book.totals, book.policy, source.share
    inside = abroad = source.first_rank
    if share is not None:
        inside, abroad = (share.inside.new + source.salt) >> 32, (share.abroad.new + source.salt) >> 32
    mean = None if share is None else totals.mean_rank
    ledger = _ledger(book)
    if totals.policies or book.blocks or (policy.target_domains and not totals.covered):
        ledger = ledger._replace(most=-1)  # nothing is ordinary
    page = Page(source.url_key, inside, abroad, mean, totals.cycle, totals.lowered)
    bundles, closer, woken, added, raised = queue_new(
        book, ledger, page, new, hosts, totals.queued, book.ages_now(), writes
    )
    if mean is not None:
        totals.mean_rank = raised
    if bundles:
        for bundle_key, _ in book.cursor.getmulti(bundles):
            _step_aside(book, bundle_key, writes, woken)
        book.cursor.putmulti(writes)
        writes.clear()
    for key, host, places in woken:
        wake(book, key, host, places)
    for key, host, urls, kind, rank in closer:
        added += _look_closer(book, key, host, urls, kind, rank, source, writes)
    return added


def _ledger(book: Book) -> Ledger:
    """What holds for all pages of a book."""
    if book.ledger is not None:
        return book.ledger
    budgets = book.policy.budget
    book.ledger = Ledger(
        book.hosts,
        book.tables.referrers,
        book.leased,
        book.standings,
        _find,
        standing_of,
        FIELDS,
        min(budgets.first_urls, budgets.queued_per_host),
        budgets.queued_per_prefix // 2,
        BUNDLE_BYTES,
        book.policy.random_seed,
        book.wall_s,
        book.now,
    )
    return book.ledger


def _find(book: Book, key: bytes, name: str) -> HostState:
    """The state of a host, which is taken on where it was never met."""
    return book.host(key) or take_on(book, key, name)


def _step_aside(book: Book, bundle_key: bytes, writes: Writes, woken: list[Woken]) -> None:
    """A bundle that is to be written finds its place taken: it takes another, and its URLs with it."""
    at = next(at for at, (key, _) in enumerate(writes) if key == bundle_key)
    key, value, old = bundle_key[:HOST_KEY_BYTES], writes[at][1], bundle_key[HOST_KEY_BYTES + 1 :]
    lane, step, depth, tie = order.read_place(old)
    place = put_beside(book, key + QUEUE, Standing(lane, step, depth), value, tie)
    writes[at] = (key + QUEUE + place, value)
    for marked in range(at + 1, len(writes)):
        url_key, mark = writes[marked]
        if url_key[HOST_KEY_BYTES:][:1] != URL or place_in(mark) != old:
            break
        writes[marked] = (url_key, queued_mark(place, rank_in(mark)))
    for woken_key, _, places in woken:
        if woken_key == key:
            places[places.index(old)] = place


def _look_closer(
    book: Book, key: bytes, host: HostState, new: New, kind: Kind | None, rank: int, source: Source, writes: Writes
) -> int:
    """Queue or park the new URLs of one host, which may be of several kinds, or not all wanted; how many."""
    restricted = bool(book.totals.policies or book.blocks)
    if restricted:
        new = _without_forbidden(book, key, host, new, source)
    places: list[bytes] = []
    for one_kind, urls in _by_kind(new).items():
        if shelving.lets_in(book, host, len(urls)) and not counts_sections(book, host, len(urls)):
            places += _queue_all(book, key, host, urls, one_kind, rank, source, writes)
        else:
            places += _sort_out(book, key, host, one_kind, rank, source, urls, writes)
    scored = not restricted and kind is not None and kind[1] is None
    if (places or host.trap_at) and not (scored and is_behind(book, host, places)):
        wake(book, key, host, places)
    return len(new)


def _queue_all(
    book: Book, key: bytes, host: HostState, urls: New, kind: Kind, rank: int, source: Source, writes: Writes
) -> list[bytes]:
    """Queue URLs of one kind; returns their places."""
    depth, level, hops, bonus = kind
    standing = standing_of(book, key, host, rank, depth, bonus, level)
    host.admitted += len(urls)
    head = (book.wall_s, book.totals.cycle, rank, hops, source.url_key)
    return enqueue_new(book, key, host, standing, head, urls, writes)


def _sort_out(
    book: Book, key: bytes, host: HostState, kind: Kind, rank: int, source: Source, urls: New, writes: Writes
) -> list[bytes]:
    """Queue those of the URLs that may be queued now, one by one; returns their places."""
    depth, level, hops, bonus = kind
    lane, step, depth, _ = order.read_place(standing_of(book, key, host, rank, depth, bonus, level) + bytes(4))
    standing = Standing(lane, step, depth)
    head = Head(book.wall_s, book.totals.cycle, rank, hops, source.url_key)
    entries = [
        pack_entry(shorten(url, host.name).encode(), fingerprint) for (url, _, _, fingerprint), *_ in urls.values()
    ]
    allowed = shelving.sort_out(book, key, host, standing, head, entries)
    if not allowed:
        return []
    host.admitted += len(allowed)
    places: list[bytes] = []
    for place, chunk in enqueue(book, key, host, standing, head, allowed):
        mark = queued_mark(place, head.rank)
        writes += [(key + URL + fingerprint_of(entry)[:PREFIX_BYTES], mark) for entry in chunk]
        places.append(place)
    return places


def _by_kind(new: New) -> dict[Kind, New]:
    """The URLs by what distinguishes them."""
    kinds: dict[Kind, New] = {}
    for url_key, candidate in new.items():
        kinds.setdefault(candidate[1:], {})[url_key] = candidate
    return kinds


def take_on(book: Book, key: bytes, name: str) -> HostState:
    """Take on a host that was never met, or park it where it is one too many for its domain (F5)."""
    host = book.host_or_new(key, name)
    domain = book.domain(key, registrable_domain(name))
    quality = book.policy_of(domain).quality
    if domain.hosts >= book.policy.budget.first_hosts:
        shelving.add_up_referrers(book, key)
    if domain.hosts < budget.host_allowance(book.policy.budget, domain.useful, domain.referrers, quality):
        domain.hosts += 1
    else:
        host.over = True
        domain.hosts_over += 1
        book.park(key, host, DeferReason.BUDGET)
    return host


def _count_referrers(book: Book, hosts: dict[str, bytes], source: Source) -> None:
    """A link from another registrable domain is worth something to a host (F5, R1); each domain counts once.

    Menus repeat: what a domain links to was mostly counted a short while ago, and is not looked up again. What is
    remembered of a host is the bits that are set, as they are all that counting another domain could change. And a host
    that is at hand for nothing else is not read and written for it: the bit waits in memory until the host is read
    (see `Book.host`). What waits so is lost with the process, unless it is closed: a count that is a little low.
    """
    tables = book.tables
    referred, waiting = tables.referred, tables.referrers
    bit, own = budget.mark_referrer(0, source.domain), source.url_key[:DOMAIN_KEY_BYTES]
    fresh = count_referrer(hosts, own, bit, referred, waiting)
    if len(referred) > REFERRED_REMEMBERED:
        referred.clear()
    if fresh and book.totals.shelved.get(DeferReason.BUDGET):
        for key in fresh:
            if shelving.has_shelf(book, key, DeferReason.BUDGET):
                host = book.known_host(key)
                if shelving.refill(book, key, host):
                    wake(book, key, host)
    if len(waiting) > REFERRED_HOSTS:
        book.count_referrers(REFERRED_HOSTS // 10)


def _without_forbidden(book: Book, key: bytes, host: HostState, new: New, source: Source) -> New:
    """The new URLs without those that a person's word keeps out: blocked (T7), or deeper than a policy allows (R4)."""
    domain = book.domain(key)
    blocks, deepest = book.blocks, book.policy_of(domain).max_depth
    allowed: New = {}
    refused: list[Refusal] = []
    for url_key, candidate in new.items():
        address = candidate.address
        block = blocks and blocks.find(host.name, address.url, address.fingerprint)
        if block:
            refused.append(Refusal(candidate.address, "blocked", f"{block.pattern}: {block.reason}"))
        elif deepest is not None and candidate.depth > deepest:
            detail = f"depth {candidate.depth}, the policy of {domain.name} allows {deepest}"
            refused.append(Refusal(candidate.address, "policy_depth", detail))
        else:
            allowed[url_key] = candidate
    note_refused(book, refused, source.url_key)
    return allowed


def note_refused(book: Book, refused: Sequence[Refusal], via: bytes = b"") -> None:
    """Remember refusals for `why`, each URL once, up to the limit."""
    limit = book.policy.settings.max_refusals
    for refusal in refused:
        if book.totals.refused >= limit:
            return
        address = refusal.address
        url_key = book.tables.url_key(address.host, address.fingerprint)
        note = RefusalNote(address.url, refusal.reason, refusal.detail, book.wall_s, via)
        if book.txn.put(url_key, pack(note), db=book.db["refused"], overwrite=False):
            book.totals.refused += 1
