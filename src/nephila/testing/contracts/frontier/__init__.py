"""What every frontier promises (`interfaces.frontier`), as checks that any engine can be held against.

A check is an async method of `FrontierContract`; `nephila.testing.contracts.frontier.checks()` names them all. The
harness gives it a fresh frontier under a virtual clock and opens it again on request, as after a crash: what was
answered must still be true then. `frontier_policy` is the other half.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .case import DELAY_MS, LEASE_S, SEGMENT, FrontierCase, Harness, addresses, candidates, done, release
from .claiming import ClaimingChecks
from .rules import RulesChecks
from .settling import SettlingChecks

__all__ = [
    "DELAY_MS",
    "LEASE_S",
    "SEGMENT",
    "Check",
    "FrontierCase",
    "FrontierContract",
    "Harness",
    "addresses",
    "candidates",
    "checks",
    "done",
    "named",
    "release",
]


class FrontierContract(ClaimingChecks, SettlingChecks, RulesChecks):
    """The promises."""


Check = Callable[[FrontierContract], Awaitable[None]]


def checks() -> list[str]:
    """The names of all checks."""
    return named(FrontierContract)


def named(contract: type[FrontierCase]) -> list[str]:
    """The names of the checks that a contract is made of, part by part."""
    return [name for part in contract.__bases__ for name in vars(part) if name.startswith("check_")]
