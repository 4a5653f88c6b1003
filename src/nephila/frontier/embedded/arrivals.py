"""What a page brings that is new to hosts of which all of it can simply be queued: in C where that was built.

A page brings something new to five hosts, and for nearly all of them the same holds: nothing of it is forbidden, no
trap and no budget is in the way. So that case is one call a page, `queue_new`. It writes nothing to the store itself:
bundles and marks are handed back, with the hosts that must be woken once those are written, and with whatever needs a
closer look. What stands here is what `native/queueing.c` does; the tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nephila.frontier import order
from nephila.frontier import rank as ranks
from nephila.model.noun import quick
from nephila.native import AVAILABLE, native

from .links import Group, Kind, New, Writes, plain_pack_bundles
from .records import HostState, Place
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, QUEUE

if TYPE_CHECKING:
    from .book import Book

Like = tuple[int, int, int, int]
"""Rank, depth, bonus and the number of referrers' bits: what the score of a URL depends on that was never fetched.

Where domains have grades, their numbers are others (`referral`), and what is not found here is asked for.
"""
Closer = tuple[bytes, HostState, New, Kind | None, int]
"""A host, its state, what is new of it, of which kind and with which rank."""
Woken = tuple[bytes, HostState, list[bytes]]
"""A host, its state, and the places that its new URLs stand at."""
Queued = tuple[list[bytes], list[Closer], list[Woken], int, int]
"""Keys of the bundles, which must not be in the store yet; what needs a closer look; whom to wake; how many URLs were
queued; the mean rank."""

_READY = Place.READY
"""Looked up once: until Python 3.12 a member of an enumeration costs a call each time."""

FIELDS = (
    *("name", "queued", "place", "ready", "reason", "work_since", "admitted", "referrers", "flagged", "sections"),
    "over",
)
"""Of a `HostState`, in the order that C knows them by."""


class Ledger(NamedTuple):
    """What holds for all pages that are settled with one book; C knows it by its order."""

    states: dict[bytes, HostState]
    """Hosts that are at hand."""
    referrers: dict[bytes, int]
    """Hosts whose referrers wait until they are read."""
    leased: dict[bytes, int]
    """Tokens of hosts that are known to be leased; 0 of those that are known not to be."""
    standings: dict[Like, bytes]
    find: Callable[[Book, bytes, str], HostState]
    """The state of a host that is not at hand; called with the book, its key and its name."""
    stand: Callable[[Book, bytes, HostState, int, int, int], bytes]
    """A standing that is not remembered; called with the book, a host's key and state, rank, depth and bonus."""
    fields: tuple[str, ...]
    most: int
    """URLs that an ordinary host may have had in its queue, all in all."""
    unsectioned: int
    """URLs that may wait in its queue before they are counted by section."""
    bundle_bytes: int
    seed: int
    wall_s: int
    now: int


@quick
class Page(NamedTuple):
    """The page that brings it."""

    via: bytes
    """Its key."""
    inside: int
    """The rank of what is new within its own domain, and elsewhere."""
    abroad: int
    mean: int | None
    """The mean rank before; None where it does not change."""
    cycle: int
    lowered: int
    """Whether errors hold down the class of any domain."""


def plain_queue_new(
    book: Book,
    ledger: Ledger,
    page: Page,
    new: dict[str, Group],
    hosts: dict[str, bytes],
    queued: list[int],
    ages: list[int],
    writes: Writes,
) -> Queued:
    """Queue what is new on ordinary hosts; `writes` gets each bundle, then the marks of the URLs in it.

    `queued` and `ages` are the totals by lane and by class.
    """
    via, inside, abroad, mean, cycle, lowered = page
    bundles, closer, woken, added = list[bytes](), list[Closer](), list[Woken](), 0
    own = via[:DOMAIN_KEY_BYTES]
    for name, (urls, kind) in new.items():
        key, count = hosts[name], len(urls)
        host = ledger.states.get(key)
        if host is None or key in ledger.referrers:
            host = ledger.find(book, key, name)
        rank = inside if key.startswith(own) else abroad
        if mean is not None:
            mean = ranks.next_mean(mean, rank)
        packed: list[tuple[bytes, bytes, int]] = []
        marks: Writes = []
        if kind is not None and is_ordinary(ledger, host, kind, count):
            depth, _, hops, bonus = kind
            like = (rank, depth, bonus, host.referrers.bit_count())
            standing = ledger.standings.get(like) or ledger.stand(book, key, host, rank, depth, bonus)
            head = (ledger.wall_s, cycle, rank, hops, via)
            packed = plain_pack_bundles(
                head, host.name, urls, ledger.bundle_bytes, ledger.seed, key + QUEUE + standing, marks
            )
        if len({bundle_key for bundle_key, _, _ in packed}) < max(1, len(packed)):
            closer.append((key, host, urls, kind, rank))  # not ordinary, or two bundles with the same tie-break
            continue
        first = 0
        for bundle_key, value, size in packed:
            writes += [(bundle_key, value), *sorted(marks[first : first + size])]
            bundles.append(bundle_key)
            first += size
        lane = standing[0]
        host.admitted += count
        host.queued[lane] += count
        queued[lane] += count
        ages[order.LEVELS[lane]] += count
        host.work_since = host.work_since or max(1, ledger.now)
        places = [bundle_key[HOST_KEY_BYTES + 1 :] for bundle_key, _, _ in packed]
        if not ledger.leased.get(key) and (lowered or not stays_ready(host, places)):
            woken.append((key, host, places))
        added += count
    return bundles, closer, woken, added, mean or 0


def is_ordinary(ledger: Ledger, host: HostState, kind: Kind, count: int) -> bool:
    """Whether so many URLs of a kind can simply be queued."""
    if kind[1] is not None or host.flagged or host.over or host.sections or host.reason:
        return False
    return host.admitted + count <= ledger.most and sum(host.queued) + count <= ledger.unsectioned


def stays_ready(host: HostState, places: Sequence[bytes]) -> bool:
    """Whether a host is ready and stays where it is after URLs that were scored just now came into its queue there.

    It does when all of them are behind the head of their lane; the common case, told at a glance. Of such URLs the lane
    is that of their score, unless errors hold their domain down.
    """
    if host.place is not _READY:
        return False
    ready = host.ready
    for place in places:
        lane, rest = place[0], place[1:5]
        for known in ready:
            if known[0] == lane:
                if rest < known[5:9]:
                    return False
                break
        else:
            return False
    return True


queue_new = native.queue_new if AVAILABLE else plain_queue_new
