"""robots.txt files that change and fail, and which of them a crawler is bound by.

A *flapping* host has several versions of its rules, one after the other. A crawler is bound by the last one that was
sent to it whole; an answer that failed binds nobody to anything new. Where the crawler died right after an answer, or
its lease was lost under it, it may not have understood that one: then either version may be the one in force, until
another is sent.

`Rulebook` implements `auditor.HouseRules`: what does not flap is as the web says.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import StrEnum

from nephila.testing.web import SimulatedWeb
from nephila.testing.web.hosts import Door, Host
from nephila.testing.web.robots import PARTS, in_forbidden_part
from nephila.testing.web.spec import RobotsKind
from nephila.testing.web.wire import ServedAnswer, write_answer

_STEADY = frozenset({RobotsKind.MOVED, RobotsKind.DELAY, RobotsKind.BROKEN, RobotsKind.BUSY})
"""Kinds that have something else to show."""


class Version(StrEnum):
    """What a robots.txt says at one time."""

    OPEN = "open"
    PARTS = "parts"
    BANNED = "banned"
    MISSING = "missing"

    def allows(self, target: str) -> bool:
        """Whether a target may be asked for under it."""
        return self is not Version.BANNED and not (self is Version.PARTS and in_forbidden_part(target))

    def answer(self) -> ServedAnswer:
        """How it is sent."""
        if self is Version.MISSING:
            return write_answer(404, [("Content-Type", "text/plain")], b"not here\n")
        rules = {Version.OPEN: ("Disallow:",), Version.PARTS: PARTS, Version.BANNED: ("Disallow: /",)}[self]
        return write_answer(200, [("Content-Type", "text/plain")], "\n".join(("User-agent: *", *rules, "")).encode())


@dataclass(slots=True)
class _Flapping:
    """One host whose rules change."""

    versions: list[tuple[float, Version]]
    """From when on (milliseconds of the servers' clock) each holds."""
    sent: list[tuple[float, Version]] = field(default_factory=list)
    """What was answered whole, and when that ended."""
    doubted: set[Version] = field(default_factory=set)
    """What may be in force instead of what was sent last."""


class Rulebook:
    """The rules of all hosts."""

    def __init__(self, web: SimulatedWeb, draw: random.Random, share: float, lasts_s: float) -> None:
        self._web = web
        self._flapping: dict[str, _Flapping] = {}
        self._read_ms: dict[str, float] = {}
        """When the robots.txt of a host was sent whole for the first time, and understood."""
        self._doubt_ms = (0.0, 0.0)
        """Answers that end within this span may not be understood, either."""
        lenders = {host.robots_source for host in web.hosts if host.robots_source != host.number}
        for host in web.hosts:
            if draw.random() < share and _may_flap(host) and host.number not in lenders:
                turns = sorted(draw.uniform(0.0, lasts_s * 1000) for _ in range(draw.choice((1, 2, 4))))
                versions = [(0.0, draw.choice(list(Version)))]
                versions += [(at_ms, draw.choice(list(Version))) for at_ms in turns]
                self._flapping[host.name] = _Flapping(versions)

    def flaps(self, host: str) -> bool:
        """Whether the host's robots.txt changes."""
        return host in self._flapping

    def version(self, host: str, now_ms: float) -> Version:
        """What the host's robots.txt says now."""
        return [version for at_ms, version in self._flapping[host].versions if at_ms <= now_ms][-1]

    def was_sent(self, host: str, version: Version, now_ms: float) -> bool:
        """An answer with that version ended, whole; whether it says something else than the one before."""
        book = self._flapping[host]
        before = book.sent[-1][1] if book.sent else None
        understood = not self._doubt_ms[0] <= now_ms <= self._doubt_ms[1]
        book.doubted = set() if understood else book.doubted | ({before} if before else set())
        book.sent.append((now_ms, version))
        return before is not None and before is not version

    def was_read(self, host: str, now_ms: float) -> None:
        """A robots.txt was sent whole."""
        self._read_ms.setdefault(host, now_ms)

    def doubt(self, since_ms: float, until_ms: float = 0.0) -> None:
        """Whatever was or will be sent between these may not have been understood."""
        self._doubt_ms = (since_ms, until_ms)
        self._read_ms = {host: at_ms for host, at_ms in self._read_ms.items() if at_ms < since_ms}
        for book in self._flapping.values():
            recent = [version for at_ms, version in book.sent if at_ms >= since_ms]
            earlier = [version for at_ms, version in book.sent if at_ms < since_ms][-1:]
            if recent:
                book.doubted |= {*recent, *earlier}

    # What the auditor asks

    def allowed(self, host_name: str, target: str, agent: str) -> bool:
        """Whether a version that may be in force lets the target be asked for."""
        book = self._flapping.get(host_name)
        if book is None:
            return self._web.allowed(host_name, target, agent)
        return any(version.allows(target) for version in {*book.doubted, *(one for _, one in book.sent[-1:])})

    def required_delay_ms(self, host: str) -> float:
        """As the web says, to who has read it."""
        return self._web.required_delay_ms(host) if host in self._read_ms else 0.0

    def canonical_target(self, host: str, target: str) -> str:
        """As the web says."""
        return self._web.canonical_target(host, target)

    def robots_source(self, host: str) -> str:
        """As the web says."""
        return self._web.robots_source(host)

    def robots_borrowers(self, host: str) -> int:
        """As the web says."""
        return self._web.robots_borrowers(host)

    def is_part(self, host: str, target: str) -> bool:
        """As the web says."""
        return self._web.is_part(host, target)


def _may_flap(host: Host) -> bool:
    return host.number > 0 and host.door is Door.OPEN and host.robots not in _STEADY
