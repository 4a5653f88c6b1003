"""How important a URL is, in one byte that links keep up to date while the crawl runs (R1).

Links bring *cash*. A page that is fetched hands on half of what it was brought, and a *base* of its own, in equal parts
to its links: OPIC with the random jump of PageRank. Without a base (plain OPIC) cash only thins out with depth, and a
crawl of one large site ends up worse than breadth first. With the same base for every page the large sites vote
themselves up. So the base is 1 / sqrt(pages fetched of the domain so far): the voice of a domain grows with the square
root of what it publishes, and a farm of links has to be four times as large to speak twice as loud. A link to another
registrable domain brings four times as much of the base as one inside: those inside are mostly menus, the others are
somebody's choice, and a site that is not known yet may hold more than the next page of one that is. What is handed on
is not multiplied, so no ring of links can raise itself: at most half of what a page was brought leaves it. A seed has
cash 1.

*One byte.* A rank is a bucket: two to a doubling, from 2**-28 (rank 0, also for a URL that no link has brought
anything) to 2**35.5. Thirty known links a page must not mean thirty writes, so nothing finer is stored: a bucket moves
with just the probability that makes the expected cash right (a Morris counter), and most links move nothing. The draws
are hashes of (source, target, number of the fetch), so that a crawl that is replayed, or a page that is settled from
the archive after a crash, comes to the same ranks. Whoever wants two crawls with different secrets to agree gives the
spellings of the URLs, not their fingerprints, as source and target.

*Fetched pages* keep their rank: it is what all links brought. A page that is fetched again hands on only the part
`weight_of(gap)` to URLs that were known, and forgets that part of its own (`kept`). Both are proportional to the gap,
so a page that is fetched every quarter of an hour votes no more in a month than one that is fetched monthly, and the
ranks tend to `cash = sum over links of (cash of source / 2 + base) / links of source` however often each is visited. A
URL that is met for the first time gets a whole part, whatever the visit.

*What it is not.* The expected cash is exact but for two roundings: a page's part is rounded to an eighth of a doubling
(4.4 % at most), and sums are cut off at the two ends of the range. The cash behind one rank scatters: many small parts
add up with a standard deviation of sqrt((2**0.5 - 1) / 2) = 46 % (a bucket), a single part with 17 % at most. Finer
buckets hold no more of the PageRank on the graphs of the tests at the 40 points of the default, and cost half as many
writes again.

Applying a settle is *not* idempotent: the same page twice is twice the cash, and the lease token is what prevents it. A
settle that is lost and never repeated costs its links one vote each, which is not made up for until the page is fetched
again. Both stay local: no total is kept that could go wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log2, sqrt
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest, xxh32_intdigest

from nephila.model.noun import quick

RANKS: Final = 128
_PER_DOUBLING = 2
_OF_ONE = 56
"""The rank of cash 1. The base of a domain's 100,000,000th page in 500 parts is 2**-22, and has room below it."""

SEED_RANK: Final = _OF_ONE

_HANDED_ON = 0.5
"""Below PageRank's 0.85, as what a page was brought by the time it is fetched is an early guess. On the graphs of the
tests 0.5 holds more of the PageRank than 0.85 where sites are large, and as much elsewhere."""

_FINE = 4
"""Steps of a part within a bucket: each step that occurs has a table of its own."""

_STEPS_PER_DOUBLING = _PER_DOUBLING * _FINE
_LAST_STEP = (RANKS - 1) * _FINE
_STEP_OF_ONE = _OF_ONE * _FINE

_ABROAD = 4.0
"""Times the base for a link to another domain. On the webs of the tests 4 holds 0.01 to 0.03 more of the PageRank than
1, and 16 up to 0.015 more than 4, but links between bought domains would gain by that too."""

_CHANCE_BITS = 32
_CASH = tuple(2.0 ** ((rank - _OF_ONE) / _PER_DOUBLING) for rank in range(RANKS))

_MEAN_BITS = 16
_MEAN_WINDOW_BITS = 14
"""The mean follows the last 16,000 new URLs or so: slowly, as the scores of queued URLs are not made anew for it."""

FIRST_MEAN: Final = (_OF_ONE - 5 * _PER_DOUBLING) << _MEAN_BITS
"""Before anything is known: the links of a seed with 32 of them."""

_OF_MEAN, _OF_DOUBLING, _MOST_OF_PAGE = 0.3, 0.07, 0.88
"""A page of mean rank, each doubling above or below it (2.8 of 40 points), and the most a page can have of itself."""

_OF_UNIT = _OF_DOUBLING / (_PER_DOUBLING << _MEAN_BITS)
_OF_REFERRERS = 0.12 / 8
"""Each doubling of the domains that link to its domain; eight of them (a bitmap of 64 counts no further) make 0.12."""


class Part(NamedTuple):
    """What one link brings, as tables: `(entry + chance) >> 32` is the rank that its target then has.

    A tuple, as it is read sixty times a page; so whoever is in a hurry may write the sum out.
    """

    new: int
    known: tuple[int, ...]


