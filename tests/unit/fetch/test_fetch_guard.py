"""Which addresses may be connected to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.guard import AddressGuard
from nephila.model.errors import UsageError

REFUSED = {
    "0.0.0.0": "unspecified",  # noqa: S104 - not bound to
    "10.1.2.3": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.100.100.200": "metadata service",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "metadata service",
    "169.254.1.1": "link-local",
    "169.254.169.254": "metadata service",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "reserved",
    "192.0.2.1": "documentation",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "198.51.100.7": "documentation",
    "203.0.113.9": "documentation",
    "224.0.0.1": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::127.0.0.1": "not global unicast",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:169.254.169.254": "metadata service",
    "64:ff9b::10.0.0.1": "NAT64 of private",
    "64:ff9b::a9fe:a9fe": "NAT64 of metadata service",
    "64:ff9b:1::1": "local NAT64",
    "100::1": "discard-only",
    "2001:0:4136:e378:8000:63bf:80ff:fffe": "Teredo of loopback",
    "2001:0:7f00:1:8000:63bf:f7f7:f7f7": "Teredo of loopback",
    "2001:db8::1": "documentation",
    "2001:10::1": "reserved",
    "2002:7f00:1::1": "6to4 of loopback",
    "2002:c0a8:101::": "6to4 of private",
    "2a00:1450::5efe:10.0.0.1": "ISATAP of private",
    "2a00:1450:1:2:200:5efe:169.254.169.254": "ISATAP of metadata service",
    "2002:101:101::5efe:127.0.0.1": "ISATAP of loopback",
    "fe80::5efe:1.1.1.1": "link-local",
    "fd00::200:5efe:1.1.1.1": "private",
    "3fff::1": "documentation",
    "5f00::1": "not global unicast",
    "fc00::1": "private",
    "fd00:ec2::254": "metadata service",
    "fe80::1": "link-local",
    "fe80::1%eth0": "not an address",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "example.com": "not an address",
    "127.1": "not an address",
    "0x7f000001": "not an address",
    "": "not an address",
    "1.2.3.4\0": "not an address",
}


@pytest.mark.parametrize(("address", "reason"), REFUSED.items())
def test_an_address_outside_the_public_internet_is_refused_with_its_reason(address: str, reason: str) -> None:
    """H6: private, loopback, metadata and the like, mapped and tunnelled forms unwrapped."""
    guard = AddressGuard()
    assert guard.refuses(address) == reason
    assert guard.refuses(address) == reason, "the cached judgement is the same"


PUBLIC = (
    "1.1.1.1",
    "93.184.216.34",
    "172.32.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "2606:4700::1111",
    "2a00:1450::1",
    "::ffff:1.1.1.1",
    "64:ff9b::1.1.1.1",
    "2002:101:101::1",
    "2a00:1450::5efe:1.1.1.1",
    "2a00:1450::200:5efe:1.1.1.1",
    "2a00:1450::100:5efe:10.0.0.1",
    "2a00:1450::1:5efe:10.0.0.1",
    "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_let_through(address: str) -> None:
    """H6: the public internet stays open, tunnelled forms of it too."""
    assert AddressGuard().refuses(address) is None


def test_the_allow_list_opens_exactly_its_ranges() -> None:
    """H6: what was not opened stays refused, next door included."""
    guard = AddressGuard(["127.0.0.2/31", "fd12::/16"])
    assert guard.refuses("127.0.0.2") is None
    assert guard.refuses("::ffff:127.0.0.3") is None
    assert guard.refuses("127.0.0.1") == "loopback"
    assert guard.refuses("127.0.0.4") == "loopback"
    assert guard.refuses("fd12::1") is None
    assert guard.refuses("fd13::1") == "private"
    assert guard.refuses("64:ff9b::127.0.0.2") == "NAT64 of loopback", "another way to it was not opened"


def test_a_range_that_makes_no_sense_is_the_users_mistake() -> None:
    """H6: a typing error must not open or close anything silently."""
    with pytest.raises(UsageError, match="no address range"):
        AddressGuard(["10.0.0/8"])


@settings(max_examples=200, deadline=None)
@given(st.ip_addresses(v=4))
def test_every_ipv4_address_that_the_library_calls_private_is_refused(address: ipaddress.IPv4Address) -> None:
    """H6: nothing that the standard library knows as not global gets through; mapped it is judged the same."""
    guard = AddressGuard()
    if not address.is_global or address.is_multicast:
        assert guard.refuses(str(address))
    assert guard.refuses(f"::ffff:{address}") == guard.refuses(str(address))


@settings(max_examples=200, deadline=None)
@given(st.ip_addresses(v=6))
def test_no_ipv6_address_outside_global_unicast_gets_through(address: ipaddress.IPv6Address) -> None:
    """H6: the default for IPv6 is no."""
    if not address.is_global and address.ipv4_mapped is None and address.teredo is None and address.sixtofour is None:
        assert AddressGuard().refuses(str(address))
