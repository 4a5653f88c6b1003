"""How much of a host, and of a domain, is taken on (F5, T1): little of an unknown one, more of one that has earned it.

A host begins with a small allowance of URLs. It grows with each page that brought new content, and with each other
registrable domain that links to it: the first is proof of worth, the second is other people's word, which a site cannot
give itself for nothing. A domain's allowance of hosts grows in the same way, because wildcard DNS mints hosts for ever.
What downstream thinks of a domain, its quality, is a factor: a bad opinion shrinks all of the allowance; a good one
multiplies what its pages earned, and nothing that was given in advance or on the word of others.

How many domains link to a host is counted in 64 bits, since there is one such counter for every host: each domain sets
the bit that its hash chooses, and the number of bits still unset tells how many different ones there were (linear
counting). Small counts are close to exact; at a hundred domains the estimate is off by a tenth on average. When all
bits are set it stands still at about 311: nobody earns without end by registering domains.

A URL that only led to another one gives its place back when that one is new, which takes a place of its own: of a site
that has moved, a long list of old URLs would otherwise use up all that its pages may have.

What must stay true: counting a domain again changes nothing, so that a page settled twice does no harm; an allowance
never shrinks by what was earned, and is never below 1, or a host could not prove anything.
"""

from __future__ import annotations

from math import log

from nephila.model.outcome import Done, Outcome
from nephila.model.settings import BudgetSettings

BITS = 64

_WORD = (1 << BITS) - 1
_LAST = 0.5
"""Taken for the number of unset bits when there is none: the estimate would be infinite."""
ESTIMATES = tuple(BITS * log(BITS / max(BITS - count, _LAST)) for count in range(BITS + 1))
"""How many domains were marked, about, by the number of bits that are set."""


def mark_referrer(bitmap: int, domain_hash: int) -> int:
    """The bitmap after a link from the registrable domain with that hash, whose lowest bits must be well mixed."""
    return bitmap | 1 << domain_hash % BITS


def referrers(bitmap: int) -> float:
    """How many different registrable domains were marked, about."""
    return ESTIMATES[(bitmap & _WORD).bit_count()]


def url_allowance(settings: BudgetSettings, fresh_pages: int, bitmap: int, quality: float) -> int:
    """How many URLs of a host may have been queued in all, after so many pages with new content."""
    given = settings.first_urls + referrers(bitmap) * settings.urls_per_referrer
    return _allowance(given, fresh_pages * settings.urls_per_page, quality)


def host_allowance(settings: BudgetSettings, useful_hosts: int, bitmap: int, quality: float) -> int:
    """How many hosts of a registrable domain are taken on, when so many of them brought new content."""
    given = settings.first_hosts + referrers(bitmap) * settings.hosts_per_referrer
    return _allowance(given, useful_hosts * settings.hosts_per_useful_host, quality)


def gives_back(outcome: Outcome, brought: int) -> bool:
    """Whether a URL that has ended so, and brought so many new ones, gives its place back to its host."""
    return isinstance(outcome, Done) and not outcome.page and 300 <= outcome.status < 400 and brought > 0


def _allowance(given: float, earned: int, quality: float) -> int:
    factor = max(0.0, quality)
    return max(1, int(min(factor, 1.0) * given + factor * earned))
