"""claim: lease the hosts that may be asked now, best first by the comparator of `frontier.order`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from xxhash import xxh3_64_digest

from nephila.frontier import order
from nephila.frontier.lifecycle import State, may_return
from nephila.frontier.span import urls_in_lease
from nephila.model.outcome import DeferReason, OriginRules, RulesKind
from nephila.model.policy import DomainPolicy
from nephila.model.task import Lease, Pace, PageTask, RobotsTask, Task, Token, Validators
from nephila.urls import origin_of

from .nouns import Host, LeaseNote, Origin, Standing, Url, every_url
from .settling import Settling

MOVED_POLL_MS = 2_000
MOVED_LIMIT_MS = 600_000
"""A robots.txt that was redirected to another host is waited for so long."""
_NO_RULES = Origin(OriginRules("", RulesKind.ALLOW_ALL, b"", 0, 0))


class Claiming(Settling):
    """Claims."""

    def claim_best(self, hosts: int, lease_ms: int) -> list[Lease]:
        """Lease up to `hosts` hosts, best first."""
        self._replan()
        self._sweep()
        self._empty_coverage_shelves()
        self._promote()
        self._refresh_classes()
        leases: list[Lease] = []
        while len(leases) < hosts and (picked := self._pick()) is not None:
            lease = self._lease(*picked, lease_ms)
            if lease is not None:
                leases.append(lease)
        return leases

    # What comes back before anything is chosen

    def _replan(self) -> None:
        """What visits are planned by has changed: they are moved to where they would be by now."""
        recrawl, domains = self.rules_of_crawl.recrawl, self.replanning
        self.replanning = set()
        if recrawl is None:
            return
        for url in every_url(self.hosts):
            host = self.hosts[url.host]
            if host.domain.name not in domains or url.state is not State.DONE or not url.due_at:
                continue
            policy, home = self.policy_of(host.domain), url.tail in {b"s/", b"h/"}
            revised_s = recrawl.revised(url.history, home=home, tier=policy.tier, fixed_s=policy.recrawl_s)
            if revised_s != url.history.interval_s:
                moment = url.due_at + (revised_s - url.history.interval_s) * 1000
                self.delay(url, max(moment, self.now), DeferReason.DUE)
                url.history = url.history._replace(interval_s=revised_s)

    def _sweep(self) -> None:
        """A new cycle has begun: queue what ended in an earlier one."""
        if not self.sweeping:
            return
        self.sweeping = False
        for url in sorted(every_url(self.hosts), key=lambda url: (url.host, url.fingerprint)):
            if url.place or not may_return(url.state, url_cycle=url.cycle, cycle=self.cycle):
                continue
            host, rest_s = self.hosts[url.host], self.cooling_s(url)
            if rest_s > 0:
                self.end_state(url)
                url.state, url.cycle, url.retries, url.hops = State.DELAYED, self.cycle, 0, 0
                url.reason = DeferReason.COOLING
                self.delay(url, self.now + int(rest_s * 1000), DeferReason.COOLING)
                if host.reason == DeferReason.HOST_LIMIT:  # what else it has may go on now
                    self.wake(host)
            else:
                self.wake(host, self.requeue(host, url))

    def _empty_coverage_shelves(self) -> None:
        """Let what was put off for coverage come back, once enough domains were fetched (S4)."""
        for host in self.hosts.values() if self.covers_no_more else ():
            if host.shelved(DeferReason.COVERAGE):
                self.end_coverage(host)
                self.wake(host)

    def _refresh_classes(self) -> None:
        """Waiting may have lifted the class of hosts that have been ready for long (F7)."""
        patient = self.now - order.step_ms(self.rules_of_crawl.priority)
        for host in self.ready_hosts() if not self.rules_of_crawl.ordered else ():
            if host.work_since <= patient and self.heads(host).keys() != {key[0] for key in host.ready}:
                self.make_ready(host)

    @property
    def ahead_ms(self) -> int:
        """How long before its time a host may be claimed."""
        rules = self.rules_of_crawl
        return rules.ordered_wait_ms if rules.ordered else rules.settings.look_ahead_ms

    def _promote(self) -> None:
        """Make ready what may be claimed now; with one exchange at a time, retries come when there is nothing else."""
        if self.rules_of_crawl.ordered:
            self._promote_waiting(waiting_for_rules=False)
            if any(host.standing is Standing.READY and not host.token for host in self.hosts.values()):
                return
        self._promote_due()
        self._promote_waiting()

    def _promote_due(self) -> None:
        due = [url for url in every_url(self.hosts) if url.due_at and url.due_at <= self.now + self.ahead_ms]
        for url in sorted(due, key=lambda url: (url.due_at, url.host, url.fingerprint)):
            host, due_at = self.hosts[url.host], url.due_at
            if url.state is State.DONE:
                place = self.requeue(host, url)
            else:
                self.end_state(url)
                place = self.put_back(host, url)
            if not host.token:
                self._rest_after_reboot(host)
                host.free_at = max(host.free_at, due_at)
            self.wake(host, place)

    def _promote_waiting(self, *, waiting_for_rules: bool = True) -> None:
        horizon = self.now + self.ahead_ms
        for host in self.hosts.values():
            if host.token or host.standing is not Standing.WAITING or host.next_at > horizon:
                continue
            self._rest_after_reboot(host)
            if host.free_at > horizon:
                self.wait(host, host.free_at)
            elif host.reason != DeferReason.ROBOTS or waiting_for_rules:
                self.become_ready(host)

    def become_ready(self, host: Host) -> None:
        """The time of a host has come."""
        self.take_probe(host)
        if self.heads(host):
            self.make_ready(host)
        else:
            self.rest(host)

    def _rest_after_reboot(self, host: Host) -> None:
        """The clock that knew how long a host has rested is gone with the last boot: it rests one full delay anew."""
        timeline = self.timeline
        if timeline.rebooted_at and 0 < host.released_at <= timeline.rebooted_at:
            rested_at = host.free_at + timeline.slept_ms - host.slept_ms
            host.free_at = max(rested_at, timeline.rebooted_at + self.delay_of(host))
            host.slept_ms = timeline.slept_ms

    # Which host

    def ready_hosts(self) -> list[Host]:
        """The hosts that may be asked now."""
        return [host for host in self.hosts.values() if host.standing is Standing.READY and not host.token]

    def _pick(self) -> tuple[Host, int] | None:
        """The next host by the comparator, and the lane it was picked for."""
        settings, seed = self.rules_of_crawl.priority, self.rules_of_crawl.random_seed
        if not self.ready_hosts():
            return None
        self.draws += 1
        starving = self._starving()
        if starving is not None:
            return starving
        lane = -1
        while True:
            keys = [(key, host) for host in self.ready_hosts() for key in host.ready]
            present = sorted({key[0] for key, _ in keys})
            if lane not in present:
                lane = order.draw_lane(present, self.draws, seed, settings)
            key, host = min((one for one in keys if one[0][0] == lane), key=lambda one: one[0])
            if order.count_in_ready_key(key) >= host.domain.pages:
                return host, lane
            self.make_ready(host)  # its domain was asked since: it takes the place of the true count

    def _starving(self) -> tuple[Host, int] | None:
        """The ready host that has had work for longest, where this fetch is one of the reserve and that is too long."""
        settings, seed = self.rules_of_crawl.priority, self.rules_of_crawl.random_seed
        ready = self.ready_hosts()
        immediate = any(key[0] == 0 for host in ready for key in host.ready)
        if immediate or self.rules_of_crawl.ordered or not order.reserved(self.draws, seed, settings):
            return None
        oldest = min(ready, key=lambda host: (host.work_since, self.age_tie(host)))
        if oldest.work_since > self.now - settings.starving_s * 1000:
            return None
        self.reserved += 1
        return oldest, min(key[0] for key in oldest.ready)

    # What of it

    def _lease(self, host: Host, lane: int, lease_ms: int) -> Lease | None:  # noqa: PLR0911 - one for each answer
        """Lease a ready host, or put it off."""
        self._rest_after_reboot(host)
        if host.free_at > self.now + self.ahead_ms:
            self.wait(host, host.free_at)
            return None
        if self._put_off(host):
            return None
        if not host.robots and self._pages_left(host) == 0:
            self.park(host, DeferReason.HOST_LIMIT)
            return None
        if host.robots:
            task = host.robots[min(host.robots, key=lambda origin: xxh3_64_digest(origin.encode()))]
            return self._make(host, (task,), LeaseNote(host, self.now + lease_ms, [], task.origin))
        found = self._first_unblocked(host, lane)
        if found is None:
            self.rest(host)
            return None
        if isinstance(found, int):
            self.wait(host, max(found, host.free_at), DeferReason.ROBOTS if found > self.now else "")
            return None
        if isinstance(found, str):
            task = host.robots[found] = RobotsTask(found, f"{found}/robots.txt", 0)
            return self._make(host, (task,), LeaseNote(host, self.now + lease_ms, [], found))
        known = self.origins.get(origin_of(found[0].url)) if self.rules_of_crawl.robots else _NO_RULES
        tasks = tuple(self._page_task(host, url) for url in found)
        note = LeaseNote(host, self.now + lease_ms, found)
        return self._make(host, tasks, note, known.rules.stored_at if known else 0)

    def _put_off(self, host: Host) -> bool:
        """Put a host off as a whole, where its domain may not be asked now (P4, T7, R4)."""
        domain, policy = host.domain, self.policy_of(host.domain)
        if domain.paused_until > self.now:
            self.wait(host, max(host.free_at, domain.paused_until), DeferReason.ERRORS)
        elif self.blocklist().of_host(host.name) is not None:
            self.park(host, DeferReason.BLOCKED)
        elif policy.paused:
            self.park(host, DeferReason.PAUSED)
        elif (opens_in_s := _opens_in_s(policy, self.wall_s)) > 0:
            self.wait(host, max(host.free_at, self.now + opens_in_s * 1000), DeferReason.HOURS)
        elif self._owes_longer_rest(host, policy):
            host.free_at = max(host.free_at, self._rested_at(host, policy))
            self.wait(host, host.free_at)
        else:
            return False
        return True

    def _owes_longer_rest(self, host: Host, policy: DomainPolicy) -> bool:
        """Whether a policy has made the delay longer since the host was freed."""
        if policy.delay_s is None or not host.released_at:
            return False
        return self._rested_at(host, policy) > self.now + self.ahead_ms

    def _rested_at(self, host: Host, policy: DomainPolicy) -> int:
        return host.released_at + max(int((policy.delay_s or 0) * 1000), self.delay_of(host)) + 1

    def _pages_left(self, host: Host) -> int | None:
        limit = self.rules_of_crawl.max_pages_per_host
        fetched = host.fetched_in_cycle if host.cycle == self.cycle else 0
        return max(0, limit - fetched) if limit else None

    def _first_unblocked(self, host: Host, lane: int) -> list[Url] | str | int | None:
        """The next pages of one origin; or the origin whose rules come first; or when to look again; or nothing."""
        rules = self.rules_of_crawl
        most = 1 if rules.ordered else rules.settings.urls_per_lease
        wanted = urls_in_lease(self.delay_of(host), most, rules.lease_span_ms)
        wanted = min(wanted, self._pages_left(host) or wanted)
        blocked: dict[str, int] = {}
        origin, work = "", list[Url]()
        self.take_probe(host)
        for url in self.work_of(host, lane):
            its_origin = origin_of(url.url)
            if its_origin in blocked or self._ends_here(host, url):
                continue
            if work and its_origin != origin:
                break
            if not work and self.rules_of_crawl.robots:
                known = self.origins.get(its_origin)
                until = self._blocked_until(known)
                if until is not None:
                    blocked[its_origin] = until
                    continue
                if known is None or known.rules.fresh_until <= self.now:
                    return its_origin
            origin = its_origin
            work.append(url)
            if len(work) >= wanted:
                break
        if work:
            return work
        if host.queue():
            return min(blocked.values(), default=self.now)  # what was looked at has ended, and other work has come
        return None

    def work_of(self, host: Host, lane: int) -> Iterator[Url]:
        """A host's queue, beginning with the class it was picked for; what comes into it behind the last one counts."""
        firsts = [(self.lane_now(host, place) != lane, place[1:], place.lane) for place in self.firsts(host)]
        for _, _, stored in sorted(firsts):
            last: tuple[order.Place, int] | None = None
            while True:
                queue = [(url.spot, url.turn, url) for url in host.queue() if url.spot.lane == stored]
                following = [one for one in queue if last is None or one[:2] > last]
                if not following:
                    break
                *_, url = following[0]
                last = url.spot, url.turn
                yield url

    def _ends_here(self, host: Host, url: Url) -> bool:
        """Whether a queued URL is not fetched after all."""
        block, deepest = self.blocklist().of_url(url.url, url.fingerprint), self.policy_of(host.domain).max_depth
        depth = url.spot.depth
        if block is not None:
            self._drop(host, url, "blocked", f"{block.pattern}: {block.reason}")
        elif deepest is not None and depth > deepest:
            self._drop(host, url, "policy_depth", f"depth {depth}, the policy of {host.domain.name} allows {deepest}")
        else:
            return self.catch(host, url)
        return True

    def _drop(self, host: Host, url: Url, reason: str, detail: str) -> None:
        self.take_out(url)
        url.state, url.cycle = State.DROPPED, self.cycle
        url.settled_s, url.reason, url.detail = self.wall_s, reason, detail
        self.look_further(host)

    def _blocked_until(self, known: Origin | None) -> int | None:
        """When an origin whose pages may not be claimed is worth another look."""
        if known is None:
            return None
        if known.moved_at and self.now - known.moved_at < MOVED_LIMIT_MS:
            return self.now + MOVED_POLL_MS
        if known.rules.kind is RulesKind.UNAVAILABLE and known.rules.fresh_until > self.now:
            return known.rules.fresh_until
        return None

    def _make(self, host: Host, tasks: tuple[Task, ...], note: LeaseNote, rules_at: int = 0) -> Lease:
        host.token = self.next_token
        self.next_token += 1
        self.leases[host.token] = note
        policy = self.policy_of(host.domain)
        return Lease(
            token=Token(host.token),
            host=host.name,
            domain=host.domain.name,
            tasks=tasks,
            not_before=max(self.now, host.free_at),
            expires_at=note.expires_at,
            pace=Pace(
                self.base_delay_ms(host) if host.delay_ms < 0 else host.delay_ms,
                host.crawl_delay_ms,
                -1 if policy.delay_s is None else int(policy.delay_s * 1000),
            ),
            claimed_at=self.now,
            rules_at=rules_at,
            user_agent=policy.user_agent,
            render=policy.render,
        )

    def _page_task(self, host: Host, url: Url) -> PageTask:
        capture, every = url.capture, self.rules_of_crawl.verify_every
        caught = bool(host.lied_in) and self.cycle <= host.lied_in + 1
        name = f"{host.name} {url.tail.decode()}"
        sample = bool(every) and order.is_sample(name, self.cycle, every, self.rules_of_crawl.random_seed)
        return PageTask(
            fingerprint=url.fingerprint,
            url=url.url,
            depth=url.spot.depth,
            level=url.level,
            hops=url.hops,
            retries=url.retries,
            cycle=url.cycle,
            validators=Validators(capture.etag, capture.last_modified) if capture else Validators(),
            digest=capture.digest if capture else b"",
            via=url.via.url if url.via and url.via.asked else "",
            verify=capture is not None and bool(every) and (caught or sample),
            trail=url.trail,
        )


def _opens_in_s(policy: DomainPolicy, wall_s: int) -> int:
    """Seconds until a domain may be asked by the hours of its policy."""
    if not policy.hours:
        return 0
    moment = datetime.fromtimestamp(wall_s, UTC)
    for ahead in range(25):
        hour = (moment.hour + ahead) % 24
        for first, last in policy.hours:
            if first <= hour < last or (first >= last and (hour >= first or hour < last)):
                return ahead and ahead * 3600 - moment.minute * 60 - moment.second
    return 86_400
