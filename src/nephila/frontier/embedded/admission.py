"""admit: add what is new, know what is known, remember what was refused.

The hot path of the frontier: sixty links a page. All of them are looked up in one call; what is new of one host goes into
its queue as one bundle (see `bundle`); of what is known nothing is read but the few bytes under its key, and nothing is
written unless its rank rises (see `frontier.rank`).

What is new is not always queued: a host has a budget, a trap is not fed, and in coverage mode a domain that is known must
wait (see `shelving`). Such URLs are parked, not dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nephila.frontier import budget, order, rank as ranks
from nephila.frontier.lifecycle import State, may_return
from nephila.frontier.score import freshness_of, level_of, score
from nephila.interfaces.frontier import Admission
from nephila.model.outcome import DeferReason
from nephila.model.task import Candidate, Level, Refusal
from nephila.urls import registrable_domain

from . import shelving
from .book import Book, pack, read_url
from .bundle import Entry, Head
from .queueing import PARKED, QUEUED, enqueue, enqueue_record, place_in, queued_mark, rank_in, take, uncount
from .records import RANK_AT, DomainState, Fate, HostState, Place, RefusalNote, UrlRecord
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, URL, pending_key, shorten

_NOMINAL = {Level.IMMEDIATE: 100, Level.HIGH: 75, Level.MEDIUM: 35, Level.LOW: 10}
"""The score of a URL whose class was given by hand."""


RANKS_PER_MOVE = 8
"""A waiting URL is given another place when its rank enters another band of so many: two doublings, some six points."""


class Source(NamedTuple):
    """The page that links were found on."""

    url_key: bytes = b""
    share: ranks.Share | None = None
    """What its links bring their targets; None for seeds."""
    salt: int = 0
    """Differs for every page and visit: what chance decides is the same when the same links are settled again."""
    domain: int = 0
    """A hash of its registrable domain that does not depend on the crawl's secret: it decides what is counted (F5)."""

    def part_for(self, key: bytes) -> ranks.Part | None:
        """What a link to a host brings."""
        if self.share is None:
            return None
        same = key[:DOMAIN_KEY_BYTES] == self.url_key[:DOMAIN_KEY_BYTES]
        return self.share.inside if same else self.share.abroad


SEEDS = Source()

Pair = tuple[bytes, Candidate]


