"""Which addresses may be connected to (H6): the public internet, and what the user has opened, and nothing else.

A crawler follows links that strangers wrote. Without this file a page could make it read the cloud's metadata service,
a router's front page or the database next door. So every address is judged here: literals in URLs, each answer of a
name server, each redirect target when its turn comes. The very address that was judged is the one that is connected
to, so a name that changes its mind in between (DNS rebinding) gains nothing.

IPv4 is public unless listed; IPv6 is refused unless it lies in 2000::/3, the only part that IANA has given out as
global unicast. Addresses that carry another address inside them (mapped, NAT64, 6to4, Teredo, ISATAP) are judged by
what they carry. The allow-list opens exact ranges and is compared with the address itself; a mapped address *is* its
IPv4 address.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network

from nephila.model.errors import UsageError

_METADATA = ("169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::254/128")
"""AWS, GCE, Azure, OpenStack; Azure's wire server (a public address!); Alibaba; Oracle; AWS on IPv6."""

_REFUSED_4 = (
    *((cidr, "metadata service") for cidr in _METADATA if ":" not in cidr),
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "reserved"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
)
"""IANA IPv4 Special-Purpose Address Registry; the first match names the reason."""

_REFUSED_6 = (
    *((cidr, "metadata service") for cidr in _METADATA if ":" in cidr),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("64:ff9b:1::/48", "local NAT64"),
    ("100::/64", "discard-only"),
    ("2001:2::/48", "benchmarking"),
    ("2001:db8::/32", "documentation"),
    ("2001::/23", "reserved"),
    ("3fff::/20", "documentation"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
"""IANA IPv6 Special-Purpose Address Registry, Teredo and 6to4 apart: those are unwrapped."""

_GLOBAL_UNICAST_6 = "2000::/3"

_CACHE_SIZE = 16_384
"""Judgements remembered, about 1.5 MB; a full cache is simply forgotten, a judgement costs 1.4 us."""

_Range = tuple[int, int, str]


def is_address(text: str) -> bool:
    """Whether the text is an IPv4 or IPv6 address literal."""
    return _value_of(text) is not None


def _value_of(text: str) -> int | None:
    try:
        return int.from_bytes(socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text))
    except (OSError, ValueError):  # ValueError: a NUL or a character that is not ASCII
        return None


def _span(network: IPv4Network | IPv6Network, reason: str) -> _Range:
    return int(network.network_address), int(network.broadcast_address), reason


class AddressGuard:
    """Says of an address why it must not be connected to, or None when it may."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._refused_4 = [_span(IPv4Network(cidr), reason) for cidr, reason in _REFUSED_4]
        self._refused_6 = [_span(IPv6Network(cidr), reason) for cidr, reason in _REFUSED_6]
        self._global_6 = _span(IPv6Network(_GLOBAL_UNICAST_6), "")
        self._allowed_4: list[_Range] = []
        self._allowed_6: list[_Range] = []
        for cidr in allow:
            self._open(cidr)
        self._known: dict[str, str | None] = {}

    def _open(self, cidr: str) -> None:
        try:
            network = ip_network(cidr, strict=False)
        except ValueError as error:
            raise UsageError(
                f"{cidr!r} is no address range: {error}", "write ranges as 10.0.0.0/8 or fd00::/8"
            ) from error
        opened = self._allowed_4 if isinstance(network, IPv4Network) else self._allowed_6
        opened.append(_span(network, "allowed"))

    def refuses(self, address: str) -> str | None:
        """The reason why this address literal is refused, or None. Anything that is no address is refused."""
        try:
            return self._known[address]
        except KeyError:
            pass
        reason = self._judge(address)
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
        self._known[address] = reason
        return reason

    def _judge(self, address: str) -> str | None:
        value = _value_of(address)
        if value is None:
            return "not an address"
        return self._judge_6(value) if ":" in address else self._judge_4(value)

    def _judge_4(self, value: int) -> str | None:
        if _within(self._allowed_4, value):
            return None
        return _within(self._refused_4, value)

    def _judge_6(self, value: int) -> str | None:
        if _within(self._allowed_6, value):
            return None
        if value >> 32 == 0xFFFF:  # ::ffff:0:0/96, RFC 4291 2.5.5.2: the kernel connects to the IPv4 address
            return self._judge_4(value & 0xFFFF_FFFF)
        for form, carried in _carried_addresses(value):
            reason = _within(self._refused_4, carried)
            if reason:
                return f"{form} of {reason}"
        refused = _within(self._refused_6, value)
        if refused and not _is_teredo(value):
            return refused
        low, high, _ = self._global_6
        if low <= value <= high or value >> 32 == _NAT64:
            return None
        return "not global unicast"


_NAT64 = 0x0064_FF9B << 64
"""64:ff9b::/96 without its last 32 bits (RFC 6052 2.1)."""


def _is_teredo(value: int) -> bool:
    return value >> 96 == 0x2001_0000  # 2001::/32, RFC 4380 4


def _carried_addresses(value: int) -> list[tuple[str, int]]:
    """The IPv4 addresses inside an IPv6 one, each with the name of the wrapping."""
    if value >> 32 & 0xFDFF_FFFF == 0x5EFE:  # RFC 5214 6.1, in whatever network; a bit tells whether it is universal
        return [("ISATAP", value & 0xFFFF_FFFF), *_carried_by_network(value)]
    return _carried_by_network(value)


def _carried_by_network(value: int) -> list[tuple[str, int]]:
    if value >> 32 == _NAT64:
        return [("NAT64", value & 0xFFFF_FFFF)]
    if value >> 112 == 0x2002:  # RFC 3056 2
        return [("6to4", value >> 80 & 0xFFFF_FFFF)]
    if _is_teredo(value):  # the server in clear, the client with its bits flipped
        return [("Teredo", value >> 64 & 0xFFFF_FFFF), ("Teredo", value & 0xFFFF_FFFF ^ 0xFFFF_FFFF)]
    return []


def _within(ranges: Sequence[_Range], value: int) -> str | None:
    for low, high, reason in ranges:
        if low <= value <= high:
            return reason
    return None
