"""What the verbs of a frontier need to know of the crawl, whichever engine keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephila.interfaces.recrawl import RecrawlPolicy
from nephila.interfaces.repute import Repute
from nephila.model.settings import (
    BudgetSettings,
    FrontierSettings,
    PolitenessSettings,
    PrioritySettings,
    TrapSettings,
)

if TYPE_CHECKING:
    from .embedded.sharing import Sharing


@dataclass(frozen=True, slots=True)
class Policy:
    """What the verbs need to know of the crawl."""

    settings: FrontierSettings
    base_delay_ms: int
    """Of a host that was never asked."""
    max_pages_per_host: int = 0
    robots: bool = True
    """Whether pages wait for the rules of their origin."""
    random_seed: int = 0
    verify_every: int = 0
    """One page in so many is asked for in full although there are validators; 0 means none is."""
    ordered: bool = False
    """One exchange at a time: hosts are chosen by the comparator alone, and waited for, so that timing cannot change
    the order (F6)."""
    ordered_wait_ms: int = 120_000
    """In that mode a host that must rest longer than this is left for later."""
    priority: PrioritySettings = PrioritySettings()
    budget: BudgetSettings = BudgetSettings()
    traps: TrapSettings = TrapSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    recrawl: RecrawlPolicy | None = None
    """Plans the next visits; None when pages are fetched once a cycle and no more."""
    repute: Repute | None = None
    """Grades of domains by the whole link graph (R3); None where only what was counted online is known."""
    target_domains: int = 0
    """Until so many registrable domains were fetched, only links that add one are queued (S4)."""
    lease_span_ms: int = 0
    """How long a lease may last through the delays of its host (`span`); 0: a host with a delay is leased for one URL.
    """
    sharing: Sharing | None = None
    """This process's part of the work, where several share the frontier."""
