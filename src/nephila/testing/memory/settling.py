"""settle: end tasks under their token, links included, in one act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xxhash import xxh3_64_intdigest

from nephila.frontier import budget, health
from nephila.frontier import rank as ranks
from nephila.frontier.change import as_seen, outlook_of, said_mark
from nephila.frontier.lifecycle import after
from nephila.interfaces.frontier import Admission, Settled
from nephila.interfaces.recrawl import Outlook, Visit
from nephila.model.errors import FrontierError
from nephila.model.exchange import FailureKind
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    Dropped,
    OriginRules,
    Outcome,
    Release,
    Respelled,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.task import Candidate, PageTask, RobotsTask

from .admitting import Admitting
from .nouns import Capture, Host, LeaseNote, Origin, Source, Standing, Url

USEFUL_AFTER = 3
"""Pages with new content that make a host count for its domain's budget of hosts."""
LONGEST_GAP_S = 30 * 86_400
"""Between two visits: then the second is a whole vote again (R1)."""
GONE = "gone"
_STRAINED = frozenset({FailureKind.TIMEOUT, FailureKind.RESET, FailureKind.CONNECT, "http_429"})


class Settling(Admitting):
    """Settlement."""

    def settle_all(self, token: int, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """End tasks of a lease; with `release`, end the lease and let the host rest."""
        lease = self.leases.get(token)
        if lease is None or not _is_its_to_settle(lease, settlements):
            return Settled(accepted=False)
        added = known = cooling = 0
        outlook: Outlook | None = None
        each: list[Settled] = []
        for settlement in settlements:
            admission = self._end(lease, settlement)
            added, known, cooling = added + admission.added, known + admission.known, cooling + admission.cooling
            its_own: Outlook | None = None
            if isinstance(settlement.task, PageTask):
                planned = self.rules_of_crawl.recrawl is not None and isinstance(settlement.outcome, Done)
                its_own = outlook_of(lease.host.urls[settlement.task.fingerprint].history) if planned else None
                outlook = its_own
            each.append(Settled(True, admission, its_own))
        if release is not None:
            del self.leases[token]
            if any(isinstance(settlement.task, PageTask) for settlement in settlements):
                lease.host.work_since = max(1, self.now)  # it was served; its robots.txt alone is no service
            self._free(lease.host, release)
        return Settled(True, Admission(added, known, cooling), outlook, tuple(each) if len(each) > 1 else ())

    def _free(self, host: Host, release: Release) -> None:
        host.token = 0
        self.leave(host)
        host.delay_ms, host.crawl_delay_ms = release.pace.delay_ms, release.pace.crawl_delay_ms
        # The answer ended within this millisecond, not at its beginning: round up.
        host.free_at = self.now + release.wait_ms + (release.wait_ms > 0)
        host.released_at, host.slept_ms = self.now, self.timeline.slept_ms
        self.rest(host)
        if release.reason is not None and host.standing is Standing.WAITING:
            self.wait(host, host.free_at, release.reason)

    def _end(self, lease: LeaseNote, settlement: Settlement) -> Admission:
        host, task = lease.host, settlement.task
        if isinstance(task, RobotsTask):
            lease.origin = ""
            self._end_robots(host, task, settlement.outcome)
            return self.admit_all(settlement.links)
        url = host.urls[task.fingerprint]
        lease.pages.remove(url)
        self.take_out(url)
        source = self._end_page(host, url, settlement)
        first = url.fetched == 1
        new: list[Candidate] = []
        admission = self.admit_all(settlement.links, source, new)
        if budget.gives_back(settlement.outcome, admission.added):
            host.admitted = max(0, host.admitted - 1)
        self.refuse(settlement.refused, url)
        self._check_health(host, settlement.outcome)
        if self.observe(host, settlement, new, first=first):
            host.fresh += 1
            if host.fresh == USEFUL_AFTER:
                host.domain.useful += 1
                self.take_on_hosts(host.domain)
        if not isinstance(settlement.outcome, Retry | Deferred | Respelled):
            self.look_further(host)
        self.refill(host)
        return admission

    # Pages

    def _end_page(self, host: Host, url: Url, settlement: Settlement) -> Source:
        """Write what became of a page; returns it as the source of its links."""
        outcome, source = settlement.outcome, Source(url)
        url.state, url.cycle = after(url.state, outcome), self.cycle
        url.settled_s, url.reason, url.detail = self.wall_s, "", ""
        match outcome:
            case Done():
                source = self._share_out(host, url, settlement, outcome)
                seen = as_seen(url.history, outcome)
                self._store(url, seen)
                self._count(host, outcome)
                self._plan(host, url, seen)
            case Retry(wait_ms, kind, detail):
                url.retries += 1
                url.reason, url.detail = DeferReason.RETRY, f"{kind}: {detail}" if detail else kind
                self.delay(url, self.now + wait_ms, DeferReason.RETRY)
            case Deferred(wait_ms, reason):
                url.reason = reason
                self.delay(url, self.now + wait_ms, reason)
            case Dropped(reason, detail) | Dead(reason, detail):
                url.reason, url.detail = reason, detail
            case Respelled(address):
                url.trail = (*url.trail, settlement.task.url)
                url.hops += 1
                url.url = address.url
                self.put_back(host, url, url.level)
            case _:
                raise FrontierError("a page cannot end with the rules of an origin")
        return source

    def delay(self, url: Url, until: int, reason: str) -> None:
        """A URL waits for a time."""
        url.due_at, url.due_reason = max(1, until), reason

    def _share_out(self, host: Host, url: Url, settlement: Settlement, done: Done) -> Source:
        """What the links of a page bring their targets, and what is left to the page (R1)."""
        visits, weight = url.fetched, 1.0
        salt = ranks.salt_of(settlement.task.url.encode(), visits)
        name = xxh3_64_intdigest(host.domain.name.encode())
        outlinks = max(done.outlinks, len(settlement.links))
        if not outlinks:
            return Source(url, None, salt, name)
        if visits:
            weight = ranks.weight_of(self.wall_s - url.history.last_s, LONGEST_GAP_S)
        share = ranks.share(url.rank, outlinks, host.domain.pages + 1, weight)
        if visits:
            url.rank = ranks.kept(url.rank, weight, salt)
        return Source(url, share, salt, name)

    def _store(self, url: Url, done: Done) -> None:
        old = url.capture
        url.fetched += 1
        url.capture = Capture(
            status=done.status,
            segment=done.ref.segment,
            offset=done.ref.offset,
            end=done.ref.end,
            digest=done.digest or (old.digest if old and not done.changed else b""),
            etag=done.validators.etag,
            last_modified=done.validators.last_modified,
            page=done.page,
            changed_at_s=self.wall_s if done.changed or old is None else old.changed_at_s,
        )

    def _count(self, host: Host, done: Done) -> None:
        host.fetched += 1
        if done.lied:
            host.lied_in = self.cycle
        if not done.page:
            return
        if host.cycle != self.cycle:
            host.cycle, host.fetched_in_cycle = self.cycle, 0
        host.fetched_in_cycle += 1
        host.domain.pages += 1
        self.pages += 1
        self.pages_in_cycle += 1
        wanted = self.rules_of_crawl.target_domains
        if wanted and sum(domain.pages > 0 for domain in self.domains.values()) >= wanted:
            self.covered = True

    def _plan(self, host: Host, url: Url, done: Done) -> None:
        """Plan the next visit (R2), and tell what is gone (R5)."""
        if self.rules_of_crawl.recrawl is None:
            return
        policy, home = self.policy_of(host.domain), url.tail in {b"s/", b"h/"}
        visit = Visit(
            self.wall_s,
            done.status,
            done.changed,
            home,
            policy.tier,
            policy.recrawl_s,
            done.listing,
            done.expected_s,
            said_mark(done),
        )
        url.history, wait_s, url.gone = self.rules_of_crawl.recrawl.plan(url.history, visit)
        url.reason = GONE if url.gone else ""
        self.delay(url, self.now + wait_s * 1000, DeferReason.DUE)

    def _check_health(self, host: Host, outcome: Outcome) -> None:
        """What an answer shows of its domain: too many errors pause it (P4)."""
        seen, settings = _seen(outcome), self.rules_of_crawl.politeness
        if seen is not None:
            host.domain.health, pause = health.after(host.domain.health, seen, settings)
            if pause:
                host.domain.paused_until = self.now + int(settings.pause_s * 1000)

    # robots.txt

    def _end_robots(self, host: Host, task: RobotsTask, outcome: Outcome) -> None:
        match outcome:
            case RulesLearned(rules, crawl_delay_ms):
                host.robots.pop(task.origin, None)
                self.origins[rules.origin] = Origin(rules)
                self._wake_origin(task.origin, crawl_delay_ms)
                self._check_health(host, outcome)
            case RulesMoved(origin, address, hops):
                host.robots.pop(origin, None)
                old = self.origins.get(origin)
                rules = old.rules if old else OriginRules(origin, RulesKind.UNAVAILABLE, b"", 0, 0)
                self.origins[origin] = Origin(replace(rules, fresh_until=0), True, max(1, self.now))
                target = self.host_for(address.host)
                target.robots[origin] = RobotsTask(origin, address.url, hops)
                at_limit = target.reason == DeferReason.HOST_LIMIT  # of pages: a robots.txt may still be asked for
                if not target.token and (target.standing is not Standing.PARKED or at_limit):
                    self.rest(target)
            case Deferred():
                pass  # stays first in its host's queue
            case other:
                raise FrontierError(f"a robots.txt cannot end as {type(other).__name__}")

    def _wake_origin(self, origin: str, crawl_delay_ms: int) -> None:
        """Let a host go on that waited for rules which were found on another host."""
        name = origin.split("://", 1)[1].rstrip(".")
        host = self.hosts.get(name if name.endswith("]") else name.rsplit(":", 1)[0])
        if host is None or host.token:
            return
        if crawl_delay_ms:
            host.crawl_delay_ms = crawl_delay_ms
            host.free_at = max(host.free_at, host.released_at + crawl_delay_ms + 1)
        if host.standing is Standing.WAITING and host.reason == DeferReason.ROBOTS:
            self.wait(host, host.free_at)


def _is_its_to_settle(lease: LeaseNote, settlements: Sequence[Settlement]) -> bool:
    """Whether every task is (still) this lease's, and named once."""
    left = [page.fingerprint for page in lease.pages]
    for settlement in settlements:
        match settlement.task:
            case PageTask(fingerprint=fingerprint):
                if fingerprint not in left:
                    return False
                left.remove(fingerprint)
            case RobotsTask(origin=origin):
                if lease.origin != origin:
                    return False
    return True


def _seen(outcome: Outcome) -> health.Seen | None:
    """What an outcome says of a server's health; None when the server was not asked."""
    match outcome:
        case Done() | Respelled():
            return health.Seen.OK
        case Retry(kind=kind) | Dead(kind=kind):
            if kind == "http_5xx":
                return health.Seen.SERVER_ERROR
            return health.Seen.ERROR if kind in _STRAINED else None
        case RulesLearned(rules=rules):
            return health.Seen.ERROR if rules.kind is RulesKind.UNAVAILABLE else health.Seen.OK
        case _:
            return None
