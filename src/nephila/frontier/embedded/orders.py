"""What a person decides while a crawl runs: policies of domains (R4) and blocks (T7). They hold from the next claim on.

Every change counts up `Totals.orders`, so that whoever keeps blocks at hand, in this process or another, reads them
again.
"""

from __future__ import annotations

from nephila.model.outcome import DeferReason
from nephila.model.policy import Block, DomainPolicy

from .book import ORDINARY, Book
from .coding import pack, read_policy
from .records import Place
from .replanning import look_again
from .shelving import refill, take_on_hosts
from .tables import DOMAIN_KEY_BYTES, block_key
from .waking import wake

_LIFTED = frozenset({DeferReason.PAUSED, DeferReason.BLOCKED, DeferReason.HOURS, DeferReason.ERRORS})


def set_policy(book: Book, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
    """Let a policy hold for a domain; None takes it back. False, and nothing is changed, where `was` holds no more."""
    key = book.tables.domain_key(domain)
    raw = book.txn.get(domain.encode(), db=book.db["policies"])
    if was is not None and (ORDINARY if raw is None else read_policy(raw)) != was:
        return False
    state = book.domain(key, domain)
    before, now = book.policy_of(state), policy or ORDINARY
    book.totals.policies += (policy is not None) - state.policed
    state.policed = policy is not None
    if policy is None:
        book.txn.delete(domain.encode(), db=book.db["policies"])
    else:
        book.txn.put(domain.encode(), pack(policy), db=book.db["policies"])
    book.totals.orders += 1
    book.forget_policies()
    _reconsider(book, domain)
    if (before.recrawl_s, before.tier) != (now.recrawl_s, now.tier):
        look_again(book, key[:DOMAIN_KEY_BYTES])
    return True


def block(book: Book, entry: Block) -> None:
    """Ask no more for what an entry names."""
    book.txn.put(block_key(entry.pattern), pack(entry), db=book.db["blocks"])
    book.totals.orders += 1
    book.read_blocks()


def unblock(book: Book, pattern: str) -> bool:
    """Take a block back; False when there was none."""
    if not book.txn.delete(block_key(pattern), db=book.db["blocks"]):
        return False
    book.totals.orders += 1
    book.read_blocks()
    with book.txn.cursor(db=book.db["parked"]) as cursor:
        keys = [key for key, reason in cursor if reason == DeferReason.BLOCKED.encode()]
    for key in keys:
        book.rest(key, book.known_host(key))
    return True


def _reconsider(book: Book, domain: str) -> None:
    """Let the hosts of a domain be judged anew: what held them back may hold no longer."""
    prefix = book.tables.domain_key(domain)[:DOMAIN_KEY_BYTES]
    held: list[bytes] = []
    with book.txn.cursor(db=book.db["parked"]) as cursor:
        going = cursor.set_range(prefix)
        while going and cursor.key().startswith(prefix):
            held.append(cursor.key())
            going = cursor.next()
    for key in held:
        host = book.known_host(key)
        if host.reason in _LIFTED:
            book.rest(key, host)
    take_on_hosts(book, prefix + bytes(6), lambda other_key, other: wake(book, other_key, other))
    for key in _hosts_of(book, prefix):
        host = book.known_host(key)
        if host.shelved and refill(book, key, host):
            wake(book, key, host)
        if host.place is Place.WAITING and host.reason in _LIFTED and not book.token_of(key):
            book.rest(key, host)
            wake(book, key, host)


def _hosts_of(book: Book, prefix: bytes) -> list[bytes]:
    """The keys of a domain's hosts; jumped to, one after the other, past all that lies under each."""
    keys: list[bytes] = []
    with book.txn.cursor(db=book.web) as cursor:
        going = cursor.set_range(prefix + bytes(6) + b"\xff")
        while going and cursor.key().startswith(prefix):
            key = cursor.key()[:12]
            keys.append(key)
            going = cursor.set_range(key + b"\xff")
    return keys
