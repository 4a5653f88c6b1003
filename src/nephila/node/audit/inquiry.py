"""Holding each request against what was in force when it was sent: rules, delays, limits, addresses (P1, P2, P3, H6).

Requests come in the order of their sending. Time is a line of its own (`line_of_time`), so that no jump of a wall
clock makes a short distance of a long one or hides one. Where two moments cannot be compared on it, because the
machine was started anew in between, the wall clock is asked; where that has gone backwards, the distance counts as not
measured, and is told.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from nephila.model.errors import UsageError
from nephila.model.terms import Terms
from nephila.store.trail import ARCHIVES
from nephila.urls import is_taken_down, resolve

from .destinations import limit_of, refusal
from .findings import Audit, Finding, FindingKind
from .line_of_time import OWN_MS, Line, Moment
from .request import Came, Request, Stretch
from .rulebook import RuleBook, Standing, after

LATE_RULES_MS = 300_000
"""How much older than a day rules may be when a request leaves, on top of a lease: they are looked at on claiming."""
LOST_MS = 15_000
"""What a process did so shortly before its end may be missing in the archive: unsynced bytes go with the power."""


@dataclass(slots=True)
class _Past:
    """The last request to a host or an origin."""

    end: Moment | None = None
    wall_end: int = 0
    base_ms: int = 0
    url: str = ""


@dataclass(slots=True)
class _Host(_Past):
    not_before: Moment | None = None
    """By Retry-After."""
    busy_at: int = 0
    visit: str = ""
    """The visit that its last request belonged to."""
    requests: int = 1
    """Of that visit: so many delays are due after it (J3)."""
    ends: list[int] = field(default_factory=list)
    """When the requests of that visit had ended."""


@dataclass(slots=True)
class _Address:
    ends: list[int] = field(default_factory=list)
    sent: deque[int] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What of a trail its requests do not tell."""

    whole: bool = True
    """All hosts are here, so that limits per address can be judged."""
    lossy: bool = False
    """A run has not ended well, or a machine has booted meanwhile, so that records may have been lost."""
    parties: int = 1
    """So many workers share the limits of addresses; each may have one request under way."""
    taken_out: AbstractSet[tuple[int, int, int]] = frozenset()
    """Boot, time and length of requests whose captures a takedown took out; the event log tells of them."""


