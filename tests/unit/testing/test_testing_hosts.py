from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.testing.web import Door, HostMix, SimulatedWeb, WebSpec
from nephila.testing.web.hosts import HostBook

SPECS = st.builds(
    lambda seed, hosts, extra, skew: WebSpec(seed, hosts, hosts + extra, host_mix=HostMix(skew=skew, stalling=0.03)),
    st.integers(0, 10**6),
    st.integers(1, 80),
    st.integers(0, 500),
    st.floats(0, 1),
)


@given(SPECS)
@settings(max_examples=60, deadline=None)
def test_hosts_are_what_they_must_be(spec: WebSpec) -> None:
    book = HostBook(spec)
    hosts = list(book)
    assert sum(host.pages for host in hosts) == spec.pages
    assert all(host.pages >= 1 and 1 <= host.articles <= host.pages for host in hosts)
    assert len({host.name for host in hosts}) == len(hosts)
    assert all(host.name == host.domain or host.name.endswith("." + host.domain) for host in hosts)
    assert all(book.find(host.name) is host for host in hosts)
    assert hosts[0].open
    closed = [host.address for host in hosts if host.door in (Door.REFUSING, Door.STALLING)]
    assert len(set(closed)) == len(closed)
    assert not set(closed) & {host.address for host in hosts if host.door is Door.OPEN}
    assert all(IPv4Address(host.address) in IPv4Network("127.0.0.0/8") for host in hosts if host.address)


@given(SPECS)
@settings(max_examples=40, deadline=None)
def test_every_host_is_introduced_by_an_open_one(spec: WebSpec) -> None:
    book = HostBook(spec)
    introduced = {0}
    queue = [book[0]]
    while queue:
        for guest in book.guests(queue.pop()):
            introduced.add(guest.number)
            if guest.open:
                queue.append(guest)
    assert introduced == set(range(spec.hosts))


def test_names_are_read_in_any_case_and_strangers_are_not_known() -> None:
    book = HostBook(WebSpec.standard(1))
    assert book.find("SITE0.Test") is book[0]
    assert book.find("site0.test.") is book[0]
    for stranger in ("site50.test", "site999999.test", "www.example.test", "shop.site0.test", "s99.site0.test", ""):
        assert book.find(stranger) is None


def test_hosts_share_addresses_and_domains() -> None:
    hosts = list(HostBook(WebSpec.standard(1)))
    assert len({host.address for host in hosts}) < len(hosts)
    assert any(host.name.startswith("www.") for host in hosts)
    assert len({host.domain for host in hosts}) < len(hosts)


def test_addresses_can_be_limited() -> None:
    book = HostBook(WebSpec(1, hosts=500, pages=500, host_mix=HostMix(max_addresses=16, refusing=0)))
    assert len({host.address for host in book if host.address}) <= 16


def test_a_huge_web_costs_nothing_until_it_is_asked() -> None:
    web = SimulatedWeb(WebSpec(1, hosts=5000, pages=50_000_000))
    host = web.hosts[4999]
    answer = web.answer(host.name, "/", {}, 0)
    assert answer.status == 200
    assert len(web.hosts._made) < 200


@pytest.mark.parametrize(
    "arguments",
    [{"hosts": 0}, {"hosts": 10, "pages": 9}, {"host_mix": HostMix(robots=())}],
)
def test_an_impossible_web_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"a web needs|name at least"):
        WebSpec(1, **arguments)
