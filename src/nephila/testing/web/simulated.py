"""The simulated web as a whole: ask it anything and it answers, the same every time.

`answer` is a pure function of host, target, request headers, wall time and the number of times that this was asked
before; both transports (`inprocess`, `sockets`) deliver what it says. `truth` tells what a crawler ought to find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from email.utils import formatdate, parsedate_to_datetime
from functools import cached_property, lru_cache

from .atlas import Atlas, Located, Spot
from .documents import DocumentMaker, error_document
from .draw import Salt, draw, fraction
from .hosts import Door, Host, HostBook
from .listed_sites import ListedSite
from .robots import Ruling, in_forbidden_part, robots_text, ruling
from .roles import RECOVERING, Role
from .script_sites import BundleSite, ScriptSite
from .spec import RobotsKind, WebSpec
from .trap_hosts import TrapBook, TrapHost
from .trap_sites import TrapSite
from .truth import DEFAULT_POLICY, Truth, WalkPolicy, walk
from .wire import Fault, Framing, ServedAnswer, accepted_codings, write_answer

_BUSY_ROBOTS_TRIES = 2
_DOCUMENTS_KEPT = 256
_TARGETS_KEPT = 4096
"""A request is looked up by the server, the auditor on its arrival and at its end."""
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_FAILURE_STATUS = {Role.NOT_FOUND: 404, Role.GONE: 410, Role.ERROR: 500}
_FAULTS = {
    Role.RESET: Fault.RESET,
    Role.RESET_BODY: Fault.RESET,
    Role.CUT: Fault.CUT,
    Role.HANG: Fault.HANG,
    Role.HANG_BODY: Fault.HANG,
}
_SILENT = frozenset({Role.RESET, Role.HANG})
"""Faults that come before the first byte."""


class SimulatedWeb:
    """One web, made of its spec alone."""

    def __init__(self, spec: WebSpec) -> None:
        self.spec = spec
        self.hosts = HostBook(spec)
        self.atlas = Atlas(self.hosts)
        self.documents = DocumentMaker(self.atlas)
        self.traps = TrapBook(spec)
        self._document = lru_cache(maxsize=_DOCUMENTS_KEPT)(self.documents.document)
        self._locate = lru_cache(maxsize=_TARGETS_KEPT)(self._find)

    def at_port(self, port: int) -> SimulatedWeb:
        """The same web, served at another port."""
        return SimulatedWeb(self.spec.at_port(port))

    def seeds(self, count: int = 0) -> list[str]:
        """Home pages to start from: the first host's, or those of the first `count` open hosts."""
        hosts = (host for host in self.hosts if host.open)
        return [self.atlas.identity(Spot(host.number, 0)) for host, _ in zip(hosts, range(max(count, 1)), strict=False)]

    def trap_seeds(self) -> list[str]:
        """Home pages of the trap sites; no other page links to them."""
        return [self.traps.home(host) for host in self.traps if host.site.real_pages]

    def doors(self) -> dict[str, Door]:
        """What happens to who connects, by address."""
        numbered = {host.address: host.door for host in self.hosts if host.address}
        return numbered | {host.address: _door(host.site) for host in self.traps}

    def address_of(self, name: str) -> str | None:
        """The address that the DNS gives for a name, None when there is no such name."""
        host = self.hosts.find(name) or self.traps.find(name)
        return (host.address or None) if host else None

    def identify(self, url: str) -> str | None:
        """The identity of the page that any spelling of a URL leads to, None when there is no such page."""
        located = self.atlas.locate_url(url)
        return self.atlas.identity(located.spot) if located else None

    def allowed(self, host_name: str, target: str, agent: str) -> bool:
        """Whether the robots.txt of the host, once it answers, lets the agent ask for the target."""
        host = self.hosts.find(host_name)
        if host is None:
            trap = self.traps.find(host_name)
            if trap is not None and isinstance(trap.site, BundleSite):
                return not trap.site.forbids
            closed = trap is not None and isinstance(trap.site, ListedSite | ScriptSite)
            return not (closed and target.startswith("/private/"))
        match ruling(self.hosts, host, agent):
            case Ruling.ALL:
                return True
            case Ruling.PARTS:
                return not in_forbidden_part(target)
            case _:
                return False

    def canonical_target(self, host: str, target: str) -> str:
        """One name for all spellings of a target of a host; an unknown target names itself."""
        located = self._locate(host, target)
        return self.atlas.target(located.spot) if located else target

    def required_delay_ms(self, host: str) -> float:
        """The Crawl-delay that a host's robots.txt asks for, 0 when there is none."""
        known = self.hosts.find(host)
        return known.crawl_delay_ms if known else 0

    def is_part(self, host: str, target: str) -> bool:
        """Whether a target is something that only pages in browsers ask for."""
        trap = self.traps.find(host)
        return trap is not None and isinstance(trap.site, ScriptSite) and trap.site.is_part(target)

    def robots_source(self, host: str) -> str:
        """The host whose robots.txt counts for this one, redirects followed."""
        known = self.hosts.find(host)
        return self.hosts[known.robots_source].name if known else host

    def robots_borrowers(self, host: str) -> int:
        """How many other hosts' robots.txt redirect to this one's."""
        known = self.hosts.find(host)
        return self._borrowers[known.number] if known else 0

    @cached_property
    def _borrowers(self) -> Counter[int]:
        return Counter(host.robots_source for host in self.hosts if host.robots_source != host.number)

    def truth(self, agent: str = "", seeds: Iterable[str] | None = None, policy: WalkPolicy = DEFAULT_POLICY) -> Truth:
        """What a crawler of that name finds from those seeds (by default: our own agent, `seeds()`)."""
        starts = [self.atlas.locate_url(url) for url in (self.seeds() if seeds is None else seeds)]
        spots = [located.spot for located in starts if located]
        return walk(self.atlas, self.documents, agent or self.spec.agent, spots, policy)

    def expected_body(self, url: str, now: int = 0) -> bytes | None:
        """The decoded body of a page when it answers with 200; None when it never does, or does not exist."""
        located = self.atlas.locate_url(url)
        if located is None:
            return None
        role = self.atlas.role(self.hosts[located.spot.host], located.spot.page)
        if role in _FAILURE_STATUS or role in _FAULTS or self.atlas.onward(located.spot):
            return None
        return self._document(located.spot, self.version(located.spot, now)).body

    def version(self, spot: Spot, now: int) -> int:
        """Which edition of a page is served at that wall time (UTC milliseconds)."""
        interval = self._change_interval_ms(spot)
        return now // interval if interval else 0

    def answer(self, host_name: str, target: str, headers: Mapping[str, str], now: int, tries: int = 0) -> ServedAnswer:
        """What the host answers: header names in lower case, `now` in UTC milliseconds, `tries` made before."""
        host = self.hosts.find(host_name)
        if host is None:
            trap = self.traps.find(host_name)
            return self._trap_answer(trap, target, headers, now) if trap else _plain_error(421)
        if target == "/robots.txt":
            answer = self._robots_answer(host, tries)
        else:
            answer = self._page_answer(host, target, headers, now, tries)
        delay_ms = host.latency_ms
        if target == "/robots.txt" and host.robots is RobotsKind.SLOW:
            delay_ms = self.spec.timing.slow_ms
        return replace(answer, delay_s=delay_ms / 1000, close=answer.close or host.closing)

    def _trap_answer(self, trap: TrapHost, target: str, headers: Mapping[str, str], now: int) -> ServedAnswer:
        return replace(self.traps.answer(trap, target, headers, now), delay_s=self.traps.latency_s)

    def _find(self, host_name: str, target: str) -> Located | None:
        host = self.hosts.find(host_name)
        return self.atlas.locate(host, target) if host else None

    def _robots_answer(self, host: Host, tries: int) -> ServedAnswer:
        match host.robots:
            case RobotsKind.MISSING:
                return _plain_error(404)
            case RobotsKind.DENIED:
                return _plain_error(403)
            case RobotsKind.BROKEN:
                return _plain_error(500)
            case RobotsKind.BUSY if tries < _BUSY_ROBOTS_TRIES:
                return self._busy(503)
            case RobotsKind.MOVED:
                location = self.atlas.origin(self.hosts[host.robots_source]) + "/robots.txt"
                return write_answer(301, [("Location", location)], b"")
            case kind:
                media = "text/html" if kind is RobotsKind.HTML else "text/plain"
                return write_answer(200, [("Content-Type", media)], robots_text(host, self.spec.agent))

    def _page_answer(self, host: Host, target: str, headers: Mapping[str, str], now: int, tries: int) -> ServedAnswer:
        located = self._locate(host.name, target)
        if located is None:
            return _plain_error(404)
        role = self.atlas.role(host, located.spot.page)
        if role in _FAILURE_STATUS:
            return _plain_error(_FAILURE_STATUS[role])
        if role in RECOVERING and tries < RECOVERING[role]:
            return self._busy(429 if role is Role.LIMITED else 503, told=role is not Role.BUSY_TWICE)
        goal = self.atlas.onward(located.spot)
        if goal is None and (located.slashless or (role is Role.CLEANED and located.tracked)):
            goal = located.spot
        if goal is not None:
            return self._redirect(located.spot, goal)
        return self._broken(self._content(located.spot, role, headers, now), role)

    def _redirect(self, spot: Spot, goal: Spot) -> ServedAnswer:
        status = _REDIRECT_STATUSES[draw(self.spec.seed, Salt.WIRE, spot.host, spot.page) % 5]
        whole = goal.host != spot.host or spot.page % 2
        location = self.atlas.identity(goal) if whole else self.atlas.target(goal)
        answer = write_answer(status, [("Location", location)], error_document(status).body)
        return replace(answer, respells=goal == spot)

    def _content(self, spot: Spot, role: Role, headers: Mapping[str, str], now: int) -> ServedAnswer:
        wire, bits = self.spec.wire, draw(self.spec.seed, Salt.WIRE, spot.host + 1, spot.page)
        version = self.version(spot, now)
        document = self._document(spot, version)
        out = [("Content-Type", document.content_type)]
        if role is Role.ARTICLE:
            validators = self._validators(spot, version, now)
            out += validators.items()
            if validators and _not_modified(validators, headers):
                return write_answer(304, out, b"")
        if role is Role.NOINDEX and spot.page % 2:
            out.append(("X-Robots-Tag", "noindex"))
        codings = accepted_codings(headers.get("accept-encoding", ""))
        coding = codings[bits % len(codings)] if codings and fraction(bits) < wire.compressed else ""
        framing = Framing.LENGTH
        if role not in _FAULTS and bits >> 3 & 1023 < 1024 * wire.odd_framing:
            framing = Framing.CLOSE if bits >> 13 & 3 == 0 else Framing.CHUNKED
        return write_answer(200, out, document.body, framing=framing, coding=coding)

    def _broken(self, answer: ServedAnswer, role: Role) -> ServedAnswer:
        if role is Role.DRIP:
            return replace(answer, bytes_per_s=self.spec.timing.drip_bytes_s)
        if role not in _FAULTS:
            return answer
        kept = 0 if role in _SILENT else len(answer.head) + len(answer.payload) // 2
        return replace(answer, fault=_FAULTS[role], fault_after=kept, close=True)

    def _busy(self, status: int, *, told: bool = True) -> ServedAnswer:
        seconds = max(1, round(self.spec.timing.retry_after_s)) if told and self.spec.timing.retry_after_s else 0
        document = error_document(status)
        out = [("Content-Type", document.content_type), *([("Retry-After", str(seconds))] if seconds else [])]
        answer = write_answer(status, out, document.body)
        return replace(answer, retry_after_ms=seconds * 1000, counts_tries=True)

    def _change_interval_ms(self, spot: Spot) -> int:
        bits = draw(self.spec.seed, Salt.VERSION, spot.host, spot.page)
        if spot.page >= self.hosts[spot.host].articles or fraction(bits) >= self.spec.wire.changing:
            return 0
        return round(1000 * self.spec.timing.change_s) * (1, 4, 24)[bits % 3]

    def _validators(self, spot: Spot, version: int, now: int) -> dict[str, str]:
        """ETag and Last-Modified of an article: right for most, stuck or always new for those that lie."""
        bits = draw(self.spec.seed, Salt.WIRE, spot.host + 2, spot.page)
        if fraction(bits) >= self.spec.wire.validators:
            return {}
        changed_at = version * self._change_interval_ms(spot)
        if bits >> 8 & 1023 < 1024 * self.spec.wire.lying:
            version, changed_at = (0, 0) if bits & 1 else (now, now)
        etag = f'{"W/" if bits & 2 else ""}"{spot.host:x}-{spot.page:x}-{version:x}"'
        both = {"ETag": etag, "Last-Modified": formatdate(max(changed_at, 10**12) // 1000, usegmt=True)}
        return {name: value for place, (name, value) in enumerate(both.items()) if (bits >> 2) % 3 != place}


def _not_modified(validators: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """RFC 9110, 13.2.2: If-None-Match is asked first, and alone, when it is there."""
    wanted = headers.get("if-none-match")
    if wanted is not None:
        tags = {tag.strip().removeprefix("W/") for tag in wanted.split(",")}
        return validators.get("ETag", "").removeprefix("W/") in tags
    since = headers.get("if-modified-since")
    if since is None or "Last-Modified" not in validators:
        return False
    try:
        return parsedate_to_datetime(validators["Last-Modified"]) <= parsedate_to_datetime(since)
    except (TypeError, ValueError):  # no date, or one without a zone: as if the header were not there
        return False


def _door(site: TrapSite) -> Door:
    return Door.REFUSING if isinstance(site, BundleSite) and site.is_dead else Door.OPEN


def _plain_error(status: int) -> ServedAnswer:
    document = error_document(status)
    return write_answer(status, [("Content-Type", document.content_type)], document.body)
