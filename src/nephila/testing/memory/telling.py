"""What can be read: counters, stories, rules. All of it is counted when it is asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from nephila.frontier import order, traps
from nephila.frontier.change import outlook_of
from nephila.frontier.lifecycle import State
from nephila.frontier.traps import TrapState
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.model.outcome import DeferReason, OriginRules
from nephila.model.task import Level
from nephila.urls import Fingerprint

from .claiming import Claiming
from .nouns import Host, Standing, Url, every_url
from .shelves import group_of

AGE_STEP_S = 4 * 3600
"""Queued URLs are told by their age in steps of four hours."""

_NAMES = {
    State.QUEUED: "queued",
    State.DELAYED: "delayed",
    State.DONE: "completed",
    State.DROPPED: "dropped",
    State.DEAD: "dead_letter",
}


class Telling(Claiming):
    """The reading side."""

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""
        known = self.origins.get(origin)
        return known.rules if known else None

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        found = self.hosts.get(host)
        if found is not None and (url := found.urls.get(fingerprint)) is not None:
            return self._with_evidence(found, url, self._tell(found, url))
        note = self.refused.get((host, fingerprint))
        if note is None:
            return None
        at = note.at_s * 1000
        return UrlStory(
            url=note.url,
            fingerprint=fingerprint,
            host=host,
            state="refused",
            level=Level.MEDIUM,
            depth=0,
            via=_spelling(note.via),
            hops=0,
            retries=0,
            cycle=0,
            admitted_at=at,
            settled_at=at,
            reason=note.reason,
            detail=note.detail,
        )

    def _with_evidence(self, host: Host, url: Url, story: UrlStory) -> UrlStory:
        """The story of a URL that a trap holds back, with what is held against its pattern and when one may go."""
        group = url.shelf[1] if url.shelf and url.shelf[0] is DeferReason.TRAP else None
        for pattern, tally in host.tallies.items():
            if group_of(pattern) == group:
                wait_ms = tally.not_before_s * 1000 - self.clock.wall_ms()
                return replace(story, detail=traps.tell(tally), due_in_ms=max(0, wait_ms))
        return story

    def _tell(self, host: Host, url: Url) -> UrlStory:
        capture, parked = url.capture, url.shelf[0] if url.shelf else ""
        waits = url.state is State.DELAYED or (url.state is State.DONE and url.due_at)
        until = max(host.free_at, host.next_at if host.standing is Standing.WAITING else 0)
        return UrlStory(
            url=url.url,
            fingerprint=url.fingerprint,
            host=host.name,
            state="parked" if parked else self._state(host, url),
            level=url.level,
            depth=url.depth,
            via=_spelling(url.via),
            hops=url.hops,
            retries=url.retries,
            cycle=url.cycle,
            admitted_at=url.admitted_s * 1000,
            settled_at=url.settled_s * 1000,
            reason=parked or url.reason or (host.reason if url.state is State.QUEUED else ""),
            detail=url.detail,
            status=capture.status if capture else 0,
            due_in_ms=max(0, url.due_at - self.now) if waits else None,
            host_wait_ms=max(0, until - self.now),
            segment=capture.segment if capture else "",
            offset=capture.offset if capture else -1,
            digest=capture.digest if capture else b"",
            rank=url.rank,
            visits=url.history.visits,
            changes=url.history.changes,
            changed_at=capture.changed_at_s * 1000 if capture else 0,
            interval_s=url.history.interval_s,
            missing=url.history.gone,
            missing_since=url.history.gone_since_s * 1000,
            again=url.place is not None and order.supply_of_lane(url.place.lane) is order.Supply.DUE,
            step=-1 if url.place is None else url.place.step,
            outlook=outlook_of(url.history),
        )

    def _state(self, host: Host, url: Url) -> str:
        if host.token and url in self.leases[host.token].pages:
            return "in_progress"
        if url.state is State.DONE and url.capture and url.capture.pending:
            return "stored_pending"
        return _NAMES[url.state]

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in the order of their keys."""
        stories = [self._tell(self.hosts[url.host], url) for url in every_url(self.hosts) if url.state is State.DEAD]
        return [story for story in sorted(stories, key=self.key_of) if self.key_of(story) > after][:limit]

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""
        return story.host.encode() + b"\0" + story.fingerprint

    def ages(self) -> dict[int, list[int]]:
        """Queued URLs by the time they were admitted (in steps of `AGE_STEP_S`) and class."""
        found: dict[int, list[int]] = {}
        for url in every_url(self.hosts):
            if url.queued:
                found.setdefault(url.admitted_s // AGE_STEP_S, [0, 0, 0, 0])[order.level_of_lane(url.spot.lane)] += 1
        return found

    def snapshot(self) -> FrontierSnapshot:
        """The counters."""
        urls, free = list(every_url(self.hosts)), [host for host in self.hosts.values() if not host.token]
        lanes = Counter(url.spot.lane for url in urls if url.queued)
        delayed = Counter(url.due_reason for url in urls if url.due_at)
        states = Counter(url.state for url in urls if not url.shelf)
        pending = sum(bool(url.capture and url.capture.pending) for url in urls)
        planned = delayed.pop(DeferReason.DUE, 0)
        moment = self._next_moment(urls, free)
        waiting_for: Counter[str] = Counter()
        for host in free:
            if host.reason:
                waiting_for[host.reason] += max(1, len(host.queue()))
        return FrontierSnapshot(
            now=self.now,
            cycle=self.cycle,
            queued={
                level.name.lower(): sum(count for lane, count in lanes.items() if order.level_of_lane(lane) is level)
                for level in Level
            },
            delayed=dict(delayed),
            states={
                "pending": pending,
                "completed": states[State.DONE] - pending,
                "dropped": states[State.DROPPED],
                "dead": states[State.DEAD],
                "refused": len(self.refused),
            },
            hosts=len(self.hosts),
            hosts_ready=sum(host.standing is Standing.READY for host in free),
            hosts_waiting=sum(host.standing is Standing.WAITING for host in free),
            hosts_leased=len(self.leases),
            domains=sum(domain.pages > 0 for domain in self.domains.values()),
            pages=self.pages,
            pages_in_cycle=self.pages_in_cycle,
            next_in_ms=None if moment is None else max(0, moment - self.now),
            sweeping=self.sweeping,
            waiting_for=dict(waiting_for),
            due_again={order.level_of_lane(lane).name.lower(): lanes[lane] for lane in range(4, order.LANES)},
            parked=dict(Counter(str(url.shelf[0]) for url in urls if url.shelf)),
            planned=planned,
            urls=len(urls),
            gone=sum(url.gone for url in urls),
            traps=sum(
                tally.state is not TrapState.NORMAL for host in self.hosts.values() for tally in host.tallies.values()
            ),
            reserved=self.reserved,
            draws=self.draws,
        )

    def _next_moment(self, urls: list[Url], free: list[Host]) -> int | None:
        """When something can be claimed next; 0 when now, None when nothing waits for a time."""
        begun = self.sweeping or self.replanning or self.covers_no_more
        if begun or any(host.standing is Standing.READY for host in free):
            return 0
        moments = [host.next_at for host in free if host.standing is Standing.WAITING]
        return min(moments + [url.due_at for url in urls if url.due_at], default=None)


def _spelling(via: Url | None) -> str:
    """The page that a URL was found on."""
    return via.url if via and via.asked else ""