def admit(
    book: Book, candidates: Sequence[Candidate], source: Source = SEEDS, met: list[Candidate] | None = None
) -> Admission:
    """Add the candidates that are new; those are told in `met`, where it is given."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        name = candidate[0][1]
        group = groups.get(name)
        if group is None:
            groups[name] = [candidate]
        else:
            group.append(candidate)
    host_key = book.tables.host_key
    keyed: list[tuple[bytes, str, list[Pair]]] = []
    wanted: list[bytes] = []
    for name, group in groups.items():
        key = host_key(name)
        prefix = key + URL
        pairs = [(prefix + candidate[0][3][:8], candidate) for candidate in group]
        keyed.append((key, name, pairs))
        wanted += [url_key for url_key, _ in pairs]
    found: dict[bytes, bytes] = dict(book.cursor.getmulti(wanted))
    added = known = cooling = 0
    writes: list[tuple[bytes, bytes]] = []
    for key, name, pairs in keyed:
        new = {url_key: candidate for url_key, candidate in pairs if url_key not in found}
        if new:
            added += _admit_new(book, key, name, new, source, writes)
            if met is not None:
                met += new.values()
        if len(new) < len(pairs):
            known += len(pairs) - len(new)
            part, salt = source.part_for(key), source.salt
            for url_key, candidate in pairs:
                raw = found.get(url_key)
                if raw is not None:
                    cooling += _meet_again(book, key, url_key, raw, candidate, part, salt, writes)
    book.cursor.putmulti(writes)
    book.totals.urls += added
    return Admission(added, known, cooling)


def _admit_new(
    book: Book, key: bytes, name: str, new: dict[bytes, Candidate], source: Source, writes: list[tuple[bytes, bytes]]
) -> int:
    """Queue or park the new URLs of one host; how many."""
    host, domain = host_and_domain(book, key, name)
    _count_referrer(host, domain, key, source)
    if domain.policed or book.blocklist():
        new = _without_forbidden(book, host, domain, new, source)
    kinds: dict[tuple[int, Level | None, int, int], list[Entry]] = {}
    https = f"https://{name}/"
    start = len(https) - 1
    for candidate in new.values():
        url, fingerprint = candidate[0][0], candidate[0][3]
        tail = "s" + url[start:] if url.startswith(https) else shorten(url, name)
        kind = candidate[1:]
        entries = kinds.get(kind)
        if entries is None:
            kinds[kind] = [(tail.encode(), fingerprint)]
        else:
            entries.append((tail.encode(), fingerprint))
    rank = _first_rank(book, key, host, source)
    places: list[bytes] = []
    for (depth, level, hops, bonus), entries in kinds.items():
        points = _NOMINAL[level] if level is not None else score_of(book, domain, rank, depth, bonus)
        lane = order.lane_of(order.Supply.NEW, level_of(book.policy.priority, points) if level is None else level)
        head = Head(book.wall_s, book.totals.cycle, rank, hops, source.url_key)
        step = order.step_for(book.step, points)
        allowed = shelving.sort_out(
            book, key, host, domain, order.pack_place(lane, step, depth, b"\0\0\0\0"), head, entries
        )
        if allowed:
            host.admitted += len(allowed)
            for place, chunk in enqueue(book, key, host, lane, step, depth, head, allowed):
                mark = queued_mark(place, rank)
                prefix = key + URL
                writes += [(prefix + fingerprint[:8], mark) for _, fingerprint in chunk]
                places.append(place)
    if places:
        wake(book, key, host, places)
    return len(new)


def host_and_domain(book: Book, key: bytes, name: str) -> tuple[HostState, DomainState]:
    """The states of a host and its domain; a new host is taken on, or is one too many for its domain (F5)."""
    host = book.host(key)
    if host is not None:
        return host, book.domain(key)
    host = book.host_or_new(key, name)
    domain = book.domain(key, registrable_domain(name))
    quality = book.policy_of(domain).quality
    if domain.hosts < budget.host_allowance(book.policy.budget, domain.useful, domain.referrers, quality):
        domain.hosts += 1
    else:
        host.over = True
        domain.hosts_over += 1
        book.park(key, host, DeferReason.BUDGET)
    return host, domain


def _count_referrer(host: HostState, domain: DomainState, key: bytes, source: Source) -> None:
    """A link from another registrable domain is worth something (F5, R1); each domain counts once."""
    if source.domain and source.url_key[:DOMAIN_KEY_BYTES] != key[:DOMAIN_KEY_BYTES]:
        host.referrers = budget.mark_referrer(host.referrers, source.domain)
        domain.referrers = budget.mark_referrer(domain.referrers, source.domain)


def _without_forbidden(
    book: Book, host: HostState, domain: DomainState, new: dict[bytes, Candidate], source: Source
) -> dict[bytes, Candidate]:
    """The new URLs without those that a person's word keeps out: blocked (T7), or deeper than a policy allows (R4)."""
    blocks, deepest = book.blocklist(), book.policy_of(domain).max_depth
    allowed: dict[bytes, Candidate] = {}
    refused: list[Refusal] = []
    for url_key, candidate in new.items():
        block = blocks.find(host.name, candidate.address.url)
        if block is not None:
            refused.append(Refusal(candidate.address, "blocked", f"{block.pattern}: {block.reason}"))
        elif deepest is not None and candidate.depth > deepest:
            detail = f"depth {candidate.depth}, the policy of {domain.name} allows {deepest}"
            refused.append(Refusal(candidate.address, "policy_depth", detail))
        else:
            allowed[url_key] = candidate
    note_refused(book, refused, source.url_key)
    return allowed


def score_of(book: Book, domain: DomainState, rank: int, depth: int, bonus: int = 0, fate: Fate | None = None) -> int:
    """The score of a URL (R1). Of one that was never fetched it depends on little, and is remembered with the book."""
    if fate is not None or domain.policed:
        freshness = freshness_of(fate.history, book.wall_s) if fate is not None else 0.0
        return score(
            book.policy.priority, _authority(book, domain, rank), depth, bonus, freshness, book.policy_of(domain).tier
        )
    like = (rank, depth, bonus, domain.referrers)
    points = book.scores.get(like)
    if points is None:
        points = book.scores[like] = score(book.policy.priority, _authority(book, domain, rank), depth, bonus)
    return points


def _authority(book: Book, domain: DomainState, rank: int) -> float:
    return ranks.authority(rank, book.totals.mean_rank, budget.referrers(domain.referrers))


