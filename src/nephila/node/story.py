"""The story of one URL, told from recorded decisions: found where, refused why, fetched when, due when (T8)."""

from __future__ import annotations

from datetime import UTC, datetime

from nephila.frontier.embedded import LmdbFrontierView
from nephila.frontier.scope import Scope
from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.politeness import Politeness
from nephila.model.outcome import OriginRules, RulesKind
from nephila.urls import Address, origin_of

Lines = list[tuple[str, str]]

REASONS = {
    "scope": "outside the scope of the crawl",
    "excluded": "an exclude pattern matches",
    "excluded_builtin": "a built-in exclude: forms, sessions and carts are not crawled",
    "extension": "its file extension says that it is no page",
    "depth": "too many hops from a seed",
    "nofollow": "the page or the link asks not to follow it",
    "robots": "robots.txt forbids it",
    "address": "it leads to an address that is not public",
    "redirect_loop": "it redirects in a circle",
    "too_many_redirects": "it redirects too often",
    "robots_unavailable": "the site's robots.txt cannot be fetched, so nothing may be asked until it can",
    "retry": "it failed and will be tried again",
    "cooling": "it was fetched too short a while ago",
    "host_limit": "its host has had its pages for this cycle",
    "crawl_delay": "its robots.txt asks for a very long delay",
    "retry_after": "the server said when to come back",
    "stopped": "the crawl was stopped",
}

VERDICTS = {
    "queued": "queued: it waits for its turn",
    "in_progress": "in progress: it is being fetched now",
    "delayed": "delayed: it waits for its time",
    "stored_pending": "stored, not yet confirmed as durable",
    "completed": "fetched and stored",
    "dropped": "decided against",
    "dead_letter": "given up",
    "refused": "found, but not admitted",
}

CAPTURES_SHOWN = 5


class StoryTeller:
    """Tells stories of one crawl."""

    def __init__(
        self, view: LmdbFrontierView, catalogue: Catalogue, scope: Scope, politeness: Politeness, clock: Clock
    ) -> None:
        self._view = view
        self._catalogue = catalogue
        self._scope = scope
        self._politeness = politeness
        self._clock = clock

    def tell(self, address: Address) -> tuple[Lines, dict[str, object], bool]:
        """Lines for people, data for scripts, and whether the URL was ever met."""
        story = self._view.story(address.host, address.fingerprint)
        rules = self._view.rules(origin_of(address.url))
        lines: Lines = [("URL", address.url)]
        data: dict[str, object] = {"key": address.key, "fingerprint": address.fingerprint.hex(), "host": address.host}
        if story is None and rules is not None and address.url == f"{rules.origin}/robots.txt":
            lines.append(("verdict", "the robots.txt of its origin: fetched as such, and kept apart from pages"))
            data["state"] = "robots"
        elif story is None:
            self._never_met(address, lines, data)
        else:
            self._verdict(story, lines, data)
            self._captures(address, lines, data)
        self._robots(address, rules, lines, data)
        return lines, data, data["state"] != "unknown"

    def _never_met(self, address: Address, lines: Lines, data: dict[str, object]) -> None:
        lines.append(("verdict", "never met: no page of this crawl links to it, and it was no seed"))
        data["state"] = "unknown"
        refused = self._scope.judge(address, 1)
        if refused is not None:
            reason, detail = refused
            lines.append(("if it were found", f"refused: {REASONS.get(reason, reason)} ({detail})"))
            data["would_be_refused"] = {"reason": reason, "detail": detail}

    def _verdict(self, story: UrlStory, lines: Lines, data: dict[str, object]) -> None:
        lines.append(("verdict", VERDICTS[story.state]))
        if story.reason:
            told = REASONS.get(story.reason, story.reason)
            lines.append(("because", f"{told} ({story.detail})" if story.detail else told))
        lines.append(("found", f"on {story.via}" if story.via else "given as a seed"))
        if story.state != "refused":
            lines.append(("depth", f"{story.depth} hops from a seed, class {story.level.name.lower()}"))
        lines.append(("first met", _moment(story.admitted_at)))
        if story.settled_at and story.state != "refused":
            lines.append(("last decided", _moment(story.settled_at)))
        if story.retries:
            lines.append(("retries", str(story.retries)))
        if story.due_in_ms is not None:
            due_at = self._clock.wall_ms() + story.due_in_ms
            lines.append(("due", f"{_moment(due_at)} (in {story.due_in_ms / 1000:.0f} s)"))
        elif story.state == "queued" and story.host_wait_ms:
            lines.append(("due", f"its host may be asked again in {story.host_wait_ms / 1000:.1f} s"))
        elif story.state == "completed":
            lines.append(("due", "in the next cycle (--new-cycle)"))
        data.update(
            state=story.state,
            reason=story.reason,
            detail=story.detail,
            via=story.via,
            depth=story.depth,
            level=story.level.name.lower(),
            retries=story.retries,
            hops=story.hops,
            cycle=story.cycle,
            admitted_at=story.admitted_at,
            settled_at=story.settled_at,
            status=story.status,
            due_in_ms=story.due_in_ms,
            host_wait_ms=story.host_wait_ms,
        )

    def _captures(self, address: Address, lines: Lines, data: dict[str, object]) -> None:
        captures = self._catalogue.captures_of(address.fingerprint)
        for row in captures[:CAPTURES_SHOWN]:
            lines.append(("capture", _capture_line(row)))
            if row.duplicate_of:
                lines.append(("duplicate of", row.duplicate_of))
        if len(captures) > CAPTURES_SHOWN:
            lines.append(("", f"and {len(captures) - CAPTURES_SHOWN} earlier ones"))
        data["captures"] = [
            {
                "at": row.at,
                "status": row.status,
                "content_type": row.content_type,
                "length": row.length,
                "kind": row.kind,
                "storage_key": f"{row.segment}:{row.offset}",
                "duplicate_of": row.duplicate_of,
                "truncated": row.truncated,
                "url": row.url,
            }
            for row in captures
        ]

    def _robots(self, address: Address, rules: OriginRules | None, lines: Lines, data: dict[str, object]) -> None:
        if rules is None:
            lines.append(("robots.txt", "not fetched"))
            data["robots"] = None
            return
        permission = self._politeness.permits(rules, address.url)
        fetched = f"fetched {_moment(rules.stored_at)}" + (f", HTTP {rules.status}" if rules.status else "")
        match rules.kind:
            case RulesKind.ALLOW_ALL:
                text = f"no restrictions ({fetched})"
            case RulesKind.UNAVAILABLE | RulesKind.NO_HOST:
                text = f"unavailable: {rules.detail} ({fetched})"
            case RulesKind.RULES if permission.rule:
                allowed = "allows" if permission.allowed else "forbids"
                text = f"{allowed} it: line {permission.line}, {permission.rule} ({fetched})"
            case RulesKind.RULES:
                text = f"says nothing against it ({fetched})"
        lines.append(("robots.txt", text))
        data["robots"] = {
            "kind": str(rules.kind),
            "allowed": permission.allowed,
            "line": permission.line,
            "rule": permission.rule,
            "fetched_at": rules.stored_at,
            "status": rules.status,
        }


def _capture_line(row: CaptureRow) -> str:
    kind = "" if row.kind == "response" else f", {row.kind}"
    cut = f", cut ({row.truncated})" if row.truncated else ""
    return f"{_moment(row.at)}  HTTP {row.status}, {row.length:,} bytes{kind}{cut}, {row.segment} at {row.offset}"


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
