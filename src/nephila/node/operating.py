"""What a person decides about a crawl, also while it runs: policies, blocks, traps, aliases (R4, T7, T2, D4).

Every change is one transaction on the frontier, from this process: a running crawl reads it with its next claim. What
is wrong with an order is found before anything is opened for writing, so that nothing is half done.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from nephila.config.values import LONGEST_S
from nephila.dedup import LearnedAliases, LearnedEnvironment
from nephila.frontier.blocklist import check_pattern
from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView
from nephila.frontier.embedded.tallies import group_of
from nephila.interfaces.frontier import Trap
from nephila.model.alias import AliasRule, AliasState
from nephila.model.errors import UsageError
from nephila.model.policy import Block, DomainPolicy
from nephila.model.settings import Settings
from nephila.politeness import check_user_agent
from nephila.seeds import SeedUrl, spell
from nephila.urls import Address, registrable_domain

from .addressing import aliases_of, identifier_of
from .blocked import show_blocked
from .clock import SystemClock
from .engines import policy_of
from .inspect import begun
from .noting import Noting, OvertakenError, unnoted
from .operated import OperatedFrontier, OperatedView

T = TypeVar("T")

ORDINARY = DomainPolicy()
ALL = 1_000_000
"""Traps that are looked through for one by its name."""
SHOWN = 3
DAY_HOURS = 24
DEEPEST, MOST_QUALITY = 250, 1000
"""What a policy may say, as elsewhere: `limits.max_depth`, and the API."""


class Operator(ABC):
    """Changes what holds in a crawl, wherever that is. Every call opens what it needs and closes it again."""

    def __init__(self, settings: Settings, noting: Noting = unnoted) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._noting = noting

    @abstractmethod
    def _read(self, look: Callable[[OperatedView], T]) -> T:
        """Ask the frontier something."""

    @abstractmethod
    def _change(self, act: Callable[[OperatedFrontier], Awaitable[T]]) -> T:
        """Change something in the frontier."""

    @abstractmethod
    def _show_blocked(self) -> None:
        """Have the catalogue show what is blocked now, where nobody else does."""

    @abstractmethod
    def _learned(self, act: Callable[[LearnedAliases], T], domain: str) -> T:
        """Ask what was learned of aliases, of one domain or of all, or change it of one."""

    # Policies

    def domain_of(self, text: str) -> tuple[str, str]:
        """The registrable domain that a domain, a host or a URL stands for, and the host that was named."""
        spelled = spell(text)
        url = spelled.address_url if isinstance(spelled, SeedUrl) else text
        address = identifier_of(self._settings, 0).identify(url)
        if not isinstance(address, Address):
            raise UsageError(f"{text!r} is no domain", "write it like example.org")
        return registrable_domain(address.host), address.host

    def policies(self) -> dict[str, DomainPolicy]:
        """All policies by domain."""
        return dict(self._read(lambda view: view.policies()))

    def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold from the next claim on; None takes it back. UsageError for one that makes no sense.

        Where somebody has changed `was` meanwhile, nothing is done; False then.
        """
        if policy is not None:
            check_policy(policy)
        wanted = None if policy == ORDINARY else policy
        held = was or self.policies().get(domain, ORDINARY)
        with suppress(OvertakenError), self._noting("policy", domain, held, policy or ORDINARY):
            if not self._change(lambda frontier: frontier.set_policy(domain, wanted, was)):
                raise OvertakenError
            return True
        return False

    # Blocks

    def blocks(self) -> list[Block]:
        """What may not be asked for, by pattern."""
        return list(self._read(lambda view: view.blocks()))

    def block(self, pattern: str, reason: str) -> Block:
        """Ask no more for a domain, a host or URLs that begin so."""
        kept, told = check_pattern(pattern), " ".join(reason.split())
        if not told:
            raise UsageError("a block needs a reason", "whoever asks `why` later is told it")
        entry = Block(kept, told, self._clock.wall_ms())
        with self._noting("block", kept, self._block_on(kept), entry):
            self._change(lambda frontier: frontier.block(entry))
            self._show_blocked()
        return entry

    def block_all(self, entries: Callable[[int], Sequence[Block]]) -> None:
        """Let several blocks hold, made with the secret of the crawl."""

        async def act(frontier: OperatedFrontier) -> None:
            for entry in entries(frontier.secret):
                await frontier.block(entry)

        self._change(act)
        self._show_blocked()

    def unblock(self, pattern: str) -> bool:
        """Take a block back; False when there was none."""
        before = self._block_on(pattern) or self._block_on(check_pattern(pattern))
        if before is None:
            return False
        with self._noting("unblock", before.pattern, before):
            removed = self._change(lambda frontier: frontier.unblock(before.pattern))
            self._show_blocked()
        return removed

    def _block_on(self, pattern: str) -> Block | None:
        return next((block for block in self.blocks() if block.pattern == pattern), None)

    # Traps

    def traps(self, limit: int, host: str = "") -> tuple[list[Trap], int]:
        """Patterns that are slowed or quarantined, and how many there are in all."""
        return self._read(lambda view: (view.traps(limit, host), view.snapshot().traps))

    def release_trap(self, host: str, pattern: str) -> tuple[int, int]:
        """Let a pattern start anew: how many URLs lay on its shelf, and how many came back at once."""
        known = self._read(lambda view: view.traps(ALL, host))
        found = next((one for one in known if one.pattern == pattern), None)
        if found is None:
            names = ", ".join(one.pattern for one in known[:SHOWN])
            hint = f"there it is {names}" if known else "`nephila traps DIR` lists all there are"
            raise UsageError(f"{pattern!r} is no trap on {host}", hint)
        with self._noting("release", host, wanted={"pattern": pattern}) as change:
            back = self._change(lambda frontier: frontier.release_trap(host, group_of(pattern)))
            change.after = {"pattern": pattern, "parked": found.parked, "back_at_once": back}
        return found.parked, back

    # Aliases

    def aliases(self, domain: str = "") -> list[AliasRule]:
        """What was learned of aliases, of one registrable domain or of all."""
        return self._learned(lambda aliases: aliases.rules(domain), domain)

    def undo_alias(self, name: str, domain: str = "") -> AliasRule:
        """Take a rule back for good, by its id or its pattern."""
        found = self._alias(name, domain, lambda rule: rule.state is not AliasState.UNDONE)
        with self._noting("undo_alias", found.domain, wanted=_named(found)):
            return self._learned(lambda aliases: aliases.undo(found.id), found.domain) or found

    def redo_alias(self, name: str, domain: str = "") -> AliasRule:
        """Let a rule that was taken back be learned again."""
        found = self._alias(name, domain, lambda rule: rule.state is AliasState.UNDONE)
        with self._noting("redo_alias", found.domain, wanted=_named(found)):
            return self._learned(lambda aliases: aliases.redo(found.id), found.domain) or found

    def _alias(self, name: str, domain: str, fits: Callable[[AliasRule], bool]) -> AliasRule:
        """The one rule that is meant."""
        known = [rule for rule in self.aliases(domain) if fits(rule)]
        found = [rule for rule in known if name in (rule.id, rule.pattern)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(f"{rule.id} ({rule.domain})" for rule in found[:SHOWN])
            raise UsageError(f"{name!r} names {len(found)} rules", f"name one by its id: {ids}")
        there = ", ".join(f"{rule.id} ({rule.pattern})" for rule in known[:SHOWN])
        where = f" of {domain}" if domain else ""
        hint = f"there is {there}" if known else "`nephila aliases DIR` lists all there are"
        raise UsageError(f"{name!r} is no such rule{where}", hint)


class CrawlOperator(Operator):
    """Changes what holds in a crawl directory."""

    def __init__(self, out: Path, noting: Noting = unnoted) -> None:
        self._directory, settings = begun(out)
        super().__init__(settings, noting)

    def aliases(self, domain: str = "") -> list[AliasRule]:
        """As above; nothing is written for it, so that a crawl on a medium that is read-only can be looked at."""
        if not (self._directory.aliases / "data.mdb").exists():  # of a crawl that has learned nothing yet
            return []
        with closing(LearnedEnvironment(self._directory.aliases, read_only=True)) as environment:
            return self._aliases_in(environment).rules(domain)

    def _learned(self, act: Callable[[LearnedAliases], T], domain: str) -> T:
        del domain
        with closing(LearnedEnvironment(self._directory.aliases, sync=self._settings.frontier.sync)) as environment:
            return act(self._aliases_in(environment))

    def _aliases_in(self, environment: LearnedEnvironment) -> LearnedAliases:
        return aliases_of(environment, self._settings, identifier_of(self._settings, 0), self._clock)

    def _read(self, look: Callable[[LmdbFrontierView], T]) -> T:
        view = LmdbFrontierView.open(self._directory.frontier, self._clock, self._settings.frontier.map_bytes)
        try:
            return look(view)
        finally:
            view.close()

    def _show_blocked(self) -> None:
        secret, blocks = self._read(lambda view: (view.secret, view.blocks()))
        show_blocked(self._directory, self._settings, secret, lambda: blocks)

    def _change(self, act: Callable[[OperatedFrontier], Awaitable[T]]) -> T:
        async def run() -> T:
            frontier = LmdbFrontier(self._directory.frontier, self._clock, policy_of(self._settings), threaded=False)
            try:
                return await act(frontier)
            finally:
                await frontier.close()

        return asyncio.run(run())


def check_policy(policy: DomainPolicy) -> None:
    """UsageError for a policy that cannot be kept."""
    if policy.user_agent:
        check_user_agent(policy.user_agent)
    for name, span_s in (("delay", policy.delay_s), ("re-crawl interval", policy.recrawl_s)):
        if span_s is not None and not 0 <= span_s <= LONGEST_S:  # nor what is no number
            raise UsageError(f"a {name} of {span_s:g} s cannot be kept", "write it in seconds, 0 or more")
    if policy.max_depth is not None and not 0 <= policy.max_depth <= DEEPEST:
        raise UsageError(f"a depth of {policy.max_depth} cannot be kept", f"write a number from 0 to {DEEPEST}")
    if not 0 <= policy.quality <= MOST_QUALITY:
        raise UsageError(
            f"a quality of {policy.quality:g} cannot be kept",
            f"write a number from 0 to {MOST_QUALITY}: 1 changes nothing",
        )
    for first, last in policy.hours:
        if not (0 <= first < DAY_HOURS and 0 < last <= DAY_HOURS) or first == last:
            raise UsageError(
                f"{first}-{last} are no hours of a day",
                "write them like 22-6 or 0-24, in UTC, whole hours from 0 to 24",
            )


def _named(rule: AliasRule) -> dict[str, str]:
    return {"id": rule.id, "pattern": rule.pattern}


def open_operator(out: Path, noting: Noting = unnoted) -> CrawlOperator:
    """Somebody who may change a crawl; raises `CrawlDirectoryError` when there is none."""
    return CrawlOperator(out, noting)
