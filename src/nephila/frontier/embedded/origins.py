"""Origins and their robots.txt in the store: what is known of one, and those that wait to be asked for."""

from __future__ import annotations

from xxhash import xxh3_64_digest

from nephila.model.outcome import RulesKind

from .book import Book
from .coding import pack, read_origin
from .records import HostState, OriginNote, RobotsEntry
from .tables import ROBOTS

MOVED_POLL_MS = 2_000
MOVED_LIMIT_MS = 600_000
"""A robots.txt that was redirected to another host is waited for so long, then asked for anew."""

_NO_RULES = OriginNote(RulesKind.ALLOW_ALL, 0, 0)
"""Stands for the rules of every origin where robots.txt is not obeyed."""
_UNAVAILABLE = RulesKind.UNAVAILABLE


def rules_of(book: Book, origin: str) -> tuple[OriginNote | None, int | None]:
    """What is in force of an origin's robots.txt, None when it must be asked for.

    And when an origin whose pages may not be claimed is worth another look; None when it is not blocked.
    """
    if not book.policy.robots:
        return _NO_RULES, None
    note, now = origin_note(book, origin), book.now
    if note is None:
        return None, None
    fresh = note if note.fresh_until > now else None
    if note.moved_at and now - note.moved_at < MOVED_LIMIT_MS:
        return fresh, now + MOVED_POLL_MS
    return fresh, note.fresh_until if fresh is not None and note.kind is _UNAVAILABLE else None


def origin_note(book: Book, origin: str) -> OriginNote | None:
    """What is known of an origin's robots.txt."""
    note = book.origins.get(origin)
    if note is None:
        raw = book.txn.get(origin.encode(), db=book.db["origins"])
        if raw is not None:
            note = book.origins[origin] = read_origin(raw)
    return note


def put_note(book: Book, origin: str, note: OriginNote | None) -> None:
    """Write what is known of an origin's robots.txt; None when nothing is any more."""
    if note is None:
        book.origins.pop(origin, None)
        book.txn.delete(origin.encode(), db=book.db["origins"])
    else:
        book.origins[origin] = note
        book.txn.put(origin.encode(), pack(note), db=book.db["origins"])


def put_robots(book: Book, key: bytes, host: HostState, entry: RobotsEntry) -> None:
    """Put a robots.txt first into a host's queue."""
    if book.txn.get(robots_key(key, entry.origin)) is None:
        host.robots += 1
    book.txn.put(robots_key(key, entry.origin), pack(entry))


def remove_robots(book: Book, key: bytes, host: HostState, origin: str) -> None:
    """Take a robots.txt out of a host's queue."""
    if book.txn.delete(robots_key(key, origin)):
        host.robots -= 1


def robots_key(key: bytes, origin: str) -> bytes:
    """The key of a robots.txt in a host's queue."""
    return key + ROBOTS + xxh3_64_digest(origin.encode())
