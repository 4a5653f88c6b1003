"""The story of one URL, told from recorded decisions: found where, refused why, fetched when, due when (T8).

What was decided once is read from its record; what holds at this moment is asked of `circumstances`.
"""

from __future__ import annotations

import shlex

from nephila.frontier.scope import Scope
from nephila.interfaces.aliases import Aliases
from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.politeness import Politeness
from nephila.interfaces.repute import Repute
from nephila.model.outcome import OriginRules, RulesKind
from nephila.model.settings import Settings
from nephila.urls import Address, origin_of

from .circumstances import Circumstances, Hold, moment, span
from .importance.grades import DirectoryRanks
from .operated import OperatedView
from .reasons import REASONS, VERDICTS
from .redirected import RedirectTargets

Lines = list[tuple[str, str]]

CAPTURES_SHOWN = 5
NOT_FOUND = 404
HTTP_ERROR = 400
DAY_S = 86_400
_NO_TARGETS = RedirectTargets()


class StoryTeller:
    """Tells stories of one crawl."""

    def __init__(
        self,
        view: OperatedView,
        catalogue: Catalogue,
        scope: Scope,
        politeness: Politeness,
        clock: Clock,
        settings: Settings,
        aliases: Aliases | None = None,
        ranks: Repute | None = None,
    ) -> None:
        """`aliases` are asked what a URL that was never met would be, `ranks` what the link graph says of it.

        Scores go by `ranks`; those of a directory have something to tell people, too.
        """
        self._aliases = aliases
        self._ranks = ranks
        self._view = view
        self._settings = settings
        self._catalogue = catalogue
        self._scope = scope
        self._politeness = politeness
        self._clock = clock

    def tell(self, address: Address, targets: RedirectTargets = _NO_TARGETS) -> tuple[Lines, dict[str, object], bool]:
        """Lines for people, data for scripts, and whether the URL was ever met; `targets` are those of redirects."""
        story = self._view.story(address.host, address.fingerprint)
        rules = self._view.rules(origin_of(address.url))
        ordered = self._settings.fetch.concurrency == 1
        around = Circumstances(self._view, self._settings, address.host, ordered=ordered, repute=self._ranks)
        lines: Lines = [("URL", address.url)]
        data: dict[str, object] = {"key": address.key, "fingerprint": address.fingerprint.hex(), "host": address.host}
        if story is None and rules is not None and address.url == f"{rules.origin}/robots.txt":
            lines.append(("verdict", "the robots.txt of its origin: fetched as such, and kept apart from pages"))
            data["state"] = "robots"
        elif story is None:
            self._never_met(address, around, lines, data)
        else:
            self._verdict(story, lines, data)
            self._present(story, around, lines, data)
            self._importance(address, around.domain_name, lines, data)
            self._captures(address, targets, lines, data)
        self._robots(address, around.policy.user_agent, rules, lines, data)
        return lines, data, data["state"] != "unknown"

    def _never_met(self, address: Address, around: Circumstances, lines: Lines, data: dict[str, object]) -> None:
        most = self._settings.scope.links_per_page
        taken = f"at most {most:,} of each: scope.links_per_page"
        lines.append(("verdict", f"never met: it was no seed, and is not among the links taken from pages ({taken})"))
        data["state"] = "unknown"
        refused = self._scope.judge(address, 1) or self._alias(address)
        if refused is None and (block := around.block(address.host, address.url, address.fingerprint)) is not None:
            refused = "blocked", f"{block.pattern}: {block.reason}"
        if refused is not None:
            reason, detail = refused
            lines.append(("if it were found", f"refused: {REASONS.get(reason, reason)} ({detail})"))
            data["would_be_refused"] = {"reason": reason, "detail": detail}

    def _alias(self, address: Address) -> tuple[str, str] | None:
        """What it would be admitted as, by the rules that were learned (D4)."""
        rules = self._aliases.in_force() if self._aliases is not None else None
        own = rules[address.host] if rules is not None else None
        found = own.resolve(address) if own is not None else None
        return ("alias", f"{found.url}: {found.detail}") if found is not None and found.url else None

    def _verdict(self, story: UrlStory, lines: Lines, data: dict[str, object]) -> None:
        """What was decided, when, and from which page."""
        verdict = "fetched, stored, and taken down" if story.reason == "taken_down" else VERDICTS[story.state]
        lines.append(("verdict", verdict))
        if story.reason and story.state not in {"parked", "queued"}:
            told = REASONS.get(story.reason, story.reason)
            lines.append(("because", f"{told} ({story.detail})" if story.detail else told))
        lines.append(("found", f"on {story.via}" if story.via else "given as a seed"))
        if story.state != "refused":
            lines.append(("depth", f"{_hops(story.depth)} from a seed, class {story.level.name.lower()}"))
        lines.append(("first met", moment(story.admitted_at)))
        if story.settled_at and story.state != "refused":
            lines.append(("last decided", moment(story.settled_at)))
        if story.retries:
            lines.append(("retries", str(story.retries)))
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

    def _present(self, story: UrlStory, around: Circumstances, lines: Lines, data: dict[str, object]) -> None:
        """What holds it now, and when it is next: what is true at this moment, whatever was decided."""
        match story.state:
            case "queued":
                self._queued(story, around, lines, data)
            case "parked":
                hold = around.parked(story)
                lines.insert(2, ("because", hold.sentence))
                if story.detail:
                    lines.insert(3, ("evidence", story.detail))
                self._due(hold, "next try", lines, data)
            case "delayed":
                self._due(Hold(story.reason, "", story.due_in_ms), "due", lines, data)
            case "completed" if story.reason == "taken_down":
                block = around.block(story.host, story.url, story.fingerprint)
                lines += [("never again", f"a person blocked {block.pattern}: {block.reason}")] if block else []
            case "completed" | "stored_pending":
                self._visits(story, lines, data)
            case "refused" | "dropped" if story.reason == "blocked":
                if around.block(story.host, story.url, story.fingerprint) is None:
                    lines.append(("since then", "the block was taken back: it is queued when it is found again"))
            case "dead_letter":
                lines.append(("to try again", f"`nephila dead DIR --retry {shlex.quote(story.url)}`"))

    def _queued(self, story: UrlStory, around: Circumstances, lines: Lines, data: dict[str, object]) -> None:
        if story.detail:
            lines.insert(2, ("last failed", f"{REASONS.get(story.reason, story.reason)} ({story.detail})"))
        hold = around.hold(story)
        if hold is not None:
            lines.insert(2, ("because", hold.sentence))
            data["reason"] = hold.reason
            self._due(hold, "due", lines, data)
        points = around.score(story)
        supply = "was fetched before and is due again" if story.again else "was never fetched"
        parts = ", ".join(f"{name} {points[name]:+d}" for name in points if name != "points" and points[name])
        made = f" ({parts}, by what is known now)" if parts else ""
        lines.append(("priority", f"{points['points']} of 100 points{made}; rank {story.rank} of 127; it {supply}"))
        data["score"], data["rank"], data["again"] = points, story.rank, story.again

    def _importance(self, address: Address, domain: str, lines: Lines, data: dict[str, object]) -> None:
        """What PageRank over the link graph says of it and of its domain, where that was computed (R3)."""
        ranks = self._ranks if isinstance(self._ranks, DirectoryRanks) else None
        page = ranks.of_page(address.fingerprint) if ranks is not None else None
        known = ranks.of_domain(domain) if ranks is not None else None
        if page is not None:
            rank, said = page
            times = rank * said.count
            lines.append(("PageRank", f"{times:,.2f} times the mean of {said.count:,} pages on {moment(said.made_at)}"))
            data["pagerank"] = {"rank": rank, "times_mean": times, "pages": said.count, "made_at": said.made_at}
        if known is not None:
            found, said = known
            times = found.rank * said.count
            mean = f"{times:,.2f} times the mean of {said.count:,} domains"
            lines.append(("of its domain", f"PageRank {mean}, {found.referring:,} of which link to it"))
            told = {"rank": found.rank, "times_mean": times, "domains": said.count, "made_at": said.made_at}
            data["domain_pagerank"] = {"domain": domain, **told, "referring": found.referring, "grade": found.grade}

    def _due(self, hold: Hold, label: str, lines: Lines, data: dict[str, object]) -> None:
        data["waits_for"] = {"reason": hold.reason, "sentence": hold.sentence, "wait_ms": hold.wait_ms}
        if hold.wait_ms is not None:
            at = moment(self._clock.wall_ms() + hold.wait_ms)
            lines.append((label, f"{at} (in {span(hold.wait_ms / 1000)})"))

    def _visits(self, story: UrlStory, lines: Lines, data: dict[str, object]) -> None:
        """How often it was visited, what came of it, and when it is next (R2, R5)."""
        if story.visits > 1:
            found = f"{story.visits} visits, its content changed in {story.changes} of them"
            lines.append(("visits", f"{found}; last seen to change {moment(story.changed_at)}"))
        rate = None if story.outlook is None else story.outlook.change_rate
        if rate is not None:
            lines.append(("changes", f"about every {span(DAY_S / rate)}, as its visits have it"))
        if story.status == NOT_FOUND and self._was_answered(story):
            lines.append(("soft 404", "its host sends the same page for URLs that cannot exist: it counts as missing"))
            data["soft_404"] = True
        if story.missing:
            proof = "proven gone" if story.reason == "gone" else "not yet proven gone"
            often = "once" if story.missing == 1 else f"{story.missing} times in a row"
            lines.append(("missing", f"{often} since {moment(story.missing_since)}: {proof}"))
        if story.due_in_ms is None:
            command = "fleet cycle" if self._settings.fleet.crawl else "--new-cycle"
            lines.append(("due", f"in the next cycle ({command})"))
        else:
            at = moment(self._clock.wall_ms() + story.due_in_ms)
            lines.append(("next visit", f"{at} (in {span(story.due_in_ms / 1000)})"))
        data.update(
            visits=story.visits,
            changes=story.changes,
            changed_at=story.changed_at,
            interval_s=story.interval_s,
            change_rate=rate,
            missing=story.missing,
            gone=story.reason == "gone",
        )

    def _was_answered(self, story: UrlStory) -> bool:
        """Whether the last answer was no error by its own status."""
        captures = self._catalogue.captures_of(story.fingerprint)
        return bool(captures) and captures[0].status < HTTP_ERROR

    def _captures(self, address: Address, targets: RedirectTargets, lines: Lines, data: dict[str, object]) -> None:
        captures = self._catalogue.captures_of(address.fingerprint)
        for row in captures[:CAPTURES_SHOWN]:
            lines.append(("capture", _capture_line(row)))
            if target := targets.of(row):
                lines.append(("leads to", target))
            if row.duplicate_of:
                lines.append(("duplicate of", row.duplicate_of))
            if row.near_duplicate_of:
                lines.append(("nearly the same", f"as {row.near_duplicate_of}, which was stored before"))
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
                "near_duplicate_of": row.near_duplicate_of,
                "truncated": row.truncated,
                "url": row.url,
                "redirects_to": targets.of(row),
            }
            for row in captures
        ]

    def _robots(
        self, address: Address, agent: str, rules: OriginRules | None, lines: Lines, data: dict[str, object]
    ) -> None:
        """What robots.txt says of it, to the agent that a policy has us be there."""
        if rules is None:
            lines.append(("robots.txt", "not fetched"))
            data["robots"] = None
            return
        permission = self._politeness.permits(rules, address.url, agent)
        fetched = f"fetched {moment(rules.stored_at)}" + (f", HTTP {rules.status}" if rules.status else "")
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


def _hops(depth: int) -> str:
    return "1 hop" if depth == 1 else f"{depth} hops"


def _capture_line(row: CaptureRow) -> str:
    kind = "" if row.kind == "response" else f", {row.kind}"
    cut = f", cut ({row.truncated})" if row.truncated else ""
    return f"{moment(row.at)}  HTTP {row.status}, {row.length:,} bytes{kind}{cut}, {row.segment} at {row.offset}"