@quick
class Share(NamedTuple):
    """What the links of one page bring: those within its registrable domain, and those to others."""

    inside: Part
    abroad: Part


chance_of: Callable[[bytes, int], int] = xxh32_intdigest
"""The draw of one link: `chance_of(target, salt)`, 32 bits. It is the hash itself, as it is called for every link."""


def salt_of(source: bytes, fetch: int) -> int:
    """What the draws of one page have in common; `fetch` is the number of its visit."""
    return xxh3_64_intdigest(source, fetch) & 0xFFFF_FFFF


def share(rank: int, outlinks: int, domain_pages: int, weight: float = 1.0) -> Share:
    """What each link of a page gets; once a page.

    `domain_pages` counts the pages fetched of the page's registrable domain, this one included. `weight` is 1 at a
    page's first visit, and `weight_of` the gap at any other.
    """
    inside, inside_known, abroad, abroad_known = steps(rank, outlinks, domain_pages, weight)
    if weight >= 1.0:
        return Share(_tables(inside), _tables(abroad))
    return Share(_part(inside, inside_known), _part(abroad, abroad_known))


def steps(rank: int, outlinks: int, domain_pages: int, weight: float = 1.0) -> tuple[int, int, int, int]:
    """The same in steps of an eighth of a doubling: inside new and known, abroad new and known."""
    handed_on = _HANDED_ON * _CASH[rank]
    base, links = 1.0 / sqrt(domain_pages or 1), outlinks or 1
    inside = round(log2((handed_on + base) / links) * _STEPS_PER_DOUBLING) + _STEP_OF_ONE
    abroad = round(log2((handed_on + _ABROAD * base) / links) * _STEPS_PER_DOUBLING) + _STEP_OF_ONE
    less = 0 if weight >= 1.0 else round(log2(max(weight, 1e-9)) * _STEPS_PER_DOUBLING)
    return inside, inside + less, abroad, abroad + less


def first(part: Part, chance: int) -> int:
    """The rank of a URL that is met for the first time."""
    return (part.new + chance) >> _CHANCE_BITS


def raised(part: Part, rank: int, chance: int) -> int:
    """The rank of a known URL after one more link: mostly the same."""
    return (part.known[rank] + chance) >> _CHANCE_BITS


def weight_of(gap_s: float, longest_gap_s: float) -> float:
    """How much of a vote a repeated visit is: half a vote after the longest interval between visits, at most."""
    return min(max(gap_s, 0.0) / longest_gap_s, 1.0) / 2


def kept(rank: int, weight: float, chance: int) -> int:
    """The rank that a page has left after it was fetched again and has handed on the part `weight`."""
    return (_entry(_CASH[rank] * (1.0 - weight)) + chance) >> _CHANCE_BITS


def next_mean(mean: int, rank: int) -> int:
    """The mean rank of the crawl, in 65,536ths, after one more URL was met for the first time."""
    return mean + (((rank << _MEAN_BITS) - mean) >> _MEAN_WINDOW_BITS)


def authority(rank: int, mean: int, doublings: float) -> float:
    """0 to 1: how much of the points for authority a URL has, by its own rank and by who links to its domain.

    n domains that do are log2(1 + n) doublings (`referral.doublings`).
    """
    of_page = _OF_MEAN + ((rank << _MEAN_BITS) - mean) * _OF_UNIT
    if of_page < 0.0:
        of_page = 0.0
    elif of_page > _MOST_OF_PAGE:
        of_page = _MOST_OF_PAGE
    whole = of_page + _OF_REFERRERS * doublings
    if whole > 1.0:
        return 1.0
    return whole


def _entry(cash: float) -> int:
    """The rank whose cash is just below, and in the 32 lower bits the probability of the next one."""
    if cash <= _CASH[0]:
        return 0
    if cash >= _CASH[-1]:
        return (RANKS - 1) << _CHANCE_BITS
    low = int(log2(cash) * _PER_DOUBLING + _OF_ONE)
    if cash < _CASH[low]:  # the logarithm may have been rounded up
        low -= 1
    above = (cash - _CASH[low]) / (_CASH[low + 1] - _CASH[low])
    return (low << _CHANCE_BITS) + int(above * (1 << _CHANCE_BITS))


def _part(new: int, known: int) -> Part:
    """By the steps of what a new target gets and of what a known one gets."""
    return Part(_tables(new).new, _tables(known).known)


@cache  # at most 509 steps, 2.5 MB; those beyond the ends share the tables of the ends
def _tables(step: int) -> Part:
    """For a new target and for each rank of a known one the entry after the part was added."""
    if not 0 <= step <= _LAST_STEP:
        return _tables(min(max(step, 0), _LAST_STEP))
    cash = float(2.0 ** ((step / _FINE - _OF_ONE) / _PER_DOUBLING))
    return Part(_entry(cash), tuple(_entry(before + cash) for before in _CASH))
