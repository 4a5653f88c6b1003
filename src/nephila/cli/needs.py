"""What the commands need of a crawler: what the backend hands them, and what tests may put in its place."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # start-up: `nephila --help` needs none of them
    from nephila.config import Configured
    from nephila.interfaces.catalogue import PageRow
    from nephila.interfaces.events import EventSink
    from nephila.interfaces.frontier import Trap, UrlStory
    from nephila.model.alias import AliasRule
    from nephila.model.policy import Block, DomainPolicy
    from nephila.model.summary import CrawlSnapshot, CrawlSummary
    from nephila.node.importance.renewing import Importance
    from nephila.node.retention import Retained
    from nephila.node.standing import CrawlStatus
    from nephila.node.takedown import Order, Takedown
    from nephila.node.takedown.ordering import Foreseen
    from nephila.seeds import SeedReport, SeedSource
    from nephila.testing.sim.campaign import Campaign
    from nephila.testing.sim.runner import Verdict


class RunningCrawl(Protocol):
    """What the display may see of a crawl while it runs."""

    @property
    def seed_report(self) -> SeedReport | None:
        """What became of the seeds; None until they are all read."""

    def snapshot(self) -> CrawlSnapshot:
        """The figures of this moment."""


View = Callable[[RunningCrawl], Coroutine[Any, Any, None]]
"""Runs beside a crawl and is cancelled when that ends."""


Serve = Callable[[Any, Any], Coroutine[Any, Any, None]]
"""Serves a crawl and what watches it, beside it, and is cancelled when that ends (`control.server`)."""


class RunCrawl(Protocol):
    """Crawls, and returns when the crawl has ended."""

    def __call__(
        self,
        out: Path,
        configured: Configured,
        seeds: Sequence[SeedSource],
        *,
        new_cycle: bool = False,
        listeners: Sequence[EventSink] = (),
        view: View | None = None,
        serve: Serve | None = None,
        named: Mapping[str, object] | None = None,
    ) -> CrawlSummary:
        """Signals included: the first stops cleanly, the second at once.

        `named` is what the log of changes says of the seeds, where they are given to a crawl that goes on.
        """


class WhyAnswer(Protocol):
    """The story of a URL."""

    @property
    def lines(self) -> Sequence[tuple[str, str]]:
        """Label and text, in the order to read them."""

    @property
    def found(self) -> bool:
        """Whether the crawl has ever met the URL."""

    @property
    def data(self) -> Mapping[str, object]:
        """The same for scripts."""


class Insight(Protocol):
    """A crawl, in a directory or on the engines of a fleet, read beside those who may be working on it."""

    def status(self) -> CrawlStatus:
        """Where the crawl stands: a frozen record."""

    def why(self, url: str) -> WhyAnswer:
        """The story of one URL."""

    def dead(self, limit: int) -> Sequence[UrlStory]:
        """Dead letters."""

    def revive(self, urls: Sequence[str] | None) -> int:
        """Put dead letters back, all of them for None; how many."""

    def pages(self, host: str, status: int | None, like: str, limit: int) -> Iterator[PageRow]:
        """Stored pages, newest first."""


class Operator(Protocol):
    """What a person may decide about a crawl, also while it runs."""

    def domain_of(self, text: str) -> tuple[str, str]:
        """The registrable domain that a text stands for, and the host that it names."""

    def policies(self) -> dict[str, DomainPolicy]:
        """All policies by domain."""

    def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold, or none any more; False where `was` holds no more."""

    def blocks(self) -> Sequence[Block]:
        """What may not be asked for."""

    def block(self, pattern: str, reason: str) -> Block:
        """Ask no more for what a pattern names."""

    def unblock(self, pattern: str) -> bool:
        """Take a block back; False when there was none."""

    def traps(self, limit: int, host: str) -> tuple[Sequence[Trap], int]:
        """Patterns that hold URLs back, and how many there are in all."""

    def release_trap(self, host: str, pattern: str) -> tuple[int, int]:
        """Let one start anew: how many URLs lay on its shelf, and how many came back at once."""

    def aliases(self, domain: str) -> Sequence[AliasRule]:
        """What was learned of aliases, of one domain or of all."""

    def undo_alias(self, name: str, domain: str) -> AliasRule:
        """Take a rule back for good."""

    def redo_alias(self, name: str, domain: str) -> AliasRule:
        """Let one that was taken back be learned again."""


class Purger(Protocol):
    """Takedowns of one crawl: in a directory, or of a fleet."""

    def checked(self, urls: Sequence[str], domains: Sequence[str], reason: str) -> Order:
        """The order as it is kept; UsageError for one that makes no sense."""

    def foresee(self, order: Order) -> Foreseen:
        """What it would take out."""

    def file(self, order: Order) -> Takedown:
        """Put it on record and block it."""

    def pending(self) -> list[Takedown]:
        """Those that are not carried out."""

    def is_running(self) -> bool:
        """Whether a crawl runs there, who then carries it out."""

    def wait(self, number: str, carry_out: Callable[[], object]) -> Takedown:
        """Wait until it is carried out; `carry_out` does it in a directory where no crawl runs."""


class RankCrawl(Protocol):
    """Brings the ranks of a crawl up to date, in a directory or of a fleet by its settings, and tells the highest."""

    def __call__(
        self,
        crawl: Path | Configured,
        *,
        pages: int,
        domains: int,
        anew: bool,
        publishing: bool,
        every_s: float,
        waiting: Callable[[], None],
        reading: Callable[[int], None],
    ) -> Importance | None:
        """So many pages and domains; the workers of a fleet are given the ranks where it is `publishing`.

        `every_s` says how often that is done, 0 for once. `waiting` is called before somebody else who does it is
        waited for, `reading` with the bytes to be read.
        """


class DemoResult(Protocol):
    """What a demonstration came to."""

    @property
    def summary(self) -> CrawlSummary:
        """Of the crawl."""

    @property
    def verdict(self) -> Sequence[tuple[str, str]]:
        """What the auditor on the servers' side says: label and text."""

    @property
    def passed(self) -> bool:
        """Whether the auditor found nothing wrong."""

    @property
    def example(self) -> str:
        """A URL of that web to ask about."""


class RunDemo(Protocol):
    """Crawls a simulated web that is served on this machine."""

    def __call__(
        self, out: Path, *, pages: int, listeners: Sequence[EventSink] = (), view: View | None = None
    ) -> DemoResult:
        """Start the web in a process of its own, crawl it, end it, ask its auditor."""


class RunSimulation(Protocol):
    """Lives through the scenarios of seeds."""

    def __call__(
        self, state: Path | None, runs: int, start: int, tell: Callable[[Verdict, Campaign], None]
    ) -> Campaign:
        """So many seeds that were not lived through yet, from `start` on; `tell` hears of each."""


class Retainer(Protocol):
    """Carries out a retention: of a crawl directory, or of the fleet that the settings name."""

    def __call__(
        self,
        out: Path | None,
        configured: Configured,
        elsewhere: str,
        *,
        listeners: Sequence[EventSink],
        tell: Callable[[int, int], None],
        say: Callable[[str], None],
    ) -> Retained:
        """`tell` hears how many files are done, and of how many; `say` what people should know meanwhile."""
