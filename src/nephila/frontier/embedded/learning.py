"""What answers teach: the robots.txt of an origin (P1), and how a domain is doing (P4)."""

from __future__ import annotations

from nephila.frontier import health
from nephila.model.errors import FrontierError
from nephila.model.exchange import FailureKind
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    OriginRules,
    Outcome,
    Respelled,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
)

from .admission import take_on
from .book import Book
from .origins import origin_note, put_note, put_robots, remove_robots
from .records import DomainState, HostState, OriginNote, Place, RobotsEntry

_STRAINED = frozenset({FailureKind.TIMEOUT, FailureKind.RESET, FailureKind.CONNECT, "http_429"})
_WELL = health.Health()
"""Of nearly every domain: an answer changes nothing in it."""


def check_health(book: Book, domain: DomainState, outcome: Outcome) -> None:
    """What an answer shows of its domain: too many errors pause it (P4)."""
    before = domain.health
    if before == _WELL and isinstance(outcome, Done):
        return
    seen = _seen(outcome)
    if seen is not None:
        domain.health, pause = health.after(before, seen, book.policy.politeness)
        book.totals.lowered += (domain.health.lowered > 0) - (before.lowered > 0)
        if pause:
            domain.paused_until = book.now + int(book.policy.politeness.pause_s * 1000)


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


def end_robots(book: Book, key: bytes, host: HostState, origin: str, outcome: Outcome) -> None:
    """Apply the outcome of asking a host for the robots.txt of an origin."""
    match outcome:
        case RulesLearned(rules, crawl_delay_ms):
            remove_robots(book, key, host, origin)
            _put_rules(book, rules)
            _wake_origin(book, origin, crawl_delay_ms)
            check_health(book, book.domain(key), outcome)
        case RulesMoved(_, address, hops):
            remove_robots(book, key, host, origin)
            note = origin_note(book, origin) or OriginNote(RulesKind.UNAVAILABLE, 0, 0)
            moved = OriginNote(
                note.kind, note.stored_at, 0, note.status, note.failing_since, note.detail, max(1, book.now)
            )
            put_note(book, origin, moved)
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
    put_note(book, rules.origin, note)
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
