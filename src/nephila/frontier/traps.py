"""Traps told by what they bring (T2, T5): a kind of URL that brings nothing new any more is slowed, then stopped.

A trap is a program that makes pages without end: a calendar, a maze of session ids, random links, a path that grows by
every click. No look at one page gives it away, but its yield does. So every fetch is counted, on its host, under up to
three patterns, from narrow to wide (`patterns`): the URL's skeleton; its subtree (the first path segment, or the names
of its parameters); the host. A trap that spreads over many skeletons is one in its subtree, and one that spreads over
subtrees is one on its host; the wider a pattern, the more it takes to stop it (`_PATIENCE`). A narrow pattern that has
been seen often enough speaks for itself: wider ones hear no more of it, and a good one is not held back by them
(`holding`). So the good part of a host neither hides its trap nor suffers from it.

A fetch is *wasted* when it is an error, when its bytes are known, or when its text is: the same as that of a recent
page under any of its patterns, or the same but for numbers, or nearly the same as that of some page of the host, where
such small changes are all that the trap varies: found on a page of its own kind, or under a URL that holds a date. A
shop's products that differ in little are found on lists, so they are not taken for a trap; the calendar feeds itself.
A page that says nothing new but leads to new URLs of another kind, which in turn are worth it, is *alive*: neither
good nor bad. That is a list of products; a host lives on such promises for a while, then something has to come of
them.

`barren` is the measure: a wasted fetch adds one, a fresh one takes away what `fresh_share` says, at least to nothing.
At `slow_after` the pattern is slowed, at `stop_after` it is quarantined. From there one page is tried each `probe_s`;
new content makes it slowed again, and more of it normal.

What must stay true: pure, no clock (`now_s` is UTC seconds); a tally is bounded (a ring of recent hashes); a pattern of
which at least `fresh_share` is new over any `stop_after` fetches is never stopped; one that only wastes is stopped
after `stop_after` times its patience; nothing here is for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from enum import Enum, IntEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from nephila.interfaces.frontier import Trap
from nephila.model.noun import quick
from nephila.model.settings import TrapSettings
from nephila.urls import is_open, skeleton

FRESH_SHARE = 0.1
"""Of a pattern's fetches that must bring something new; our own choice, between a shop with some duplicates (two in
three new) and a maze that has one new page in a hundred."""
RING = 128
"""Recent texts that are known of a pattern; a page that is met again counts as recent."""
_HASH_BYTES = 4
_MAX_PATTERN = 200
_MAX_EXAMPLE = 300
_PATIENCE = (1.0, 1.2, 2.5)
"""Of skeleton, subtree and host, by which the thresholds are multiplied: 50, 60 and 125 fetches by default, so that a
trap of whatever spread costs less than 200."""
_ESTABLISHED = 5
"""Fetches from which on a skeleton is compared with its own pages; before, with those of its subtree."""
_TRIED = 10
"""Fetches from which on a pattern can have earned trust."""
_STUMBLES = 2
"""Wasted fetches in a row after which new URLs of a pattern are no sign of life any more."""
_HOPES = 20
"""Fetches of a host in a row, none of them fresh, after which new URLs are a sign of life no longer."""
_PROVEN_FACTOR = 10
"""A pattern with merit may pour out so many times more: large shops do."""
_HOUR_S = 3600
_DATE_NAMES = frozenset({"date", "day", "month", "year", "week"})
_NO_TEXT = bytes(_HASH_BYTES)
"""Stands for the text of a page that has links and not a word beside them."""
HOST = "*"
TALLIED_FROM = 5
"""Pages of a host that are fetched before anything is counted: most hosts of a broad crawl have no more, and a trap
costs so many fetches more."""


class TrapState(IntEnum):
    """How a pattern is treated."""

    NORMAL = 0
    SLOWED = 1
    QUARANTINED = 2


class Yield(Enum):
    """What a fetch brought."""

    FRESH = "fresh"
    ALIVE = "alive"
    WASTED = "wasted"


class SkeletonTally(msgspec.Struct, array_like=True):
    """What the fetches under one pattern of one host have brought. The field order is the format in the store."""

    pattern: str
    state: TrapState = TrapState.NORMAL
    barren: int = 0
    """Wasted fetches that no new content has made good."""
    fetched: int = 0
    fresh: int = 0
    duplicates: int = 0
    """Bytes that were known; `repeats`: another spelling of a known text."""
    repeats: int = 0
    errors: int = 0
    since_s: int = 0
    """When it came into its state."""
    not_before_s: int = 0
    """While slowed or quarantined: the next fetch."""
    released: bool = False
    """By hand: no wider pattern holds it back until it is convicted anew."""
    poured: int = 0
    """New URLs of its own subtree that its pages brought in the hour `poured_hour` (T5)."""
    poured_hour: int = 0
    flagged_s: int = 0
    """When it last poured out too many."""
    example: str = ""
    """The last wasted URL."""
    texts: bytes = b""
    shapes: bytes = b""
    hopes: int = 0
    """Of the host as a whole: fetches in a row that brought nothing themselves."""


@quick
class Observation(NamedTuple):
    """One page fetched for the first time. A page that is fetched again, a redirect or a 304 is not observed."""

    url: str
    found_on: Sequence[str] = ()
    """`patterns` of the page that led to it, if that is on the same host."""
    error: bool = False
    """A 4xx."""
    duplicate: bool = False
    text: bytes = b""
    shape: bytes = b""
    near: bool = False
    """Another page of the host said nearly the same before (D3)."""
    outlinks: int = 0
    inside: int = 0
    """New URLs that it brought under its own `pour_prefix`."""
    outside: int = 0
    """New URLs of other kinds that are worth it (`count_outside`); asked for where `needs_links` says so."""


@lru_cache(maxsize=4096)  # the page that led to a URL led to its neighbours too
def patterns(url: str) -> tuple[str, ...]:
    """What a fetch is counted under, from narrow to wide; a URL that is the only one of its skeleton has two."""
    shape = skeleton(url)[:_MAX_PATTERN]
    path, mark, names = shape.partition("?")
    first, slash, _ = path[1:].partition("/")
    directory = f"/{first}/*" if slash and first[:1] != "(" else "/*"
    subtree = f"*?{names}" if mark else directory
    return (shape, subtree, HOST) if is_open(shape) else (subtree, HOST)


def pour_prefix(url: str) -> str:
    """How the URLs of a page's own subtree begin; empty for a page at the root, which may link to all of its host."""
    path, mark, _ = url.partition("?")
    if mark:
        return path + mark
    parts = path.split("/", 4)
    return "/".join(parts[:4]) + "/" if len(parts) > 4 else ""


