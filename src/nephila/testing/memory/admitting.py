"""admit: add what is new, know what is known, remember what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nephila.frontier import budget, order
from nephila.frontier import rank as ranks
from nephila.frontier.lifecycle import State, may_return
from nephila.frontier.score import level_of
from nephila.interfaces.frontier import Admission, Found
from nephila.model.outcome import DeferReason
from nephila.model.task import Candidate, Level, Refusal
from nephila.urls import registrable_domain

from .ground import DEEPEST, NOMINAL
from .nouns import Domain, Host, Refused, Source, Url
from .shelves import Shelves

BAND = 8
"""A waiting URL is given another place when its rank enters another band of so many, as the engine on disk has it."""
SEEDS = Source()


class Admitting(Shelves):
    """Admission."""

    def admit_all(
        self, candidates: Sequence[Candidate], source: Source = SEEDS, met: list[Candidate] | None = None
    ) -> Admission:
        """Add the candidates that are new, host by host; those are told in `met`."""
        by_host: dict[str, list[Candidate]] = {}
        once = _once(candidates)
        added, known, cooling = 0, len(candidates) - len(once), 0
        for candidate in once:
            address = candidate.address
            host = self.hosts.get(address.host)
            if host is None or address.fingerprint not in host.urls:
                by_host.setdefault(address.host, []).append(candidate)
            else:
                known += 1
                cooling += self._meet_again(host, candidate, source)
        self._count_referrers([candidate.address.host for candidate in once], source)
        for name, new in by_host.items():
            added += self._admit_new(name, new, source)
            if met is not None:
                met += new
        return Admission(added, known, cooling)

    def admit_found(self, candidates: Sequence[Candidate], refused: Sequence[Refusal], found: Found) -> Admission:
        """Admit what stands in a list; what is said to have changed since its last visit is due."""
        via = found.via
        host = self.hosts.get(via.host) if via is not None else None
        page = host.urls.get(via.fingerprint) if via is not None and host is not None else None
        self.refuse(refused, page)
        admission = self.admit_all(candidates, SEEDS if via is None else Source(page, first_rank=0))
        if self.rules_of_crawl.recrawl is None:
            return admission
        renewed = [
            candidate.address.fingerprint
            for candidate in candidates
            if self._renew(candidate, found.changed.get(candidate.address.fingerprint, 0))
        ]
        return replace(admission, renewed=tuple(renewed))

    def _renew(self, candidate: Candidate, said_s: int) -> bool:
        host = self.hosts.get(candidate.address.host)
        url = host.urls.get(candidate.address.fingerprint) if host else None
        if host is None or url is None or url.shelf is not None or url.state is not State.DONE:
            return False
        if url.settled_s >= said_s or self.cooling_s(url) > 0:
            return False
        self.wake(host, self.requeue(host, url))
        return True

    def _admit_new(self, name: str, new: list[Candidate], source: Source) -> int:
        host = self.host_for(name)
        allowed = self._without_forbidden(host, new, source)
        rank = self._first_rank(host, source)
        kinds: dict[tuple[int, Level | None, int, int], list[Candidate]] = {}
        for candidate in allowed:
            kinds.setdefault(candidate[1:], []).append(candidate)
        places: list[order.Place] = []
        for (depth, level, hops, bonus), alike in kinds.items():
            points = NOMINAL[level] if level is not None else self.score_of(host, rank, depth, bonus)
            given = level_of(self.rules_of_crawl.priority, points) if level is None else level
            lane, step = order.lane_of(order.Supply.NEW, given), order.step_for(self.step, points)
            urls = [self._new_url(host, candidate, rank, hops, source) for candidate in alike]
            wanted = self.sort_out(host, urls, order.Place(lane, step, min(depth, DEEPEST), b""))
            if wanted:
                host.admitted += len(wanted)
                places.append(self.enqueue(host, wanted, lane, step, depth))
        if places:
            self.wake(host, *places)
        self.look_for_probe(host)
        return len(allowed)

    def _count_referrers(self, names: Sequence[str], source: Source) -> None:
        """A link from another registrable domain is worth something to a host (F5); each domain counts once."""
        for name in dict.fromkeys(names) if source.domain_hash else ():
            host = self.hosts.get(name)
            if registrable_domain(name) == registrable_domain(source.page.host if source.page else ""):
                continue
            host = host or self.host_for(name)
            bitmap = budget.mark_referrer(host.referrers, source.domain_hash)
            if bitmap != host.referrers:
                host.referrers = bitmap
                host.domain.referrers = budget.mark_referrer(host.domain.referrers, source.domain_hash)
                if self.refill(host):
                    self.wake(host)

    def _new_url(self, host: Host, candidate: Candidate, rank: int, hops: int, source: Source) -> Url:
        address = candidate.address
        url = Url(host.name, address.fingerprint, address.url, rank, hops, self.cycle, self.wall_s, source.page)
        host.urls[address.fingerprint] = url
        return url

    def host_for(self, name: str) -> Host:
        """A host; a new one is taken on, or is one too many for its domain (F5)."""
        if name in self.hosts:
            return self.hosts[name]
        domain_name = registrable_domain(name)
        domain = self.domains.setdefault(domain_name, Domain(domain_name))
        host = self.hosts[name] = Host(name, domain)
        quality = self.policy_of(domain).quality
        settings = self.rules_of_crawl.budget
        if domain.hosts < budget.host_allowance(settings, domain.useful, domain.referrers, quality):
            domain.hosts += 1
        else:
            host.over = True
            domain.hosts_over += 1
            self.park(host, DeferReason.BUDGET)
        return host

    def _without_forbidden(self, host: Host, new: list[Candidate], source: Source) -> list[Candidate]:
        """Without what a person's word keeps out (T7, R4)."""
        blocks, deepest = self.blocklist(), self.policy_of(host.domain).max_depth
        allowed: list[Candidate] = []
        for candidate in new:
            address = candidate.address
            block = blocks.find(host.name, address.url, address.fingerprint)
            if block is not None:
                self.refuse([Refusal(address, "blocked", f"{block.pattern}: {block.reason}")], source.page)
            elif deepest is not None and candidate.depth > deepest:
                detail = f"depth {candidate.depth}, the policy of {host.domain.name} allows {deepest}"
                self.refuse([Refusal(address, "policy_depth", detail)], source.page)
            else:
                allowed.append(candidate)
        return allowed

    def refuse(self, refused: Sequence[Refusal], via: Url | None = None) -> None:
        """Remember refusals, each URL once, up to the limit (T8)."""
        for address, reason, detail in refused:
            if len(self.refused) < self.rules_of_crawl.settings.max_refusals:
                note = Refused(address.url, reason, detail, self.wall_s, via)
                self.refused.setdefault((address.host, address.fingerprint), note)

    def _first_rank(self, host: Host, source: Source) -> int:
        part = source.part_for(host)
        if part is None:
            return source.first_rank
        rank = ranks.first(part, source.salt)
        self.mean_rank = ranks.next_mean(self.mean_rank, rank)
        return rank

    # What is known

    def _meet_again(self, host: Host, candidate: Candidate, source: Source) -> int:
        """What another meeting brings; 1 when the URL still cools."""
        url = host.urls[candidate.address.fingerprint]
        if url.shelf is not None:
            if candidate.level is Level.IMMEDIATE:
                self.fetch_from_shelf(host, url, candidate)
            return 0
        before = url.rank
        part = source.part_for(host)
        if part is not None:
            url.rank = ranks.raised(part, url.rank, ranks.chance_of(candidate.address.key.encode(), source.salt))
        if url.queued and not url.asked:
            nearer = candidate.depth < url.spot.depth
            if url.rank // BAND != before // BAND or candidate.level is not None or nearer:
                self._move(host, url, candidate)
            return 0
        return self._meet_record(host, url, candidate)

    def _move(self, host: Host, url: Url, candidate: Candidate) -> None:
        """Give a waiting URL the place it deserves by now; what is leased stays as it was claimed."""
        lane, step, depth, _ = url.spot
        nearer = min(depth, candidate.depth)
        points = self.score_of(host, url.rank, nearer, candidate.bonus)
        level = level_of(self.rules_of_crawl.priority, points)
        if candidate.level is not None:
            level, points = candidate.level, NOMINAL[candidate.level]
        new_lane = min(lane, order.lane_of(order.Supply.NEW, level))
        new_step = min(step, order.step_for(self.step, points))
        leased = host.token and url in self.leases[host.token].pages
        if leased or not (new_lane < lane or nearer < depth or new_step < step):
            return
        url.place = None
        self.wake(host, self.enqueue(host, [url], new_lane, new_step, nearer))

    def _meet_record(self, host: Host, url: Url, candidate: Candidate) -> int:
        """A URL that was asked for is met again."""
        urgent = candidate.level is Level.IMMEDIATE
        returns = may_return(url.state, url_cycle=url.cycle, cycle=self.cycle)
        if returns or (urgent and url.state is not State.QUEUED):
            if self.cooling_s(url) > 0 and not urgent:
                return 1
            self.wake(host, self.requeue(host, url, candidate.level))
            return 0
        better = candidate.depth < url.depth or (candidate.level is not None and candidate.level < url.level)
        if url.state is not State.QUEUED or not better or host.token:
            return 0
        url.place = None
        url.depth = min(url.depth, candidate.depth)
        url.level = min(url.level, candidate.level) if candidate.level is not None else url.level
        points = NOMINAL[url.level] if urgent else self.score_of(host, url.rank, url.depth)
        self.wake(host, self.enqueue_alone(host, url, points))
        return 0


def _once(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each URL once, with what is best of those that name it: the least depth, the most urgent class."""
    found: dict[tuple[str, bytes], Candidate] = {}
    for candidate in candidates:
        name = (candidate.address.host, candidate.address.fingerprint)
        one = found.setdefault(name, candidate)
        levels = [level for level in (one.level, candidate.level) if level is not None]
        found[name] = one._replace(depth=min(one.depth, candidate.depth), level=min(levels, default=None))
    return list(found.values())
