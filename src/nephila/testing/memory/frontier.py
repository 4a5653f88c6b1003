"""The frontier in memory: the verbs of `interfaces.frontier`, and those that operate a crawl."""

from __future__ import annotations

from collections.abc import Sequence

from nephila.frontier.lifecycle import State
from nephila.frontier.timeline import Timeline
from nephila.interfaces.frontier import NOWHERE, Admission, Found, Settled, UrlStory
from nephila.model.outcome import DeferReason, Release, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.task import Candidate, Lease, Refusal, Token

from .nouns import Domain, Host, Rules, Standing, Url, every_url
from .telling import Telling

_LIFTED = frozenset({DeferReason.PAUSED, DeferReason.BLOCKED, DeferReason.HOURS, DeferReason.ERRORS})
"""Why a host is put off that another policy may end."""


class MemoryFrontier(Telling):
    """Implements `Frontier` and `FrontierView` in plain dictionaries."""

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        """Add those that are new; remember the refused ones for `why`."""
        with self.act():
            return self.admit_found(candidates, refused, found)

    async def claim(self, hosts: int, lease_s: float) -> list[Lease]:
        """Lease up to `hosts` hosts that may be asked now, best first."""
        with self.act():
            return self.claim_best(hosts, int(lease_s * 1000))

    async def renew(self, tokens: Sequence[Token], lease_s: float) -> set[Token]:
        """Extend leases."""
        with self.act():
            kept = {token for token in tokens if token in self.leases}
            for token in kept:
                self.leases[token].expires_at = self.now + int(lease_s * 1000)
            return kept

    async def settle(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """End tasks of a lease."""
        with self.act():
            return self.settle_all(token, settlements, release)

    async def confirm(self, segment: SegmentId, upto: int) -> int:
        """Complete the pages that were pending on the bytes before `upto`."""
        with self.act():
            found = [url.capture for url in self._pending(segment) if url.capture and url.capture.end <= upto]
            for capture in found:
                capture.pending = False
            return len(found)

    async def reap(self) -> int:
        """Return the hosts of expired leases, each for one full delay more."""
        with self.act():
            return self._reap([token for token, lease in self.leases.items() if lease.expires_at <= self.now])

    # Operating

    async def reap_all(self) -> int:
        """Return the hosts of all leases: their holders are known to be dead."""
        with self.act():
            return self._reap(list(self.leases))

    async def reopen(self, rules: Rules | None = None) -> None:
        """As if the process, or the machine, had started anew: the timeline goes on, limits are judged again.

        With other `rules`, they hold from now on.
        """
        before, now = self.rules_of_crawl, rules or self.rules_of_crawl
        if before.recrawl is not None and now.recrawl is not None and before.recrawl.terms != now.recrawl.terms:
            self.replanning = set(self.domains)
        self.rules_of_crawl = now
        self.timeline = Timeline(self.clock, self.anchor)
        with self.act():
            for host in self.hosts.values():
                if not host.token and host.standing is Standing.PARKED and host.reason != DeferReason.BUDGET:
                    self.rest(host)

    async def begin_cycle(self) -> bool:
        """Begin a new cycle, unless one that was begun so is still open."""
        with self.act():
            if self.cycle_open:
                return False
            self.cycle_open = self.sweeping = True
            self.cycle += 1
            self.pages_in_cycle = 0
            return True

    async def end_cycle(self) -> bool:
        """Nothing is left to do in this cycle."""
        with self.act():
            self.cycle_open = False
            return True

    async def lose(self, segment: SegmentId, valid_end: int) -> int:
        """Queue again the pages whose bytes are gone."""
        with self.act():
            lost = [url for url in self._pending(segment) if url.capture and url.capture.end > valid_end]
            for url in sorted(lost, key=lambda url: url.capture.end if url.capture else 0):
                host = self.hosts[url.host]
                if url.capture and url.capture.page:
                    self.pages -= 1
                    self.pages_in_cycle -= url.cycle == self.cycle
                    host.fetched_in_cycle -= url.cycle == self.cycle == host.cycle
                self.wake(host, self.requeue(host, url))
            return len(lost)

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back into their queues, retries forgiven."""
        with self.act():
            count = 0
            for story in stories:
                host = self.hosts.get(story.host)
                url = host.urls.get(story.fingerprint) if host else None
                if host and url and url.state is State.DEAD:
                    self.wake(host, self.requeue(host, url))
                    count += 1
            return count

    async def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold for a registrable domain from the next claim on; None takes it back (R4)."""
        before, now = self.policies.get(domain) or DomainPolicy(), policy or DomainPolicy()
        if was is not None and before != was:
            return False
        with self.act():
            self.domains.setdefault(domain, Domain(domain))
            if (before.recrawl_s, before.tier) != (now.recrawl_s, now.tier):
                self.replanning.add(domain)
            if policy is None:
                self.policies.pop(domain, None)
            else:
                self.policies[domain] = policy
            self._reconsider([host for host in self.hosts.values() if host.domain.name == domain])
        return True

    def _reconsider(self, hosts: list[Host]) -> None:
        """Judge the hosts of a domain anew: what held them back may hold no longer."""
        for host in hosts:
            if host.standing is Standing.PARKED and not host.token and host.reason in _LIFTED:
                self.rest(host)
        for host in hosts[:1]:
            self.take_on_hosts(host.domain)
        for host in hosts:
            if self.refill(host):
                self.wake(host)
            if host.standing is Standing.WAITING and not host.token and host.reason in _LIFTED:
                self.rest(host)
                self.wake(host)

    async def block(self, block: Block) -> None:
        """Ask no more for a domain, a host or a part of it (T7)."""
        with self.act():
            self.blocks[block.pattern] = block

    async def unblock(self, pattern: str) -> bool:
        """Take a block back; False when there was none."""
        with self.act():
            if self.blocks.pop(pattern, None) is None:
                return False
            for host in self.hosts.values():
                if not host.token and host.reason == DeferReason.BLOCKED:
                    self.rest(host)
            return True

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a quarantined or slowed skeleton start anew; how many URLs come back (T2)."""
        with self.act():
            found = self.hosts.get(host)
            return self.release_pattern(found, skeleton_key) if found else 0

    async def close(self) -> None:
        """Nothing is open."""

    def _pending(self, segment: SegmentId) -> list[Url]:
        return [
            url
            for url in every_url(self.hosts)
            if url.capture and url.capture.pending and url.capture.segment == segment
        ]

    def _reap(self, tokens: list[int]) -> int:
        for token in tokens:
            host: Host = self.leases.pop(token).host
            host.token = 0
            self.leave(host)
            promised = host.free_at + self.timeline.slept_ms - host.slept_ms
            host.free_at = max(promised, self.now + self.delay_of(host) + 1)
            host.released_at, host.slept_ms = self.now, self.timeline.slept_ms
            self.rest(host)
        return len(tokens)
