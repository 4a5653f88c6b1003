"""Seeds into the frontier: read in a stream, judged, admitted in batches, reported (S1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nephila.frontier.blocklist import Blocklist
from nephila.frontier.scope import Scope
from nephila.interfaces.frontier import Admission, Frontier
from nephila.interfaces.listings import Listings
from nephila.model.errors import UsageError
from nephila.model.events import Event, EventKind
from nephila.model.exchange import FailureKind
from nephila.model.listing import ListNote
from nephila.model.policy import Block
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.model.task import Candidate
from nephila.seeds import (
    CONNECTION_LEVEL,
    Seed,
    SeedAccepted,
    SeedRefused,
    SeedReport,
    SeedSource,
    SeedTally,
    SeedUrl,
    http_twin,
    read_seeds,
    spell,
)
from nephila.seeds.seed import SEED_LEVEL
from nephila.urls import Address, Identifier, origin_of

from .seedreader import seed_batches

UNREAD = (
    "the crawl ended before its seeds were all read: give them again when it goes on; "
    "those that it knows are not queued twice"
)
"""What people are told then: seeds are remembered as URLs of the frontier, and where they come from is not."""


@dataclass(frozen=True, slots=True)
class Sown:
    """What became of a few seeds."""

    added: int
    known: int
    refused: tuple[SeedRefused, ...]


def check_sown(report: SeedReport | None, summary: CrawlSummary, *, given: bool) -> None:
    """Raise `UsageError` for seeds that could not begin a crawl to which nothing was ever admitted.

    `given`: somebody has named seeds. A crawl that was ended before there were any is as it should be.
    """
    if report is None:
        return
    if report.refused:
        examples = [f"{one.text}: {one.detail}" for one in report.examples[:3]]
        raise UsageError(f"no seed can be crawled: {report.sentence()}", hint="; ".join(examples))
    if given and summary.stopped_by is StoppedBy.DONE:
        raise UsageError(
            "no seed can be crawled: there is none in what was named as their source",
            hint="one URL or domain a line is expected, or a sitemap, feed, outline or CSV file that names some",
        )


def refusal_event(refused: SeedRefused, at: int) -> Event:
    """What the event log says of a seed that was not taken."""
    where = f" ({refused.origin})" if refused.origin else ""
    return Event(EventKind.SEED_REFUSED, at, reason=refused.reason, detail=f"{refused.text}{where}: {refused.detail}")


class Refusals:
    """Every refusal, in order."""

    def __init__(self) -> None:
        self.refused: list[SeedRefused] = []

    def refuse(self, refused: SeedRefused) -> None:
        """Take one."""
        self.refused.append(refused)

    def refuse_blocked(self, candidate: Candidate, block: Block | None) -> bool:
        """Take one that a person's word keeps out (T7); whether there is such a word."""
        if block is not None:
            told = f"{block.pattern}: {block.reason}"
            self.refused.append(SeedRefused(candidate.address.url, "blocked", told, ""))
        return block is not None


