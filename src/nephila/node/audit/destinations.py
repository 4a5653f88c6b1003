"""Where requests went: whether an address is public, and how one is counted (H6, P2), judged apart from the crawler.

By the registries as Python's `ipaddress` knows them, and by what an address carries inside it. Stricter than a list of
private ranges: what is not global unicast is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from nephila.model.terms import Terms

_METADATA = frozenset(map(ip_address, ("168.63.129.16", "100.100.100.200", "192.0.0.192", "169.254.169.254")))
_NAT64 = IPv6Network("64:ff9b::/96")
_SITE_BITS = 64


@lru_cache(maxsize=16_384)
def refusal(address: str, allowed: tuple[str, ...]) -> str:
    """Why an address may not be asked under these openings; empty where it may."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return "no address"
    if any(_within(found, text) for text in allowed):
        return ""
    carried = _carried(found)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return refusal(str(found.ipv4_mapped), allowed)
    for inner in (*carried, *_isatap(found)):
        if reason := _not_public(inner):
            return f"carries {inner}, which is {reason}"
    return "" if carried else _not_public(found)


def _within(found: IPv4Address | IPv6Address, text: str) -> bool:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return False
    return found.version == network.version and found in network


def _not_public(found: IPv4Address | IPv6Address) -> str:
    kinds = (
        (found in _METADATA, "a metadata service"),
        (found.is_loopback, "loopback"),
        (found.is_link_local, "link-local"),
        (found.is_multicast, "multicast"),
        (found.is_unspecified, "unspecified"),
        (not found.is_global, "not public"),
        (isinstance(found, IPv6Address) and int(found) >> 125 != 1, "not global unicast"),
    )
    return next((name for holds, name in kinds if holds), "")


def _carried(found: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses inside an IPv6 one."""
    if not isinstance(found, IPv6Address):
        return []
    if found in _NAT64:
        return [IPv4Address(int(found) & 0xFFFF_FFFF)]
    if found.sixtofour is not None:
        return [found.sixtofour]
    return list(found.teredo or ())


def _isatap(found: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 address at the end of an interface's name, in a network that is judged for itself (RFC 5214)."""
    if not isinstance(found, IPv6Address) or found.packed[8:12] not in {b"\0\0\x5e\xfe", b"\2\0\x5e\xfe"}:
        return []
    return [IPv4Address(found.packed[12:])]


@dataclass(frozen=True, slots=True)
class Limit:
    """What one address may be asked, and under which name it is counted."""

    key: str
    at_once: int
    burst: int
    """So many requests ..."""
    span_ms: int
    """... in so many milliseconds."""


@lru_cache(maxsize=16_384)
def limit_of(address: str, terms: Terms) -> Limit:
    """The limit of an address under these terms. IPv6 is counted by its network, IPv4 inside it by itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return _limit(address, terms.address_concurrency, terms.address_rate)
    if isinstance(found, IPv6Address) and (found.ipv4_mapped is not None or found in _NAT64):
        found = IPv4Address(int(found) & 0xFFFF_FFFF)
    at_once, rate, bits = terms.address_concurrency, terms.address_rate, -1
    for text in terms.address_limits:
        cidr, _, numbers = text.partition("=")
        network = ip_network(cidr.strip(), strict=False)
        if network.version == found.version and found in network and network.prefixlen > bits:
            first, _, second = numbers.partition("/")
            at_once, rate, bits = int(first), float(second), network.prefixlen
    if isinstance(found, IPv4Address):
        return _limit(str(IPv4Network(found)), at_once, rate)
    return _limit(str(IPv6Network((found, max(_SITE_BITS, bits)), strict=False)), at_once, rate)


def _limit(key: str, at_once: int, rate: float) -> Limit:
    burst = max(1, math.ceil(rate))
    return Limit(key, at_once, burst, round(burst / rate * 1000))