def dated(pattern: str) -> bool:
    """Whether the URLs of a pattern name a day or a month."""
    names = pattern.partition("?")[2]
    return "{date}" in pattern or (bool(names) and not _DATE_NAMES.isdisjoint(names.split("&")))


def worth_it(tally: SkeletonTally | None) -> bool:
    """Whether new URLs of a pattern are a reason to go on; of one that nobody has tried they are."""
    if tally is None:
        return True
    if tally.state is not TrapState.NORMAL or tally.barren > _STUMBLES:
        return False
    if tally.fetched == 0 or tally.fresh * 2 > tally.fetched:
        return True
    return tally.fetched >= _TRIED and tally.fresh * 4 >= tally.fetched


def count_outside(
    own: Sequence[str], links: Iterable[Sequence[str]], find: Callable[[str], SkeletonTally | None]
) -> int:
    """How many of a page's new links, given by their patterns, are of another kind than the page and worth it."""
    kind, by_date = own[0], dated(own[0])
    kin = own[-2] if "?" in kind else ""  # under the same parameters it may be the same maze, whatever the path
    good: dict[str, bool] = {kind: False}
    count = 0
    for link in links:
        other = link[0]
        if other not in good:
            tally = find(other)
            promising = worth_it(tally) and (link[-2] != kin or tally is None or tally.fetched < _TRIED)
            good[other] = promising and not (by_date and dated(other))
        count += good[other]
    return count


def needs_links(tallies: Sequence[SkeletonTally], seen: Observation) -> bool:
    """Whether `seen.outside` decides what the fetch was: only then it has to be counted."""
    return not seen.error and not seen.duplicate and _says_nothing_new(tallies, seen)


