"""Addresses, judged apart from the crawler's guard, and held against it."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch import AddressGuard
from nephila.model.terms import Terms
from nephila.node.audit.destinations import limit_of, refusal


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.64.0.1",
            "0.1.2.3",
            "224.0.0.1",
        ),
        *(
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "2606:2800::5efe:10.0.0.1",
            "2606:2800::200:5efe:127.0.0.1",
            "fe80::5efe:93.184.216.34",
            "ff02::1",
            "nonsense",
        ),
    ],
)
def test_what_is_not_public_is_refused_unless_it_was_opened(address: str) -> None:
    """K1, H6: private, loopback, link-local, metadata, and what carries them."""
    assert refusal(address, ())
    if address != "nonsense":
        inner = address.removeprefix("::ffff:")
        assert not refusal(address, (f"{inner}/{128 if ':' in inner else 32}",))


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "2002:5db8:d822::1", "2606:2800::5efe:93.184.216.34"],
)
def test_what_is_public_is_not(address: str) -> None:
    """K1, H6: also in another wrapping."""
    assert not refusal(address, ())


ADDRESSES = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda number: str(IPv4Address(number))),
    st.integers(0, 2**128 - 1).map(lambda number: str(IPv6Address(number))),
    st.integers(0, 2**32 - 1).map(lambda number: str(IPv6Address((0x0064FF9B << 96) + number))),
    st.integers(0, 2**32 - 1).map(lambda number: str(IPv6Address((0x2002 << 112) + (number << 80)))),
    st.integers(0, 2**32 - 1).map(lambda number: str(IPv6Address((0x2606 << 112) + (0x0200_5EFE << 32) + number))),
)


@settings(max_examples=800, deadline=None)
@given(ADDRESSES)
def test_whatever_the_guard_lets_through_is_not_blamed(address: str) -> None:
    """K1, H6: two judgements; the audit accuses of nothing that the crawler rightly takes for public."""
    if AddressGuard().refuses(address) is None:
        assert refusal(address, ()) == ""


def test_limits_are_counted_by_address_network_and_range() -> None:
    """K1, P2: IPv6 by its first 64 bits, IPv4 inside it by itself, the narrowest range wins."""
    terms = replace(Terms(), address_limits=("198.51.100.0/24=16/50", "198.51.100.7/32=2/0.5"))
    assert limit_of("2001:db8::1", terms).key == limit_of("2001:db8::2", terms).key
    assert limit_of("::ffff:192.0.2.1", terms).key == limit_of("192.0.2.1", terms).key
    assert (limit_of("192.0.2.1", terms).at_once, limit_of("192.0.2.1", terms).burst) == (4, 10)
    assert limit_of("198.51.100.1", terms).at_once == 16
    assert (limit_of("198.51.100.7", terms).burst, limit_of("198.51.100.7", terms).span_ms) == (1, 2000)
