"""The registrable domain of a host (S4): what one owner has, by the Public Suffix List.

The list has two sections: suffixes run by registries (``co.uk``) and suffixes whose owners give names below them to
strangers (``github.io``). Both count, as browsers count them when they decide which pages may share cookies: two sites
on ``github.io`` have two owners, two budgets and two paces. The list comes with the publicsuffixlist package and is as
new as that package.

Nearly every host is decided by its last two labels alone: ``example.com`` is registrable because no rule of the list
says anything of it or of what lies below it. Only where a rule does (``co.uk``, ``github.io``) the library is asked,
which takes eight times as long (5 us against 0.6), and a page links to hosts that were never met before.

What must stay true: every host has a registrable domain. An address literal, a single label and a host that is a public
suffix itself have no owner's part; they stand for themselves.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

_CACHE_SIZE = 16_384
"""Hosts remembered, about 3.5 MB: more than a worker holds in its working set. One that is not takes 2.4 us."""


@cache
def _suffixes() -> PublicSuffixList:
    """The list, read once and never changed: a tenth of a second, so not at import."""
    return PublicSuffixList(accept_unknown=True, only_icann=False)


@cache
def _ruled() -> frozenset[str]:
    """Names of two labels that some rule is about, and top-level domains below which a rule holds for all names."""
    ruled: set[str] = set()
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        for line in lines:
            rule = line.split(maxsplit=1)[0] if line.strip() else ""
            if not rule or rule.startswith("//"):
                continue
            name = rule.lstrip("!").removeprefix("*.")
            for spelling in (name,) if name.isascii() else (name, _in_ascii(name)):
                ruled.update(_endings(spelling))
                if rule.startswith("*.") and "." not in spelling:
                    ruled.add(spelling)
    return frozenset(ruled)


def _in_ascii(name: str) -> str:
    """The ASCII spelling of a name in normal form, as the list has them: nothing is left to prepare."""
    labels = name.split(".")
    return ".".join(one if one.isascii() else f"xn--{one.encode('punycode').decode('ascii')}" for one in labels)


def _endings(name: str) -> tuple[str, ...]:
    """The last two labels of a rule's name, if it has as many."""
    labels = name.rsplit(".", 2)
    return (".".join(labels[-2:]),) if len(labels) > 1 else ()


@lru_cache(maxsize=_CACHE_SIZE)
def registrable_domain(host: str) -> str:
    """The registrable domain of a host in lower case without trailing dot, ASCII or not; the host itself if none."""
    if host[-1:].isdigit() or ":" in host:
        # No top-level domain ends in a digit: the WHATWG parser makes every such host an IPv4 address, or refuses it.
        return host
    at = host.rfind(".")
    if at > 0 and ".." not in host and host[0] != ".":
        ending = host[host.rfind(".", 0, at) + 1 :]
        if ending not in _ruled() and host[at + 1 :] not in _ruled():
            return ending
    return _suffixes().privatesuffix(host) or host