def assess(tallies: Sequence[SkeletonTally], seen: Observation) -> Yield:
    """What a fetch brought, given the tallies of its patterns as they were before."""
    if seen.error or seen.duplicate:
        return Yield.WASTED
    if not _says_nothing_new(tallies, seen):
        return Yield.FRESH
    return Yield.ALIVE if seen.outside and tallies[-1].hopes < _HOPES else Yield.WASTED


def judge(
    tallies: Sequence[SkeletonTally],
    seen: Observation,
    settings: TrapSettings,
    now_s: int,
    fresh_share: float = FRESH_SHARE,
) -> Yield:
    """Count a fetch in the tallies of its patterns, which are changed; what it brought is returned."""
    result = assess(tallies, seen)
    tallies[-1].hopes = 0 if result is Yield.FRESH else tallies[-1].hopes + 1
    undone, hour = round((1 - fresh_share) / fresh_share), now_s // _HOUR_S
    shape = _shape(seen)
    for tally, patience in zip(tallies, _PATIENCE[-len(tallies) :], strict=True):
        speaks_for_itself = tally.fetched >= settings.stop_after * patience
        _count(tally, seen, shape, result, undone)
        if hour != tally.poured_hour:
            tally.poured, tally.poured_hour = 0, hour
        tally.poured += seen.inside
        _move(tally, result, settings, patience, now_s)
        if speaks_for_itself:
            break
    return result


def has_merit(tally: SkeletonTally, settings: TrapSettings) -> bool:
    """Whether a pattern has earned that it is judged by itself alone."""
    if tally.released:
        return True
    tried = tally.fetched >= _TRIED and tally.fresh * 4 >= tally.fetched
    return tally.state is TrapState.NORMAL and tried and tally.barren < settings.slow_after


def holding(tallies: Sequence[SkeletonTally], settings: TrapSettings) -> SkeletonTally | None:
    """The tally that slows or stops URLs of these patterns, the strictest one; None when they may go."""
    found: SkeletonTally | None = None
    for tally in tallies:
        if tally.state > (found.state if found else TrapState.NORMAL):
            found = tally
        if has_merit(tally, settings):
            break
    return found


def trap_of(host: str, tally: SkeletonTally, parked: int, *, more: bool) -> Trap:
    """A pattern that is held back, as people are told of it; `more`: the URLs on its shelf were not all counted."""
    return Trap(
        host=host,
        pattern=tally.pattern,
        state=tally.state.name.lower(),
        since=tally.since_s * 1000,
        next_try_at=tally.not_before_s * 1000,
        fetched=tally.fetched,
        fresh=tally.fresh,
        duplicates=tally.duplicates,
        repeats=tally.repeats,
        errors=tally.errors,
        barren=tally.barren,
        parked=parked,
        parked_more=more,
        evidence=tell(tally),
        example=tally.example,
    )


def held_until_s(tallies: Sequence[SkeletonTally], settings: TrapSettings) -> int:
    """From when on a URL of these patterns may be fetched; 0 when nothing holds it. Then `take_turn` before asking."""
    hold = holding(tallies, settings)
    return 0 if hold is None else max(1, hold.not_before_s)


def take_turn(tallies: Sequence[SkeletonTally], settings: TrapSettings, now_s: int) -> None:
    """One URL goes out under tallies that hold it: the next has to wait again, whatever comes of this one."""
    hold = holding(tallies, settings)
    if hold is not None:
        hold.not_before_s = now_s + _wait_s(hold.state, settings)


def release(tally: SkeletonTally, now_s: int) -> None:
    """Let a pattern start anew, by hand: its figures stay, what was held against it does not."""
    tally.state = TrapState.NORMAL
    tally.since_s = now_s
    tally.barren = tally.not_before_s = 0
    tally.released = True


