"""The order of fetching, in one place (F1, F4, F6, F7).

Among the hosts that may be asked now, the next one is found by these rules, first to last:

1. immediate before everything;
2. the starving reserve: up to a fifth of the fetches go to hosts that have had work for a day without being asked, the
   oldest first;
3. never-crawled URLs and re-crawls are drawn 30/70, among those of the two that have a ready host;
4. high, medium and low are drawn 80/15/5, among those that have a ready host, so none starves;
5. the registrable domain with the fewest pages fetched;
6. the highest score, waiting time included;
7. the least depth;
8. who has had work for longest, then a plain hash of the URL. (The fingerprint would do as well, but it is seeded with
   the crawl's secret, and the same input must give the same order in two crawls.)

Rules 5 to 8 are the bytes of a key, so that any ordered store sorts by them; rules 1 to 4 choose among seven such
orderings, the *lanes*. Within a host the same rules hold without the domain's count.

Ageing costs nothing: a URL's priority is its score plus what its wait has added, and both run at the same pace for all,
so that their order never changes. What is stored is the *step* at which a URL will have a score of 100: a step is a
hundredth of `ageing_s`, one point. The class a URL is in follows from that step and the present one; only the first
URLs of a host are ever asked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from xxhash import xxh3_64_intdigest, xxh32_digest

from nephila.model.settings import PrioritySettings
from nephila.model.task import Level

TOP_SCORE = 100
LANES = 7
"""Immediate; high, medium, low of what was never crawled; high, medium, low of what is due again."""
STARVING_LANE = 7
"""Not a lane of its own: the ready hosts once more, by how long they have had work."""

PLACE_BYTES = 9
READY_KEY_BYTES = 21
SINCE_KEY_BYTES = 13
_PLACE = struct.Struct(">IB4s")
"""Lane and step in one number (8 and 24 bits), depth, tie."""
_STANDING = struct.Struct(">IB")
"""The same without the tie."""
_READY = struct.Struct(">BIIQ4s")
_SINCE = struct.Struct(">BQ4s")
_MAX_COUNT = 0xFFFF_FFFF
_MAX_STEP = 0xFF_FFFF
_LANE_SHIFT = 24


class Supply(IntEnum):
    """Where work comes from (F4)."""

    NEW = 0
    """Never fetched."""
    DUE = 1
    """Fetched before, and due again."""


class Place(NamedTuple):
    """A place in a host's queue, taken apart."""

    lane: int
    step: int
    depth: int
    tie: bytes


def lane_of(supply: Supply, level: Level) -> int:
    """The lane of a class: one for all that is immediate, three for each supply."""
    return 0 if level is Level.IMMEDIATE else 3 * supply + level


LEVELS = (Level.IMMEDIATE, *(Level.HIGH, Level.MEDIUM, Level.LOW) * 2)
"""The classes by lane, for whoever asks for each page."""


def level_of_lane(lane: int) -> Level:
    """The class that a lane belongs to."""
    return LEVELS[lane]


def supply_of_lane(lane: int) -> Supply:
    """The supply that a lane belongs to; what is immediate counts as new."""
    return Supply.DUE if lane > 3 else Supply.NEW


