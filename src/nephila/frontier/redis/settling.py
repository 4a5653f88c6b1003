"""admit and settle over shards: what belongs to other shards first, then the page's own, in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from xxhash import xxh32_digest

from nephila.frontier.change import outlook_of
from nephila.frontier.policy import Policy
from nephila.interfaces.frontier import NOWHERE, Admission, Found, Settled
from nephila.interfaces.recrawl import History, Outlook
from nephila.model.errors import FrontierError
from nephila.model.outcome import (
    Deferred,
    Done,
    Outcome,
    Release,
    Respelled,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.policy import Tier
from nephila.model.task import Candidate, PageTask, Refusal, RobotsTask, Token
from nephila.urls import Fingerprint

from . import asking
from .asking import Args, Asked, Facts
from .calling import Caller, request_id
from .foundation import Foundation
from .joining import Joining, Part
from .shards import domain_of
from .told import Era, Sifted
from .view import RedisFrontierView

_encode = msgspec.msgpack.encode


class Settling(Foundation):
    """Admission and settlement."""

    def __init__(self, caller: Caller, policy: Policy, view: RedisFrontierView, worker: str, *, virtual: bool) -> None:
        super().__init__(caller, policy, view, worker, virtual=virtual)
        self._joining = Joining(self._admit_parts)

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        """Add those that are new; each shard's part is one act."""
        parts, twice = asking.divided(self._shards, candidates, refused)
        via = found.via
        source = asking.source_of() if via is None else asking.source_of(via.url, 0)
        changed = found.changed if self._policy.recrawl is not None else {}
        answers = await asyncio.gather(
            *(self._admit_in(shard, asked, source, changed) for shard, asked in parts.items())
        )
        await self._touched(parts)
        total = Admission(0, twice)
        for answer in answers:
            total = _plus(total, answer)
        return total

    async def _admit_in(
        self,
        shard: int,
        asked: Asked,
        source: dict[str, Any],
        changed: Mapping[Fingerprint, int],
    ) -> Admission:
        groups = asking.group_args(asked.groups, self._policy.random_seed, None, self._repute())
        refusals = asking.refusal_args(asked.refused)
        head: dict[str, Any] = {"groups": len(asked.groups), "refused": len(asked.refused), "source": source}
        if changed:
            head["changed"] = asking.changed_by_position(asked.groups, changed)

        def make(_: bool, patterns: dict[str, Any]) -> Args:
            return [_encode(head | {"patterns": patterns} if patterns else head), *groups, *refusals]

        reply = await self._caller.with_patterns(shard, "admit", make, replicas=self._caller.replicas)
        self._woken(shard)
        return Admission(reply[1], reply[2], reply[3], tuple(reply[4]))

    def _part(self, asked: Asked, source: dict[str, Any], salt: int | None) -> Part:
        groups = asking.link_args(asked, self._policy.random_seed, salt, self._repute())
        return Part(asked, source, groups + asking.refusal_args(asked.refused))

    async def _admit_parts(self, shard: int, parts: Sequence[Part]) -> list[Admission]:
        """What several pages have for a shard."""
        told = [
            {"groups": part.asked.group_count, "refused": len(part.asked.refused), "source": part.source}
            for part in parts
        ]
        args = [word for part in parts for word in part.args]

        def make(_: bool, patterns: dict[str, Any]) -> Args:
            return [_encode({"parts": told, "patterns": patterns} if patterns else {"parts": told}), *args]

        reply = await self._caller.with_patterns(shard, "admit", make, replicas=self._caller.replicas)
        self._woken(shard)
        return [Admission(*one) for one in reply[1]]

    def _woken(self, shard: int) -> None:
        """There may be something to claim in a shard."""

    # settle

    async def settle(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """End tasks of a lease, links included. The host's rest counts from this call."""
        return await self._settle(token, settlements, release, None)

    async def _settle(
        self, token: Token, settlements: Sequence[Settlement], release: Release | None, holder: str | None
    ) -> Settled:
        called_ms = self.timeline.steady_ms()
        shard = self._shards.of_token(token)
        host, facts = await self._facts_of(token, settlements)
        era = self._era()
        sifted = [self._sift(host, one, facts) for one in settlements]
        parts = await self._send_elsewhere(shard, host, settlements, sifted, facts)
        if holder is None:  # what was lent lies in no segment of ours
            await self._note_segments(shard, settlements)
        request = request_id()
        while True:
            told, args, wanted, outlooks = self._told(host, settlements, parts, shard, facts)
            head: dict[str, Any] = {"settlements": told} | ({} if holder is None else {"holder": holder})

            def make(again: bool, patterns: dict[str, Any], head: dict[str, Any] = head, args: Args = args) -> Args:
                if release is not None:
                    late_ms = max(0, self.timeline.steady_ms() - called_ms - 1)  # less what rounding may add
                    head["release"] = asking.release_told(release, max(0, release.wait_ms - late_ms))
                head["patterns"] = patterns
                return [token, host, request, int(again), _encode(head), *args]

            reply = await self._caller.with_patterns(shard, "settle", make, wanted, replicas=self._caller.replicas)
            if reply[0] != b"POLICY":
                break
            facts = _under(facts, reply)  # it was changed since the claim, and the next visit follows from it
        if reply[0] == b"WRONG":
            raise FrontierError(reply[1].decode())
        self._woken(shard)
        if release is not None:
            self._facts.pop(token, None)
        if reply[1] and era == self._era():
            self._note_told(host, sifted)
        await self._touched({shard, *(other for part in parts for other in part.shards)})
        return _answer(settlements, parts, outlooks, reply)

    async def _note_segments(self, shard: int, settlements: Sequence[Settlement]) -> None:
        for settlement in settlements:
            if isinstance(settlement.outcome, Done):
                await self._note_segment(settlement.outcome.ref.segment, shard)

    async def _facts_of(self, token: Token, settlements: Sequence[Settlement]) -> tuple[str, dict[Any, Facts]]:
        """What was told when the lease was given; asked for where another process claimed it."""
        known = self._facts.get(token)
        if known is not None:
            return known
        shard = self._shards.of_token(token)
        key = self._shards.keys[shard]
        host = (await self._caller.call(shard, "host_of", token)).decode()
        found: dict[Any, Facts] = {}
        for settlement in settlements:
            task = settlement.task
            if not host or not isinstance(task, PageTask):
                continue
            told = await self._caller.call(shard, "story", host, task.fingerprint)
            domain = await self._caller.call(shard, "domain", domain_of(host))
            raw = await self._valkey.do(key, "HGET", f"{key}:policies", domain_of(host))
            policy = msgspec.json.decode(raw) if raw else {}
            if told[0] == b"url":
                story = told[1]
                found[task.fingerprint] = Facts(
                    story[29], History(*story[21]), story[20], domain[0] if domain else 0,
                    Tier(policy.get("tier", "normal")), policy.get("recrawl_s"),
                )  # fmt: skip
        return host, found

    def _era(self) -> Era | None:
        """What is remembered of links holds for the present cycle, primaries and orders; None where nothing is."""
        if self._told_before is not None:
            cycle = max((one.cycle for one in self._counters.values()), default=0)
            lifted = sum(one.counts.get("lifted", 0) for one in self._counters.values())
            self._told_before.enter(Era(cycle, self._valkey.moves, lifted))
            return self._told_before.era
        return None

    def _sift(self, host: str, settlement: Settlement, facts: dict[Any, Facts]) -> Sifted:
        """The links of a settlement, without those of which nothing has to be told."""
        task, links = settlement.task, settlement.links
        if self._told_before is None or not isinstance(task, PageTask) or not isinstance(settlement.outcome, Done):
            return Sifted(links, (), 0)
        visits = facts.get(task.fingerprint, Facts()).fetched
        return self._told_before.sift(task.url, visits, host, asking.domain_bit(domain_of(host)), links)

    def _note_told(self, host: str, sifted: Sequence[Sifted]) -> None:
        """The engine has taken what these pages brought."""
        if self._told_before is not None:
            bit = asking.domain_bit(domain_of(host))
            for links in sifted:
                self._told_before.note(host, bit, links.fresh)

    async def _send_elsewhere(
        self,
        shard: int,
        host: str,
        settlements: Sequence[Settlement],
        sifted: Sequence[Sifted],
        facts: dict[Any, Facts],
    ) -> list[_Part]:
        """Tell other shards what settlements mean for them, before they are made: all that one is told, together.

        The pages of a lease may wait for those of another; one that is settled alone, as after a crash, does not.
        """
        waits = len(settlements) > 1
        begun = [
            self._begin_elsewhere(shard, host, one, links, facts, waits=waits)
            for one, links in zip(settlements, sifted, strict=True)
        ]
        await asyncio.gather(*(answer for _, answers in begun for answer in answers))
        for settlement, (part, answers) in zip(settlements, begun, strict=True):
            for answer in answers:
                part.admission = _plus(part.admission, answer.result())
            if isinstance(settlement.outcome, RulesLearned | RulesMoved):
                part.shards += await self._tell_of_rules(shard, settlement.outcome)
        return [part for part, _ in begun]

    def _begin_elsewhere(
        self, shard: int, host: str, settlement: Settlement, links: Sifted, facts: dict[Any, Facts], *, waits: bool
    ) -> tuple[_Part, list[asyncio.Future[Admission]]]:
        """What of a settlement is this shard's, and what others will have said of the rest."""
        task, outcome = settlement.task, settlement.outcome
        parts, twice = asking.divided(self._shards, links.fresh, settlement.refused)
        if links.again:
            twice += asking.divided_again(self._shards, links.again, parts)
        own = parts.pop(shard, Asked())
        source, salt = asking.source_of(task.url if isinstance(task, PageTask) else ""), None
        if isinstance(task, PageTask) and isinstance(outcome, Done) and parts:
            known = facts.get(task.fingerprint, Facts())
            wall_s = self.timeline.wall_s()
            source = asking.source_of_page(task, domain_of(host), outcome, len(settlement.links), known, wall_s)
            salt = source["salt"]
        answers = [
            self._joining.admit(other, self._part(asked, source, salt), waits=waits) for other, asked in parts.items()
        ]
        return _Part(own, twice + links.left_out, list(parts)), answers

    async def _tell_of_rules(self, shard: int, outcome: RulesLearned | RulesMoved) -> list[int]:
        """Rules belong to the shard of their origin, and the next hop of a robots.txt to that of its host."""
        told: list[int] = []
        match outcome:
            case RulesLearned(rules, crawl_delay_ms):
                home = self._shards.of_origin(rules.origin)
                if home != shard:
                    head = {"learned": asking.rules_told(outcome), "crawl_delay_ms": crawl_delay_ms}
                    await self._caller.call(home, "elsewhere", _encode(head), rules.body)
                    told.append(home)
            case RulesMoved(origin, address, _):
                home, target = self._shards.of_origin(origin), self._shards.of_host(address.host)
                if target != shard:
                    tie = xxh32_digest(address.host.encode(), self._policy.random_seed & 0xFFFF_FFFF)
                    await self._caller.call(target, "elsewhere", _encode({"target": asking.target_told(outcome)}), tie)
                    told.append(target)
                if home != shard:
                    await self._caller.call(home, "elsewhere", _encode({"moved": origin}), b"")
                    told.append(home)
        for other in told:
            self._woken(other)
        return told

    def _told(
        self, host: str, settlements: Sequence[Settlement], parts: Sequence[_Part], shard: int, facts: dict[Any, Facts]
    ) -> tuple[list[dict[str, Any]], Args, list[str], list[Outlook | None]]:
        """The settlements as arguments, the URLs whose patterns they need, and what they plan for each page."""
        told: list[dict[str, Any]] = []
        args: Args = []
        wanted: list[str] = []
        outlooks: list[Outlook | None] = []
        for settlement, part in zip(settlements, parts, strict=True):
            task, outcome = settlement.task, settlement.outcome
            salt = None
            outlook: Outlook | None = None
            one: dict[str, Any] = {"url": task.url, "links": len(settlement.links)}
            if isinstance(task, RobotsTask):
                one["outcome"], body = self._robots_told(outcome, shard)
                args += (task.origin, body)
            else:
                known = facts.get(task.fingerprint, Facts())
                one["outcome"] = asking.page_outcome(
                    task, host, outcome, known, self._policy.recrawl, self.timeline.wall_s(), wanted.append
                )
                if isinstance(outcome, Respelled):  # it is queued again at once
                    one["outcome"]["grade"] = asking.grade_in(self._repute(), host)
                done = outcome if isinstance(outcome, Done) else None
                plan = one["outcome"].get("plan")
                outlook = None if plan is None else outlook_of(plan["history"])
                if done:
                    salt = asking.salt_of(task, known)
                    one["outcome"]["abroad"] = part.admission.added
                    one["outcome"]["poured"] = asking.poured(task.url, part.own.groups.get(host, ()))
                args += (task.fingerprint, *((done.digest, done.text, done.shape) if done else (b"", b"", b"")))
            one |= {"groups": part.own.group_count, "refused": len(part.own.refused)}
            args += asking.link_args(part.own, self._policy.random_seed, salt, self._repute())
            args += asking.refusal_args(part.own.refused)
            told.append(one)
            outlooks.append(outlook)
        return told, args, wanted, outlooks

    def _robots_told(self, outcome: Outcome, shard: int) -> tuple[dict[str, Any], bytes]:
        """How a robots.txt ended, and the text of its rules (or what breaks ties for the next host)."""
        match outcome:
            case RulesLearned(rules, crawl_delay_ms):
                here = self._shards.of_origin(rules.origin) == shard
                told = {"kind": "learned", "rules": asking.rules_told(outcome), "crawl_delay_ms": crawl_delay_ms}
                return told | {"here": here, "robots": True}, rules.body
            case RulesMoved(origin, address, _):
                told = {"kind": "moved", "robots": True, "here": self._shards.of_origin(origin) == shard}
                if self._shards.of_host(address.host) == shard:
                    told["target"] = asking.target_told(outcome)
                return told, xxh32_digest(address.host.encode(), self._policy.random_seed & 0xFFFF_FFFF)
            case Deferred():
                return {"kind": "deferred", "robots": True}, b""
        return {"kind": "wrong", "robots": True, "why": f"a robots.txt cannot end as {type(outcome).__name__}"}, b""


class _Part:
    """What of a settlement goes where."""

    __slots__ = ("admission", "own", "shards", "twice")

    def __init__(self, own: Asked, twice: int, shards: list[int]) -> None:
        self.own, self.twice, self.shards = own, twice, shards
        self.admission = Admission()


def _under(facts: dict[Any, Facts], reply: Sequence[bytes]) -> dict[Any, Facts]:
    tier, recrawl_s = Tier(reply[1].decode()), float(reply[2]) if reply[2] else None
    return {name: replace(known, tier=tier, recrawl_s=recrawl_s) for name, known in facts.items()}


def _answer(
    settlements: Sequence[Settlement], parts: Sequence[_Part], outlooks: Sequence[Outlook | None], reply: Sequence[Any]
) -> Settled:
    """What a shard has said of settlements, with what others have said of their links.

    A repeated call, which was done before, is told nothing of its own links.
    """
    if not reply[1]:
        return Settled(accepted=False)
    own = reply[5] if len(reply) > 5 else ()
    each: list[Settled] = []
    total = Admission(reply[2], reply[3], reply[4])
    outlook: Outlook | None = None
    for at, (settlement, part, planned) in enumerate(zip(settlements, parts, outlooks, strict=True)):
        elsewhere = _plus(part.admission, Admission(0, part.twice))
        total = _plus(total, elsewhere)
        if isinstance(settlement.task, PageTask):
            outlook = planned
        if len(settlements) > 1:
            here = Admission(*own[3 * at : 3 * at + 3])
            each.append(Settled(True, _plus(here, elsewhere), planned))
    return Settled(True, total, outlook, tuple(each))


def _plus(one: Admission, other: Admission) -> Admission:
    return Admission(
        one.added + other.added, one.known + other.known, one.cooling + other.cooling, one.renewed + other.renewed
    )
