"""The registrable domain of a host (S4): what one owner has, by the Public Suffix List.

The list has two sections: suffixes run by registries (``co.uk``) and suffixes whose owners give names below them to
strangers (``github.io``). Both count, as browsers count them when they decide which pages may share cookies: two sites
on ``github.io`` have two owners, two budgets and two paces. The list comes with the publicsuffixlist package and is as
new as that package.

What must stay true: every host has a registrable domain. An address literal, a single label and a host that is a public
suffix itself have no owner's part; they stand for themselves.
"""

from __future__ import annotations

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

_CACHE_SIZE = 65_536
"""Hosts remembered, about 10 MB: more than a worker holds in its working set."""


@cache
def _suffixes() -> PublicSuffixList:
    """The list, read once and never changed: a tenth of a second, so not at import."""
    return PublicSuffixList(accept_unknown=True, only_icann=False)


@lru_cache(maxsize=_CACHE_SIZE)
def registrable_domain(host: str) -> str:
    """The registrable domain of a host in lower case without trailing dot, ASCII or not; the host itself if none."""
    if host[-1:].isdigit() or ":" in host:
        # No top-level domain ends in a digit: the WHATWG parser makes every such host an IPv4 address, or refuses it.
        return host
    return _suffixes().privatesuffix(host) or host