def step_ms(settings: PrioritySettings) -> int:
    """The wait that is worth one point."""
    return max(1, int(settings.ageing_s * 1000) // TOP_SCORE)


def step_for(now_step: int, score: int) -> int:
    """The step at which a URL with that score, queued now, will have the highest priority."""
    return min(now_step + TOP_SCORE - score, _MAX_STEP)


def score_at(step: int, now_step: int) -> int:
    """The score that a URL has by now, waiting included."""
    score = now_step + TOP_SCORE - step
    if 0 <= score <= TOP_SCORE:
        return score
    return TOP_SCORE if score > 0 else 0


_LIFTED = tuple(
    tuple((3 if lane > 3 else 0) + min(level, (lane - 1) % 3 + 1) for level in range(4)) for lane in range(LANES)
)
"""By lane and by the level of the present score: the lane that a URL is in, where nothing holds it down."""


def effective_lane(lane: int, step: int, now_step: int, settings: PrioritySettings, lowered: int = 0) -> int:
    """The lane that a URL is in by now: ageing lifts it (F7), errors of its domain hold it down (P4)."""
    if not lane:
        return 0
    score = score_at(step, now_step)
    level = 1 if score >= settings.high_from else 2 if score >= settings.medium_from else 3
    if not lowered:
        return _LIFTED[lane][level]
    level = min(3, min(level, (lane - 1) % 3 + 1) + lowered)
    return (3 if lane > 3 else 0) + level


def pack_place(lane: int, step: int, depth: int, tie: bytes) -> bytes:
    """A place in a host's queue as bytes that sort by it."""
    return _PLACE.pack(lane << _LANE_SHIFT | step, min(depth, 255), tie)


def pack_standing(lane: int, step: int, depth: int) -> bytes:
    """How a place begins: all of it but the tie-break."""
    return _STANDING.pack(lane << _LANE_SHIFT | step, min(depth, 255))


def standing_of_new(settings: PrioritySettings, now_step: int, score: int, depth: int) -> bytes:
    """How the place begins of a URL that was never fetched and has its class by its score."""
    lane = 1 if score >= settings.high_from else 2 if score >= settings.medium_from else 3
    step = now_step + TOP_SCORE - score
    return _STANDING.pack(lane << _LANE_SHIFT | (min(_MAX_STEP, step)), min(255, depth))


def read_place(place: bytes) -> Place:
    """A place, taken apart."""
    number, depth, tie = _PLACE.unpack(place)
    return Place(number >> _LANE_SHIFT, number & _MAX_STEP, depth, tie)


def tie_of(url: bytes, seed: int) -> bytes:
    """The tie-break of a URL; `seed` is the crawl's random seed."""
    return xxh32_digest(url, seed & 0xFFFF_FFFF)


def ready_key(lane: int, domain_count: int, place: bytes, work_since: int) -> bytes:
    """The place of a host among the ready ones of a lane, from its domain's count and its first queue place.

    `work_since` is since when it has had work without being served; 0 where the order must not depend on time.
    """
    number, depth, tie = _PLACE.unpack(place)
    rest = (number & _MAX_STEP) << 8 | depth
    tail = work_since or int.from_bytes(tie, "big")
    return _READY.pack(lane, min(_MAX_COUNT, domain_count), rest, tail, tie)


def since_key(work_since: int, name: str, seed: int) -> bytes:
    """The place of a ready host by how long it has had work (F7)."""
    return _SINCE.pack(STARVING_LANE, max(0, work_since), xxh32_digest(name.encode(), seed & 0xFFFF_FFFF))


def count_in_ready_key(key: bytes) -> int:
    """The domain count that a ready key was made with: it is stale once the domain has been asked again."""
    return int.from_bytes(key[1:5], "big")


def is_sample(url: str, cycle: int, every: int, seed: int) -> bool:
    """Whether a URL is one of those that are looked at closely in a cycle: one in `every`, each in its turn."""
    return (xxh3_64_intdigest(url.encode(), seed) + cycle) % every == 0


def reserved(draw: int, seed: int, settings: PrioritySettings) -> bool:
    """Whether this fetch belongs to the starving reserve (F7), if anybody starves."""
    return _point(draw, seed ^ 0x5EED, 10_000) < settings.reserve * 10_000


def draw_lane(present: Sequence[int], draw: int, seed: int, settings: PrioritySettings) -> int:
    """Which of the lanes with a ready host goes next. The same seed and draw number give the same answer."""
    if present[0] == 0 or len(present) == 1:
        return present[0]
    new = [lane for lane in present if lane <= 3]
    due = [lane for lane in present if lane > 3]
    if new and due:
        share = settings.new_share + settings.due_share
        present = new if _point(draw, seed, share) < settings.new_share else due
    shares = (settings.high_share, settings.medium_share, settings.low_share)
    weights = [shares[(lane - 1) % 3] for lane in present]
    point = _point(draw, seed + 1, sum(weights))
    for lane, weight in zip(present, weights, strict=True):
        point -= weight
        if point < 0:
            return lane
    return present[-1]


def _point(draw: int, seed: int, total: int) -> int:
    return xxh3_64_intdigest(draw.to_bytes(8, "big"), seed & 0xFFFF_FFFF_FFFF_FFFF) % total