def tell(tally: SkeletonTally) -> str:
    """The evidence, in one sentence."""
    what = f"all URLs of the host ({HOST})" if tally.pattern == HOST else f"URLs of the shape {tally.pattern}"
    wasted = tally.duplicates + tally.repeats + tally.errors
    kinds = f"{tally.duplicates} known contents, {tally.repeats} known texts, {tally.errors} errors"
    counted = f"{tally.fresh} fresh and {wasted} without of {tally.fetched} fetched ({kinds})"
    parts = [f"{what} brought nothing new in {tally.barren} fetches that nothing has made good since", counted]
    if tally.flagged_s:
        parts.append(f"they poured out too many URLs an hour on {_day(tally.flagged_s)}")
    if tally.released:
        parts.append(f"released by hand on {_day(tally.since_s)}")
    elif tally.state is not TrapState.NORMAL:
        parts.append(
            f"{tally.state.name.lower()} since {_day(tally.since_s)}, next try not before {_day(tally.not_before_s)}"
        )
    if tally.example:
        parts.append(f"for example {tally.example}")
    return "; ".join(parts)


def _day(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def _says_nothing_new(tallies: Sequence[SkeletonTally], seen: Observation) -> bool:
    """Whether the text is known, or known but for its numbers or a few words where only those are varied."""
    text = seen.text[:_HASH_BYTES]
    if text:
        for tally in tallies:
            if text in tally.texts and _place(tally.texts, text) >= 0:
                return True
    kind = tallies[0] if len(tallies) == 3 and tallies[0].fetched >= _ESTABLISHED else tallies[-2]
    if not (kind.pattern in seen.found_on or dated(tallies[0].pattern)):
        return False
    shape = _shape(seen)
    return seen.near or (bool(shape) and _place(kind.shapes, shape) >= 0)


def _shape(seen: Observation) -> bytes:
    return seen.shape[:_HASH_BYTES] or (_NO_TEXT if seen.outlinks else b"")


def _place(ring: bytes, found: bytes) -> int:
    """Where a hash stands in a ring; -1 where it does not."""
    at = ring.find(found)
    while at > 0 and at % _HASH_BYTES:
        at = ring.find(found, at + 1)
    return at


def _remembering(ring: bytes, found: bytes) -> bytes:
    """The ring with a hash as the most recent one, once."""
    if not found:
        return ring
    if found in ring and (at := _place(ring, found)) >= 0:
        ring = ring[:at] + ring[at + _HASH_BYTES :]
    return (ring + found)[-RING * _HASH_BYTES :]


def _count(tally: SkeletonTally, seen: Observation, shape: bytes, result: Yield, undone: int) -> None:
    tally.fetched += 1
    tally.errors += seen.error
    tally.duplicates += seen.duplicate and not seen.error
    if result is Yield.FRESH:
        tally.fresh += 1
        tally.barren = max(0, tally.barren - undone)
    elif result is Yield.WASTED:
        tally.repeats += not seen.error and not seen.duplicate
        tally.barren += 1
        tally.example = seen.url[:_MAX_EXAMPLE]
    if not seen.error:
        tally.texts = _remembering(tally.texts, seen.text[:_HASH_BYTES])
        tally.shapes = _remembering(tally.shapes, shape)


def _move(tally: SkeletonTally, result: Yield, settings: TrapSettings, patience: float, now_s: int) -> None:
    """Bring a tally into the state that its figures ask for."""
    slow, stop = settings.slow_after * patience, settings.stop_after * patience
    pours = tally.poured > settings.poured_per_hour and (
        tally.poured > settings.poured_per_hour * _PROVEN_FACTOR or not has_merit(tally, settings)
    )
    if pours:
        tally.flagged_s = now_s
    state = tally.state
    if state is TrapState.QUARANTINED:
        if result is Yield.FRESH:
            state, tally.barren = TrapState.SLOWED, int(slow)
    elif tally.barren >= stop or (pours and tally.barren >= slow):
        state = TrapState.QUARANTINED
    elif pours or tally.barren >= slow:
        state = TrapState.SLOWED
    elif tally.barren <= slow / 2:
        state = TrapState.NORMAL
    if state is not tally.state:
        tally.state, tally.since_s = state, now_s
        tally.released = tally.released and state is TrapState.NORMAL
    if state is not TrapState.NORMAL:
        tally.not_before_s = now_s + _wait_s(state, settings)


def _wait_s(state: TrapState, settings: TrapSettings) -> int:
    return int(settings.probe_s if state is TrapState.QUARANTINED else settings.slow_s)
