"""Which limit holds for which address (P2): the settings read, ranges compared, addresses brought to one spelling.

An IPv4 address is counted by itself. Of an IPv6 address the network counts, its first 64 bits: whoever has one address
there has all of them. An IPv4 address inside an IPv6 one (mapped, or behind the well-known NAT64 prefix) *is* that
IPv4 address; otherwise the whole IPv4 internet behind a NAT64 would share one turn.

A range gives each address in it another limit, not one limit to share. The most specific range wins; one narrower than
64 bits is counted by its own width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from nephila.model.errors import UsageError

_HINT = "write CIDR=CONCURRENCY/RATE, such as 198.51.100.0/24=16/50: requests at once, and requests a second"
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SITE_BITS = 64
_KNOWN_SIZE = 16_384
"""Addresses whose limit is remembered, about 3 MB; a full cache is simply forgotten."""


@dataclass(frozen=True, slots=True)
class AddressLimit:
    """What one address may be asked."""

    concurrency: int
    rate: float
    """Requests a second."""


@dataclass(frozen=True, slots=True)
class Counted:
    """An address as the ledger counts it."""

    key: str
    limit: AddressLimit


class AddressLimits:
    """The limit of every address."""

    def __init__(self, standard: AddressLimit, ranges: Sequence[str] = ()) -> None:
        """Raise `UsageError` for a range that cannot be read."""
        self._standard = standard
        read = [read_range(text) for text in ranges]
        self._ranges = sorted(read, key=lambda entry: entry[0].prefixlen, reverse=True)
        self._known: dict[str, Counted] = {}
        self._among = 1

    def share_among(self, workers: int) -> None:
        """From now on so many workers ask beside each other: each has its part of every limit, one at once at least."""
        self._among = max(1, workers)
        self._known.clear()

    def of(self, address: str) -> Counted:
        """How an address literal is counted; text that is no address is counted by itself."""
        counted = self._known.get(address)
        if counted is None:
            if len(self._known) >= _KNOWN_SIZE:
                self._known.clear()
            counted = self._known[address] = self._count(address)
        return counted

    def _count(self, address: str) -> Counted:
        counted, among = self._counted_whole(address), self._among
        limit = AddressLimit(max(1, counted.limit.concurrency // among), counted.limit.rate / among)
        return counted if among == 1 else Counted(counted.key, limit)

    def _counted_whole(self, address: str) -> Counted:
        try:
            found = _unwrapped(ip_address(address.partition("%")[0]))
        except ValueError:
            return Counted(address, self._standard)
        network, limit = next(
            ((network, limit) for network, limit in self._ranges if found in network), (None, self._standard)
        )
        if isinstance(found, IPv4Address):
            return Counted(str(found), limit)
        bits = max(_SITE_BITS, network.prefixlen if network is not None else 0)
        return Counted(str(IPv6Network((found, bits), strict=False)), limit)


def read_range(text: str) -> tuple[IPv4Network | IPv6Network, AddressLimit]:
    """One entry of politeness.address_limits. Raises `UsageError`."""
    cidr, equals, limit = text.partition("=")
    concurrency, slash, rate = limit.partition("/")
    if not equals or not slash:
        raise UsageError(f"politeness.address_limits: {text!r} is not CIDR=CONCURRENCY/RATE", _HINT)
    try:
        network = ip_network(cidr.strip(), strict=False)
    except ValueError as error:
        raise UsageError(
            f"politeness.address_limits: {cidr!r} of {text!r} is no address range: {error}", _HINT
        ) from error
    try:
        read = AddressLimit(int(concurrency), float(rate))
    except ValueError as error:
        raise UsageError(f"politeness.address_limits: {limit!r} of {text!r} is no limit: {error}", _HINT) from error
    if read.concurrency < 1 or not 0 < read.rate < math.inf:
        raise UsageError(f"politeness.address_limits: both numbers of {text!r} must be over 0", _HINT)
    return _unwrapped_network(network), read


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _unwrapped_network(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """A range of mapped addresses as the IPv4 range that it is: addresses are compared after unwrapping."""
    if isinstance(network, IPv6Network) and (network.subnet_of(_MAPPED) or network.subnet_of(_NAT64)):
        return IPv4Network((int(network.network_address) & 0xFFFF_FFFF, network.prefixlen - 96))
    return network