def _meet_again(
    book: Book,
    key: bytes,
    url_key: bytes,
    raw: bytes,
    candidate: Candidate,
    part: ranks.Part | None,
    salt: int,
    writes: list[tuple[bytes, bytes]],
) -> int:
    """What a second meeting brings: a higher rank, a better place, another visit; 1 when it still cools."""
    kind = raw[0]
    if kind == QUEUED:
        rank = rank_in(raw)
        raised = _raised(part, salt, rank, candidate)
        if raised // RANKS_PER_MOVE != rank // RANKS_PER_MOVE or candidate[2] is not None or candidate[1] < raw[5]:
            _move(book, key, url_key, raw, candidate, raised, writes)
        elif raised != rank:
            writes.append((url_key, raw[:-1] + bytes((raised,))))
        return 0
    if kind == PARKED:
        if candidate.level is Level.IMMEDIATE:
            shelving.fetch_from_shelf(book, key, url_key, raw, candidate)
        return 0
    state = raw[1]
    if state == State.QUEUED or candidate.level is Level.IMMEDIATE or book.totals.cycle > 1:
        return _meet_record(book, key, url_key, read_url(raw), candidate)
    rank = raw[RANK_AT]
    raised = _raised(part, salt, rank, candidate)
    if raised != rank:
        writes.append((url_key, raw[:RANK_AT] + bytes((raised,)) + raw[RANK_AT + 1 :]))
    return 0


def _first_rank(book: Book, key: bytes, host: HostState, source: Source) -> int:
    """The rank of what a page brings to a host."""
    part = source.part_for(key)
    if part is None:
        return ranks.SEED_RANK
    rank = ranks.first(part, ranks.chance_of(host.name.encode(), source.salt))
    book.totals.mean_rank = ranks.next_mean(book.totals.mean_rank, rank)
    return rank


def _raised(part: ranks.Part | None, salt: int, rank: int, candidate: Candidate) -> int:
    """The rank of a known URL after one more link. Chance goes by the spelling: the fingerprint depends on the secret."""
    if part is None:
        return rank
    return ranks.raised(part, rank, ranks.chance_of(candidate[0][2].encode(), salt))


def _move(
    book: Book,
    key: bytes,
    url_key: bytes,
    raw: bytes,
    candidate: Candidate,
    rank: int,
    writes: list[tuple[bytes, bytes]],
) -> None:
    """Give a URL that waits the place it deserves by now: found nearer to a seed, more urgent, or of a higher rank.

    The entry in its old bundle stays behind; a leased host's queue is left as it was claimed.
    """
    place = place_in(raw)
    lane, step, depth, _ = order.read_place(place)
    host, domain = book.known_host(key), book.domain(key)
    depth = min(depth, candidate.depth)
    points = score_of(book, domain, rank, depth, candidate.bonus)
    level = level_of(book.policy.priority, points)
    if candidate.level is not None and candidate.level < level:
        level, points = candidate.level, max(points, _NOMINAL[candidate.level])
    new_lane = min(lane, order.lane_of(order.Supply.NEW, level))
    new_step = min(step, order.step_for(book.step, points))
    worth_it = new_lane < lane or depth < place[4] or new_step < step
    if not worth_it or book.token_of(key):
        if rank != rank_in(raw):
            writes.append((url_key, queued_mark(place, rank)))
        return
    bundle = take(book, key, place, candidate[0][3]) if book.policy.ordered else None
    admitted_s = bundle[0].admitted_s if bundle else book.wall_s
    tail = shorten(candidate[0][0], host.name).encode()
    uncount(book, key, host, lane, admitted_s)
    head = Head(admitted_s, book.totals.cycle, rank, candidate.hops, bundle[0].via if bundle else b"")
    ((better, _),) = enqueue(book, key, host, new_lane, new_step, depth, head, [(tail, candidate[0][3])])
    writes.append((url_key, queued_mark(better, rank)))
    wake(book, key, host, (better,))