class Sower:
    """Admits seeds, and remembers which of them may be tried over http when https is not answered."""

    def __init__(
        self,
        frontier: Frontier,
        identifier: Identifier,
        scope: Scope,
        save_scope: Callable[[], None],
        *,
        listings: Listings | None = None,
        threaded: bool = True,
        keep_twin: Callable[[str, str], None] | None = None,
        tell_refused: Callable[[SeedRefused], None] | None = None,
    ) -> None:
        """`listings` remembers which seeds are lists of seeds; `keep_twin` is told of bare ones, for others.

        `tell_refused` hears of each that `sow` refuses.

        `threaded`: sources may block, so they are read in a thread; not under virtual time.
        """
        self._frontier = frontier
        self._threaded = threaded
        self._identifier = identifier
        self._scope = scope
        self._save_scope = save_scope
        self._bare: dict[int, str] = {}
        self._listings = listings
        self._keep_twin = keep_twin
        self._tell_refused = tell_refused

    async def sow(self, sources: Sequence[SeedSource], wake: Callable[[], object]) -> SeedReport:
        """Read all sources to their end; `wake` is called after each batch."""
        tally = SeedTally(self._tell_refused)
        async for seeds in seed_batches(sources, threaded=self._threaded):
            candidates = self._judge(seeds, tally)
            if candidates:
                await self._admit(candidates, tally)
                wake()
        return tally.report()

    def identify(self, text: str) -> Address | tuple[str, str]:
        """The address that a text stands for, https first; else the reason why it stands for none, and the rule."""
        spelled = spell(text.strip())
        if not isinstance(spelled, SeedUrl):
            return str(spelled.fault), spelled.detail
        address = self._identifier.identify(spelled.address_url)
        return address if isinstance(address, Address) else (address.reason, address.detail)

    async def sow_some(self, seeds: Sequence[Seed], blocks: Blocklist) -> Sown:
        """Admit a few seeds at once, and say of each that is refused why."""
        tally = Refusals()
        candidates = [
            candidate
            for candidate in self._judge(seeds, tally)
            if not tally.refuse_blocked(candidate, blocks.find(*_named(candidate.address)))
        ]
        admission = Admission()
        if candidates:
            self._save_scope()
            admission = await self._frontier.admit(candidates)
        return Sown(admission.added, len(candidates) - admission.added, tuple(tally.refused))

    def _judge(self, seeds: Sequence[Seed], tally: SeedTally | Refusals) -> list[Candidate]:
        """Those that may be admitted; the others are refused in the tally."""
        candidates: list[Candidate] = []
        for verdict in read_seeds([seeds], self._identifier.identify):
            if isinstance(verdict, SeedRefused):
                tally.refuse(verdict)
                continue
            refusal = self._scope.judge_seed(verdict.address)
            if refusal is not None:
                tally.refuse(SeedRefused(verdict.address.url, *refusal, verdict.origin))
                continue
            self._scope.add_seed(verdict.address)
            self._remember_twin(verdict)
            if verdict.lists and self._listings is not None:
                known = self._listings.list_of(verdict.address.fingerprint) or ListNote("")
                self._listings.keep(verdict.address.fingerprint, replace(known, seeds=True))
            candidates.append(Candidate(verdict.address, 0, verdict.level))
        return candidates

    def twins(self, origin: str, kind: FailureKind) -> Sequence[Candidate]:
        """The http seeds to try because this https origin cannot be reached: each once."""
        if kind not in CONNECTION_LEVEL:
            return ()
        candidates: list[Candidate] = []
        for path in self._bare.pop(hash(origin), "").split():
            twin = self._identifier.identify(http_twin(origin + path) or "")
            if isinstance(twin, Address):
                candidates.append(Candidate(twin, 0, SEED_LEVEL))
        return candidates

    def _remember_twin(self, seed: SeedAccepted) -> None:
        if seed.bare:
            self.remember_bare(seed.address)

    def remember_bare(self, address: Address) -> None:
        """Remember a bare seed as the hash of its origin and its path: there may be millions."""
        origin = origin_of(address.url)
        path = address.url[len(origin) :]
        if self._keep_twin is not None:
            self._keep_twin(origin, path)
            return
        known = self._bare.get(hash(origin))
        self._bare[hash(origin)] = path if known is None else f"{known} {path}"

    async def _admit(self, batch: Sequence[Candidate], tally: SeedTally) -> None:
        """The scope is saved before the seeds are admitted: a crash must not leave a seed outside of it.

        That some of them are lists is known before that as well: another process may fetch them at once.
        """
        self._save_scope()
        if self._listings is not None:
            self._listings.flush()
        tally.admit(await self._frontier.admit(batch))


def _named(address: Address) -> tuple[str, str, bytes]:
    """As a blocklist asks."""
    return address.host, address.url, address.fingerprint