class Inquiry:
    """Judges a stream of requests; what it finds goes into the audit."""

    def __init__(
        self,
        audit: Audit,
        rules: RuleBook,
        terms: list[Terms],
        line: Line,
        stretches: Sequence[Stretch],
        trail: Circumstance | None = None,
    ) -> None:
        trail = trail or Circumstance()
        self._taken_out = trail.taken_out
        removed = {one for _, receipt in audit.trail.receipts if _is_archive(receipt.file) for one in receipt.removed}
        self._unmarked = max(0, len(removed) - audit.taken_out)
        """Captures that receipts tell of and that left no mark in the archive."""
        self._lossy = trail.lossy
        self._audit = audit
        self._rules = rules
        self._terms = terms
        self._line = line
        self._parties = trail.parties
        self._stretches = stretches
        self._whole = trail.whole
        self._hosts: dict[str, _Host] = {}
        self._origins: dict[str, _Past] = {}
        self._standings: dict[str, Standing] = {}
        self._texts: set[str] = set()
        self._coming: list[tuple[int, int, Request]] = []
        """Answers to robots.txt that have not ended yet."""
        self._addresses: dict[str, _Address] = {}

    def hear(self, requests: Iterable[Request]) -> None:
        """Judge all of them."""
        for number, request in enumerate(requests):
            self._judge(request, number)
        self._audit.hosts = len(self._hosts)
        self._audit.rules = len(self._texts)
        self._audit.delays_ms = sorted({terms.delay_ms for terms in self._terms})

    def _judge(self, request: Request, number: int) -> None:
        audit, terms = self._audit, self._terms[request.terms] if request.terms >= 0 else Terms()
        audit.requests += 1
        audit.robots += request.is_robots
        audit.pages += not (request.is_robots or request.is_part or request.is_resource)
        audit.parts += request.is_part
        audit.resources += request.is_resource
        is_taken_out = not request.archived and self._is_taken_out(request)
        audit.unanswered += not request.archived and not is_taken_out
        audit.first_at = min(request.wall_at, audit.first_at or request.wall_at)
        audit.last_at = max(request.wall_at, audit.last_at)
        if not request.archived and request.answered and not is_taken_out:
            self._judge_missing(request)
        sent = self._line.place(request)
        sent_ms = sent.line_ms
        while self._coming and self._coming[0][0] <= sent_ms:
            self._learn(*heapq.heappop(self._coming))
        self._judge_pace(request, sent, terms)
        if request.is_robots:
            if request.came is not Came.NOTHING and not request.late:
                heapq.heappush(self._coming, (sent_ms + request.elapsed_ms, number, request))
        else:
            self._judge_rules(request, sent_ms, terms)
        self._judge_address(request, sent_ms, terms)

    # -- pace

    def _judge_pace(self, request: Request, sent: Moment, terms: Terms) -> None:
        base_ms = request.policy_ms if request.policy_ms >= 0 else terms.delay_ms
        if request.policy_ms >= 0:
            self._audit.policies[request.host] = request.policy_ms
        host = self._hosts.get(request.host)
        if request.is_part:
            host = self._judge_part(request, sent, host, base_ms, terms)
        elif host is None:
            host = self._hosts[request.host] = _Host()
        elif self._overlaps(sent, host):
            early = -sent.since(host.end) if host.end is not None else 0
            self._blame(FindingKind.OVERLAP, request, f"{early:,} ms before the answer to {host.url} had ended")
        else:
            self._judge_gap(request, sent, host, base_ms, terms)
        end, wall_end = sent.later(request.elapsed_ms), request.wall_at + request.elapsed_ms
        if not request.is_part:
            host.visit, host.requests, host.ends = request.visit, 1, []
        host.ends.append(end.line_ms)
        if host.end is None or end.since(host.end) >= 0:
            host.end, host.wall_end, host.url = end, wall_end, request.url
        host.base_ms = base_ms
        if request.retry_after_ms:
            asked = min(request.retry_after_ms, terms.max_retry_after_ms)
            host.not_before, host.busy_at = end.later(asked), request.status
        origin = self._origins.setdefault(request.origin if not request.is_robots else _origin(request.url), _Past())
        if origin.end is None or end.since(origin.end) >= 0:
            origin.end, origin.wall_end, origin.url = end, wall_end, request.url

    def _overlaps(self, sent: Moment, host: _Host) -> bool:
        """Whether a request surely left before the answer before it had ended."""
        if host.end is None or (tolerance := self._line.tolerance_ms(sent.boot, host.end.boot)) is None:
            return False
        return sent.since(host.end) < (0 if sent.boot == host.end.boot else -tolerance)

    def _judge_cut_visit(self, request: Request, sent: Moment, host: _Host | None, base_ms: int, terms: Terms) -> _Host:
        """A part that begins a visit, and is judged in the page's place.

        Its page is not on record, because a process died over it; or it had waited, and was shown again.
        """
        self._audit.cut_visits += not request.again
        if host is None:
            host = self._hosts[request.host] = _Host()
        else:
            self._judge_gap(request, sent, host, base_ms, terms)
        host.visit, host.requests, host.ends = request.visit, 0 if request.again else 1, []
        self._audit.visits += request.again
        return host

    def _judge_part(self, request: Request, sent: Moment, host: _Host | None, base_ms: int, terms: Terms) -> _Host:
        """Within a visit there is no delay, but so many requests in all, and so many at once."""
        if host is None or request.visit != host.visit:
            host = self._judge_cut_visit(request, sent, host, base_ms, terms)
        host.requests += 1
        self._audit.visits += host.requests == 2 and not request.again
        if host.requests > terms.visit_requests:
            detail = f"request {host.requests} of one visit; {terms.visit_requests} may be"
            self._blame(FindingKind.VISIT, request, detail)
        host.ends = [end_ms for end_ms in host.ends if end_ms > sent.line_ms + OWN_MS]
        if len(host.ends) >= terms.visit_at_once:
            detail = (
                f"{len(host.ends)} other requests of one visit were under way; {terms.visit_at_once} may be at once"
            )
            self._blame(FindingKind.OVERLAP, request, detail)
        self._judge_retry_after(request, sent, host)
        return host

    def _judge_gap(self, request: Request, sent: Moment, host: _Host, base_ms: int, terms: Terms) -> None:
        """Base delay towards the host, Crawl-delay towards the origin, Retry-After; after a visit, so many times."""
        base_ms = min(base_ms, host.base_ms) * host.requests
        self._audit.gaps += 1
        gap_ms = sent.since(host.end) if host.end is not None else 0
        if base_ms and host.end is not None and self._line.tolerance_ms(sent.boot, host.end.boot) is not None:
            shortest = self._audit.shortest_gap_ms
            if shortest is None or gap_ms < shortest:
                self._audit.shortest_gap_ms, self._audit.shortest_host = gap_ms, request.host
        origin = self._origins.get(_origin(request.url))
        asked_ms = self._crawl_delay_ms(request, terms) * host.requests if origin is not None else 0
        if origin is not None and asked_ms > base_ms and self._is_short(request, sent, origin, asked_ms):
            since_ms = sent.since(origin.end) if origin.end is not None else 0
            detail = f"{since_ms:,} ms after {origin.url}; its robots.txt asks for {asked_ms:,} ms"
            self._blame(FindingKind.HURRY, request, detail)
        elif base_ms and self._is_short(request, sent, host, base_ms):
            detail = f"{gap_ms:,} ms after {host.url}; {base_ms:,} ms were promised"
            self._blame(FindingKind.HURRY, request, detail)
        self._judge_retry_after(request, sent, host)

    def _judge_retry_after(self, request: Request, sent: Moment, host: _Host) -> None:
        if host.not_before is None:
            return
        tolerance = self._line.tolerance_ms(sent.boot, host.not_before.boot)
        early = -sent.since(host.not_before)
        if tolerance is not None and early > tolerance:
            detail = f"{early:,} ms before the time that a {host.busy_at} of {request.host} had asked for"
            self._blame(FindingKind.RETRY_AFTER, request, detail)

    def _is_short(self, request: Request, sent: Moment, past: _Past, required_ms: int) -> bool:
        if past.end is None:
            return False
        tolerance = self._line.tolerance_ms(sent.boot, past.end.boot)
        if sent.since(past.end) + (OWN_MS if tolerance is None else tolerance) >= required_ms:
            return False
        if tolerance is not None:
            return True
        by_wall = request.wall_at - past.wall_end
        if by_wall < 0:
            self._audit.unmeasured += 1
            return False
        return by_wall + OWN_MS < required_ms

    def _crawl_delay_ms(self, request: Request, terms: Terms) -> int:
        standing = self._standings.get(_origin(request.url))
        if not terms.obey_robots or standing is None or standing.came is not Came.RULES:
            return 0
        return self._rules.reading(standing.rules, _token(request.agent or terms.user_agent)).crawl_delay_ms

    # -- rules

    def _learn(self, end_ms: int, _number: int, request: Request) -> None:
        terms = self._terms[request.terms]
        standing = after(self._standings.get(request.origin), request, end_ms, terms)
        if standing is not None:
            self._standings[request.origin] = standing
        if request.rules:
            self._texts.add(request.rules)

    def _judge_rules(self, request: Request, sent_ms: int, terms: Terms) -> None:
        if not terms.obey_robots:
            self._blame(FindingKind.ROBOTS_OFF, request, "this run was told to ignore robots.txt")
            return
        standing = self._standings.get(request.origin)
        if self._cannot_be_judged(request, standing):
            self._audit.unjudged += 1
            return
        if standing is None:
            self._blame(FindingKind.NO_RULES, request, f"nobody had asked for {request.origin}/robots.txt")
            return
        if standing.came is Came.FAILING:
            detail = f"{request.origin}/robots.txt could not be had, and nothing is known of earlier rules"
            self._blame(FindingKind.NO_RULES, request, detail)
            return
        age_ms = sent_ms - standing.since_ms
        if standing.failing_since_ms is None and age_ms > terms.robots_fresh_ms + terms.lease_ms + LATE_RULES_MS:
            detail = f"the rules of {request.origin} were {age_ms // 3_600_000} hours old"
            self._blame(FindingKind.STALE_RULES, request, detail)
        if standing.came is Came.LOST:
            self._audit.unjudged += 1
            return
        self._audit.judged += 1
        if standing.came is Came.OPEN:
            return
        agent = _token(request.agent or terms.user_agent)
        rule = self._rules.reading(standing.rules, agent).forbids(request.url[len(_origin(request.url)) :] or "/")
        if rule is not None:
            self._blame(
                FindingKind.FORBIDDEN,
                request,
                f"line {rule.line} of {request.origin}/robots.txt, for {agent}: Disallow: {rule.text[:200]}",
            )

    def _cannot_be_judged(self, request: Request, standing: Standing | None) -> bool:
        """Whether which page it was is not on record any more, or its rules are not: they went with the power."""
        if not request.archived and (self._is_taken_out(request) or is_taken_down(request.url)):
            return True
        return bool(self._lossy and request.claims and (standing is None or request.claims != standing.ended_at))

    # -- addresses

    def _judge_address(self, request: Request, sent_ms: int, terms: Terms) -> None:
        if terms.proxied:
            self._audit.proxied += 1
            return
        if not request.address:
            return
        if reason := refusal(request.address, terms.allow_addresses):
            self._blame(FindingKind.ADDRESS, request, f"{request.address} is {reason}, and no setting opened it")
        if not (self._whole and terms.address_limited):
            return
        limit = limit_of(request.address, terms)
        known = self._addresses.setdefault(limit.key, _Address())
        at_once, slack_ms = max(limit.at_once, self._parties), self._line.slack_ms
        while known.ends and known.ends[0] <= sent_ms + slack_ms:
            heapq.heappop(known.ends)
        if len(known.ends) >= at_once:
            detail = f"{len(known.ends)} other requests were under way at {request.address}; {at_once} may be"
            self._blame(FindingKind.CROWD, request, detail)
        heapq.heappush(known.ends, sent_ms + request.elapsed_ms)
        # A turn is granted before its connection is made: those under way may leave a little closer together.
        most = limit.burst + at_once
        known.sent.append(sent_ms)
        while known.sent[0] <= sent_ms - limit.span_ms + slack_ms:
            known.sent.popleft()
        if len(known.sent) > most:
            detail = f"{len(known.sent)} requests at {request.address} within {limit.span_ms:,} ms; {most} may be"
            self._blame(FindingKind.CROWD, request, detail)

    # -- records

    def _is_taken_out(self, request: Request) -> bool:
        return (request.boot, request.sent_ms, request.elapsed_ms) in self._taken_out

    def _judge_missing(self, request: Request) -> None:
        """An answer that the event log tells of: near the end of its process it may have gone with the power."""
        stretch = self._stretches[request.stretch]
        if stretch.waits:
            self._audit.waiting += 1
            return
        if self._unmarked:
            self._unmarked -= 1
            self._audit.lost += 1
            return
        if stretch.boot == request.boot and stretch.end_ms - request.end_ms <= LOST_MS:
            self._audit.lost += 1
            return
        detail = f"the event log tells of an answer ({request.status}) that the archive does not hold"
        self._blame(FindingKind.MISSING, request, detail)

    def _blame(self, kind: FindingKind, request: Request, detail: str) -> None:
        self._audit.blame(Finding(kind, request.host, request.url, request.wall_at, detail))


def _is_archive(file: str) -> bool:
    return file.startswith(f"{ARCHIVES}/")


def _origin(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def _token(user_agent: str) -> str:
    """The product token of a User-Agent: the first word, up to its version."""
    return user_agent.partition("/")[0].split(" ")[0].strip() if user_agent else ""


def host_of(text: str) -> str:
    """The host that somebody names, as a URL or bare, spelled as in requests; `UsageError` where it is none."""
    if not text:
        return ""
    bare = f"[{text}]" if text.count(":") > 1 and "[" not in text else text
    url = resolve(None, text if "://" in text else f"http://{bare}/")
    host = (urlsplit(url).hostname or "").rstrip(".") if url is not None else ""
    if not host:
        raise UsageError(f"{text!r} is no host", hint="give example.org, or a URL of it")
    return host