def _meet_record(book: Book, key: bytes, url_key: bytes, record: UrlRecord, candidate: Candidate) -> int:
    """A URL that has a record is met again; 1 when it may not come back yet."""
    host = book.known_host(key)
    urgent = candidate.level is Level.IMMEDIATE
    if may_return(record.state, url_cycle=record.cycle, cycle=book.totals.cycle) or (
        urgent and record.state != State.QUEUED
    ):
        if cooling_s(book, record) > 0 and not urgent:
            return 1
        wake(book, key, host, (requeue(book, key, host, url_key, record, candidate.level),))
        return 0
    better = candidate.depth < record.depth or (candidate.level is not None and candidate.level < record.level)
    if record.state is not State.QUEUED or not better or book.token_of(key):
        return 0
    uncount(book, key, host, order.read_place(record.place).lane, record.admitted_s)
    record.depth = min(record.depth, candidate.depth)
    record.level = min(record.level, candidate.level) if candidate.level is not None else record.level
    points = _NOMINAL[record.level] if urgent else score_of(book, book.domain(key), record.rank, record.depth)
    place = enqueue_record(book, key, host, url_key, record, points)
    book.put_url(url_key, record)
    wake(book, key, host, (place,))
    return 0


def cooling_s(book: Book, record: UrlRecord) -> float:
    """Seconds until a URL may be queued again (S5)."""
    if record.fate is None or not record.fate.settled_s:
        return 0.0
    cooldown_s = book.policy.settings.cooldown_s
    # Where the wall clock was set back, it has cooled since just now.
    return min(cooldown_s, record.fate.settled_s + cooldown_s - book.wall_s)


def requeue(
    book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord, level: Level | None = None
) -> bytes:
    """Put a URL that had ended, or that waited for a time, back into its queue; returns its place."""
    end_state(book, url_key, record)
    record.cycle, record.retries, record.hops = book.totals.cycle, 0, 0
    if record.fate is not None:
        record.fate.trail, record.fate.reason, record.fate.detail = (), "", ""
    return put_back(book, key, host, url_key, record, level)


def put_back(
    book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord, level: Level | None = None
) -> bytes:
    """Queue a URL that has a record, by its present score (or class); returns its place."""
    points = score_of(book, book.domain(key), record.rank, record.depth, 0, record.fate)
    if level is None and record.level is not Level.IMMEDIATE:
        level = level_of(book.policy.priority, points)
    record.level = record.level if level is None else level
    if record.level is Level.IMMEDIATE:
        points = _NOMINAL[Level.IMMEDIATE]
    record.state = State.QUEUED
    place = enqueue_record(book, key, host, url_key, record, points)
    book.put_url(url_key, record)
    return place


def end_state(book: Book, url_key: bytes, record: UrlRecord) -> None:
    """A URL leaves the state it is in: it is counted there no longer."""
    book.end_delay(url_key, record)
    match record.state:
        case State.DEAD:
            book.txn.delete(url_key, db=book.db["dead"])
            book.totals.dead -= 1
        case State.DROPPED:
            book.totals.dropped -= 1
        case State.DONE:
            _uncount_capture(book, record)
        case State.QUEUED | State.DELAYED:
            pass


def _uncount_capture(book: Book, record: UrlRecord) -> None:
    """Count a page no longer as completed or pending; a capture that may never become durable is forgotten."""
    fate = record.fate
    capture = fate.capture if fate else None
    if fate and capture and book.txn.delete(pending_key(capture.segment, capture.end), db=book.db["pending"]):
        book.totals.pending -= 1
        fate.capture = None
    else:
        book.totals.completed -= 1


def wake(book: Book, key: bytes, host: HostState, places: Iterable[bytes]) -> None:
    """Put a host where it belongs after work was added to its queue."""
    if book.token_of(key):
        return
    match host.place:
        case Place.IDLE:
            book.wait(key, host, max(host.free_at, 0))
        case Place.READY:
            # Keep the ready index exact: a better head, or the first one of another lane, moves the host.
            if any(_is_better(book, host, place) for place in places):
                book.make_ready(key, host)
        case Place.PARKED:
            if host.reason == DeferReason.HOST_LIMIT and host.cycle < book.totals.cycle:
                book.wait(key, host, host.free_at)
        case Place.WAITING:
            if host.reason == DeferReason.TRAP:
                book.wait(key, host, host.free_at)


def _is_better(book: Book, host: HostState, place: bytes) -> bool:
    """Whether a new place in a ready host's queue changes its place among the ready ones."""
    stored, step, depth, _ = order.read_place(place)
    lane = order.effective_lane(stored, step, book.step, book.policy.priority)
    rest = (step << 8 | depth).to_bytes(4, "big")
    current = [ready[5:9] for ready in host.ready if ready[0] == lane]
    return not current or rest < min(current)


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


def fingerprint_of(url_key: bytes, record: UrlRecord) -> bytes:
    """The whole fingerprint of a URL: half of it is its key, half its record."""
    return url_key[HOST_KEY_BYTES + 1 :] + record.suffix
