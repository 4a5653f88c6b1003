"""What every frontier promises of shares, budgets, policies, re-crawls and traps: the second half of its suite.

The checks need a crawl with settings of their own (`Options`) and the verbs of whoever operates it (`Operating`), so
the harness offers both; it begins empty with every `configure`.
"""

from __future__ import annotations

from nephila.testing.contracts.frontier import named

from .case import DAY_S, HOUR_S, Operating, Options, PolicyHarness
from .operating import OperatingChecks
from .ranked import RankedChecks
from .returning import ReturningChecks
from .sharing import SharingChecks
from .taking_down import TakingDownChecks
from .together import TogetherChecks

__all__ = ["DAY_S", "HOUR_S", "Operating", "Options", "PolicyContract", "PolicyHarness", "checks"]


class PolicyContract(SharingChecks, OperatingChecks, ReturningChecks, TakingDownChecks, RankedChecks, TogetherChecks):
    """The promises."""


def checks() -> list[str]:
    """The names of all checks."""
    return named(PolicyContract)
