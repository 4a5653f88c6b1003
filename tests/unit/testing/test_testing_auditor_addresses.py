"""The auditor's eye on addresses that many hosts share, and on hosts to which another name is said."""

from __future__ import annotations

import pytest

from nephila.testing.web import Auditor, ViolationKind
from nephila.testing.web.auditor import Arrival

HONEST = {"user-agent": "Nephila/0.1 (+https://nephila.invalid/bot)"}
OTHER = {"user-agent": "Other/1 (+https://nephila.invalid/other)"}


class Rules:
    """Nothing is required; only Nephila may not ask for /private/."""

    def required_delay_ms(self, host: str) -> float:
        return 0

    def allowed(self, host_name: str, target: str, agent: str) -> bool:
        return agent != "Nephila" or not target.startswith("/private/")

    def canonical_target(self, host: str, target: str) -> str:
        return target

    def robots_source(self, host: str) -> str:
        return host

    def robots_borrowers(self, host: str) -> int:
        return 0

    def is_part(self, host: str, target: str) -> bool:
        return False


def ask_all(auditor: Auditor, gap_ms: float, count: int, addresses: int = 1) -> dict[ViolationKind, int]:
    """So many hosts are asked for their robots.txt one after the other, each for a moment."""
    for number in range(count):
        address, at_ms = f"127.1.1.{number % addresses}", number * gap_ms
        ticket = auditor.arrived(Arrival(f"h{number}.test", address, "/robots.txt", at_ms, number, HONEST))
        auditor.answered(ticket, at_ms + 1, 200)
    return auditor.report().by_kind


@pytest.mark.parametrize(("gap_ms", "blamed"), [(100.0, 0), (98.6, 0), (98.4, 20), (50.0, 20)])
def test_more_than_ten_within_a_second_at_one_address_are_a_crowd(gap_ms: float, blamed: int) -> None:
    """P2, P5: any second, with what the way may take of it; each one too many is counted."""
    found = ask_all(Auditor(Rules(), address_rate=10), gap_ms, 30)
    assert found.get(ViolationKind.CROWD, 0) == blamed


def test_addresses_are_counted_apart_and_only_where_a_rate_is_given() -> None:
    """P2, P5: fifteen a second on each of two addresses, or without a limit."""
    assert ask_all(Auditor(Rules(), address_rate=15), 1000 / 30, 90, addresses=2) == {}
    assert ask_all(Auditor(Rules()), 1, 90) == {}


def test_a_host_with_a_policy_hears_its_own_agent() -> None:
    """R4, P5, P6: nobody else does, and its rules are those for that name."""
    auditor = Auditor(Rules(), base_delay_ms=0, agents={"b.test": "Other"})
    for at_ms, (host, target, headers) in enumerate(
        [
            ("b.test", "/robots.txt", OTHER),
            ("b.test", "/private/1", OTHER),
            ("b.test", "/2", HONEST),
            ("c.test", "/robots.txt", OTHER),
        ]
    ):
        auditor.answered(auditor.arrived(Arrival(host, "127.1.1.1", target, at_ms, 1, headers)), at_ms + 0.5, 200)
    blamed = [(found.kind, found.host, found.target) for found in auditor.report().violations]
    assert blamed == [(ViolationKind.AGENT, "b.test", "/2"), (ViolationKind.AGENT, "c.test", "/robots.txt")]
