"""How long an answer holds."""

from __future__ import annotations

import pytest

from nephila.fetch.dns_cache import DnsCache
from nephila.fetch.dns_system import SystemNames, read_name_server
from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.errors import UsageError
from nephila.model.exchange import FailureKind
from nephila.model.settings import DnsSettings

GOOD = ("1.2.3.4",)
FAILED = Unresolved(FailureKind.DNS, "no answer")


def holds_until_ms(ttl_s: float) -> int:
    cache = DnsCache(DnsSettings())
    answer = Resolved(GOOD, ttl_s)
    cache.store("a.example", answer, 1000)
    end = 1000
    while cache.find("a.example", end) == answer:
        end += 1000
    return end - 1000


@pytest.mark.parametrize(("ttl_s", "held_ms"), [(0, 5000), (1, 5000), (60, 60_000), (86_400, 3_600_000)])
def test_an_answer_holds_for_its_ttl_within_bounds(ttl_s: float, held_ms: int) -> None:
    """H4: at least five seconds, at most an hour."""
    assert holds_until_ms(ttl_s) == held_ms


def test_a_failure_is_remembered_for_a_while() -> None:
    """H4: negative cache."""
    cache = DnsCache(DnsSettings(negative_ttl_s=60))
    cache.store("a.example", FAILED, 0)
    assert cache.find("a.example", 59_999) == FAILED
    assert cache.find("a.example", 60_000) is None


def test_the_last_good_answer_outlives_its_time_and_later_failures() -> None:
    """H4: last-known address when all fail."""
    cache = DnsCache(DnsSettings())
    cache.store("a.example", Resolved(GOOD, 10), 0)
    cache.store("a.example", FAILED, 20_000)
    cache.store("a.example", Resolved(GOOD, 0, stale=True), 90_000)
    assert cache.last_good("a.example", 100_000) == Resolved(GOOD, 10)


def test_the_last_good_answer_is_used_for_a_day() -> None:
    """H4: counted from when it came; failures and stale answers in between do not make it younger."""
    cache = DnsCache(DnsSettings())
    cache.store("a.example", Resolved(GOOD, 10), 1_000)
    cache.store("a.example", Resolved(GOOD, 0, stale=True), 80_000_000)
    assert cache.last_good("a.example", 1_000 + 86_400_000) is not None
    assert cache.last_good("a.example", 1_001 + 86_400_000) is None


def test_a_name_that_is_gone_has_no_last_address() -> None:
    """H4: who says that there is no such name is believed, also on the day after."""
    cache = DnsCache(DnsSettings())
    cache.store("a.example", Resolved(GOOD, 10), 0)
    cache.store("a.example", Unresolved(FailureKind.NO_SUCH_NAME, "gone"), 20_000)
    assert cache.last_good("a.example", 20_000) is None


@pytest.mark.parametrize(("ttl_s", "held_ms"), [(0, 60_000), (1, 5_000), (900, 900_000), (86_400, 3_600_000)])
def test_that_there_is_no_such_name_holds_as_long_as_its_zone_says(ttl_s: float, held_ms: int) -> None:
    """H4: within the bounds of all answers; where the zone does not say, as long as a failure."""
    cache = DnsCache(DnsSettings())
    gone = Unresolved(FailureKind.NO_SUCH_NAME, "gone", ttl_s)
    cache.store("a.example", gone, 0)
    assert cache.find("a.example", held_ms - 1) == gone
    assert cache.find("a.example", held_ms) is None


def test_the_cache_is_bounded() -> None:
    """H4, Q5: the name stored longest ago makes room."""
    cache = DnsCache(DnsSettings(cache_size=3))
    for number in range(5):
        cache.store(f"h{number}.example", Resolved(GOOD, 60), 0)
    cache.store("h2.example", Resolved(GOOD, 60), 0)
    cache.store("h5.example", Resolved(GOOD, 60), 0)
    assert len(cache) == 3
    assert [bool(cache.find(f"h{number}.example", 0)) for number in range(6)] == [0, 0, 1, 0, 1, 1]


def test_localhost_is_the_machines_own_wherever_its_files_say_nothing() -> None:
    """H4: RFC 6761; and the hosts file wins."""
    names = SystemNames(hosts={"box.lan": ("10.0.0.1",)})
    assert names.find("localhost") == ("127.0.0.1", "::1")
    assert names.find("x.localhost") == ("127.0.0.1", "::1")
    assert names.find("box.lan") == ("10.0.0.1",)
    assert names.find("a.example") == ()


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("9.9.9.9", ("9.9.9.9", 53)),
        ("127.0.0.1:5353", ("127.0.0.1", 5353)),
        ("2620:fe::fe", ("2620:fe::fe", 53)),
        ("[2620:fe::fe]:5353", ("2620:fe::fe", 5353)),
        ("[::1]", ("::1", 53)),
    ],
)
def test_a_name_server_is_an_address_with_or_without_port(text: str, server: tuple[str, int]) -> None:
    """H4: several resolvers, as the user writes them."""
    assert read_name_server(text) == server


@pytest.mark.parametrize("text", ["", "dns.example", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:x", "[::1]:x"])
def test_a_name_server_that_is_none_is_the_users_mistake(text: str) -> None:
    """H4: a resolver by name would need a resolver."""
    with pytest.raises(UsageError):
        read_name_server(text)
