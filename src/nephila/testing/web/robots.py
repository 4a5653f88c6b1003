"""robots.txt of every kind, and what each of them means, known by construction.

The rules that forbid parts of a host are few and fixed; beside each stands a plain test that says the same of a
decoded path. A crawler's matcher is judged by these tests and never asked.
"""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import unquote

from .hosts import Host, HostBook
from .spec import RobotsKind

PARTS = ("Disallow: /private/", "Allow: /private/open/", "Disallow: /*.print$", "Disallow: /*?q=")
SIGNALS = "Content-Signal: search=yes, ai-train=no"
CAP_BYTES = 500 * 1024
"""RFC 9309, 2.5: what comes later is not read."""
_FILLER = "# a line of no meaning, of which this file has a great many, as generated files do\n"


class Ruling(StrEnum):
    """What the robots.txt of a host comes to for one agent."""

    ALL = "all"
    """Everything is allowed."""
    PARTS = "parts"
    """Everything but the forbidden parts."""
    NOTHING = "nothing"
    UNAVAILABLE = "unavailable"
    """Server errors: nothing may be fetched until it answers."""


_RULED_BY_PARTS = frozenset(
    {
        RobotsKind.PARTS,
        RobotsKind.DELAY,
        RobotsKind.BUSY,
        RobotsKind.BOM,
        RobotsKind.HUGE,
        RobotsKind.SLOW,
        RobotsKind.SIGNAL,
    }
)


def in_forbidden_part(target: str) -> bool:
    """Whether `PARTS` forbids a request target."""
    path, mark, _ = target.partition("?")
    path = unquote(path)
    if path.startswith("/private/"):
        return not path.startswith("/private/open/")
    return (path.endswith(".print") and not mark) or "?q=" in target


def ruling(hosts: HostBook, host: Host, agent: str, *, recovered: bool = True) -> Ruling:
    """What a host's robots.txt means for an agent; `recovered`: whether its passing failures are over."""
    kind = hosts[host.robots_source].robots
    ours = agent.lower() == hosts.spec.agent.lower()
    if kind is RobotsKind.BUSY and not recovered:
        return Ruling.UNAVAILABLE
    if kind in _RULED_BY_PARTS:
        return Ruling.PARTS
    match kind:
        case RobotsKind.BROKEN:
            return Ruling.UNAVAILABLE
        case RobotsKind.OURS:
            return Ruling.PARTS if ours else Ruling.NOTHING
        case RobotsKind.BANNED:
            return Ruling.NOTHING if ours else Ruling.ALL
        case _:
            return Ruling.ALL


def robots_text(host: Host, agent: str) -> bytes:
    """The body of a host's robots.txt, for kinds that have one."""
    everybody = ["User-agent: *", *PARTS]
    match host.robots:
        case RobotsKind.OPEN:
            lines = ["User-agent: *", "Disallow:"]
        case RobotsKind.DELAY:
            lines = [*everybody, f"Crawl-delay: {host.crawl_delay_ms / 1000:g}"]
        case RobotsKind.OURS:
            ours = [f"User-agent: {agent.lower()}", *PARTS[:2], "", f"User-agent: {agent}", *PARTS[2:]]
            lines = ["User-agent: *", "Disallow: /", "", *ours]
        case RobotsKind.BANNED:
            lines = [f"User-agent: {agent}", "Disallow: /", "", "User-agent: *", "Disallow:"]
        case RobotsKind.BOM:
            lines = ["\N{BYTE ORDER MARK}User-agent: *", *PARTS]
        case RobotsKind.HUGE:
            filler = _FILLER * (CAP_BYTES // len(_FILLER) + 1)
            lines = [*everybody, filler, "User-agent: *", "Disallow: /"]
        case RobotsKind.SIGNAL:
            lines = ["User-agent: *", SIGNALS, *PARTS]
        case RobotsKind.HTML:
            lines = ["<!doctype html><html><head><title>Welcome</title></head>", "<body><h1>Hello</h1></body></html>"]
        case _:
            lines = everybody
    return "\n".join([*lines, ""]).encode()
