"""What these checks stand on: a crawl with settings of their own, and the verbs of whoever operates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nephila.interfaces.repute import Repute
from nephila.model.outcome import Done, Outcome
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import RecordRef
from nephila.model.settings import BudgetSettings, PolitenessSettings, PrioritySettings, RecrawlSettings, TrapSettings
from nephila.model.task import Lease, PageTask
from nephila.testing.contracts.frontier import SEGMENT, FrontierCase, Harness, addresses

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True)
class Options:
    """The settings that a check wants to be other than usual."""

    priority: PrioritySettings = PrioritySettings()
    budget: BudgetSettings = BudgetSettings()
    traps: TrapSettings = TrapSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    recrawl: RecrawlSettings | None = None
    """None: pages are fetched once a cycle."""
    target_domains: int = 0
    repute: Repute | None = None
    lease_span_s: float = 0.0
    """How long a lease may last through the delays of its host."""


class Operating(Protocol):
    """What whoever runs a crawl can do while it runs."""

    async def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold for a registrable domain; None takes it back. False where `was` holds no more."""

    async def block(self, block: Block) -> None:
        """Ask no more for a domain, a host or a part of it."""

    async def unblock(self, pattern: str) -> bool:
        """Take a block back."""

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a pattern start anew."""


class PolicyHarness(Harness, Protocol):
    """A harness that can be set up otherwise."""

    async def configure(self, options: Options) -> None:
        """Begin anew, empty, with these settings."""

    async def go_on(self, options: Options) -> None:
        """Close, and open the same crawl with these settings."""

    @property
    def operating(self) -> Operating:
        """The engine under test, for whoever operates it."""


class PolicyCase(FrontierCase):
    """A frontier that is set up for each check, and what they do with it."""

    harness: PolicyHarness

    def __init__(self, harness: PolicyHarness) -> None:
        super().__init__(harness)
        self.end_of_segment = 0

    @property
    def operating(self) -> Operating:
        """The engine under test, as it is open now."""
        return self.harness.operating

    def page(self, *, status: int = 200, changed: bool = True, duplicate: bool = False) -> Done:
        """An answer that lies behind the last one."""
        self.end_of_segment += 100
        ref = RecordRef(SEGMENT, self.end_of_segment - 100, 100, self.end_of_segment)
        page = status < 400
        return Done(ref, status, b"d" * 32 * page, changed=changed, page=page, duplicate=duplicate)

    async def serve(self, outcome: Outcome | None = None, hosts: int = 1000) -> list[str]:
        """Claim what can be claimed and end each first task the same way; which URLs."""
        leases = await self.claim_pages(hosts)
        for lease in leases:
            await self.end(lease, outcome or self.page())
        return self.urls(leases)

    def tick(self, seconds: float = 1.1) -> None:
        """Let hosts rest."""
        self.harness.clock.advance(seconds)

    def state(self, url: str) -> tuple[str, str]:
        """Where a URL stands, and why."""
        (address,) = addresses(url)
        story = self.harness.view.story(address.host, address.fingerprint)
        assert story is not None
        return story.state, story.reason


def depth_of(lease: Lease) -> int:
    """How far from a seed the only page of a lease is."""
    (task,) = lease.tasks
    assert isinstance(task, PageTask)
    return task.depth
