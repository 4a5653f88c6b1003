"""What holds a URL back that could be fetched otherwise, in sentences with figures and times (T8).

The story of a URL says *that* it waits; here stands *why now* and *until when*: the state of its host and of its
domain, what people decided for them, what was earned, what is held against its shape. Read from what is in force at
this moment: a pause that was lifted a second ago is not told any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from nephila.frontier import budget, order
from nephila.frontier import rank as ranks
from nephila.frontier.blocklist import Blocklist
from nephila.frontier.embedded.holding_off import opens_in
from nephila.frontier.embedded.records import DomainState
from nephila.frontier.referral import doublings, heard
from nephila.frontier.score import bonus_of, score
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.repute import Repute
from nephila.model.outcome import DeferReason
from nephila.model.policy import Block, DomainPolicy
from nephila.model.settings import Settings
from nephila.urls import registrable_domain

from .operated import DomainStanding, HostStanding, OperatedView
from .reasons import REASONS

_ORDINARY = DomainPolicy()


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds a URL, or its whole host, back."""

    reason: str
    sentence: str
    wait_ms: int | None = None
    """How long, where that is known."""


class Circumstances:
    """The host and the domain of one URL, as they stand now."""

    def __init__(
        self, view: OperatedView, settings: Settings, host: str, *, ordered: bool, repute: Repute | None = None
    ) -> None:
        self._settings = settings
        self._repute = None if ordered else repute
        self._ordered = ordered
        self._now = view.timeline.now()
        self._wall_ms = view.timeline.wall_of(self._now)
        self._view = view
        self._blocks = Blocklist(view.blocks())
        self.domain_name = registrable_domain(host)
        self.host: HostStanding | None = view.host(host)
        self.domain: DomainStanding = view.domain(self.domain_name) or DomainState(self.domain_name)
        self.policy: DomainPolicy = view.policy(self.domain_name) or _ORDINARY

    def block(self, host: str, url: str, fingerprint: bytes = b"") -> Block | None:
        """The block that forbids a URL now."""
        return self._blocks.find(host, url, fingerprint)

    def hold(self, story: UrlStory) -> Hold | None:
        """Why a queued URL is not asked for now, beyond its turn; None when only its turn is missing."""
        if self.host is None:
            return None
        block = self.block(story.host, story.url, story.fingerprint)
        if block is not None:
            return Hold(DeferReason.BLOCKED, f"a person blocked {block.pattern}: {block.reason}")
        if self.policy.paused:
            return Hold(DeferReason.PAUSED, f"a person paused {self.domain_name} (`policy DIR DOMAIN --resume`)")
        if self.domain.paused_until > self._now:
            return self._failing()
        opens_in_s = opens_in(self.policy, self._wall_ms // 1000)
        if opens_in_s:
            hours = ", ".join(f"{first}-{last}" for first, last in self.policy.hours)
            sentence = f"the policy of {self.domain_name} has it asked at {hours} UTC only"
            return Hold(DeferReason.HOURS, sentence, opens_in_s * 1000)
        return self._host_hold(self.host, story)

    def _failing(self) -> Hold:
        politeness, wait_ms = self._settings.politeness, self.domain.paused_until - self._now
        sentence = (
            f"more than {politeness.pause_share:.0%} of the last {politeness.pause_window} requests to "
            f"{self.domain_name} failed: it is left alone until {moment(self._wall_ms + wait_ms)}"
        )
        return Hold(DeferReason.ERRORS, sentence, wait_ms)

    def _host_hold(self, host: HostStanding, story: UrlStory) -> Hold | None:
        """Why its host as a whole is not asked."""
        wait_ms = story.host_wait_ms or None
        match host.reason:
            case "":
                return None if wait_ms is None else Hold("rest", "its host rests between two requests", wait_ms)
            case DeferReason.HOST_LIMIT:
                limit = self._settings.limits.max_pages_per_host
                sentence = f"its host has had {host.fetched_in_cycle:,} pages in this cycle, the limit is {limit:,} "
                sentence += "(--max-pages-per-host; the next cycle counts anew)"
            case DeferReason.CRAWL_DELAY:
                sentence = f"the robots.txt of its host asks for {span(host.crawl_delay_ms / 1000)} between requests"
            case reason:
                sentence = REASONS.get(reason, reason)
        return Hold(host.reason, sentence, wait_ms)

    def parked(self, story: UrlStory) -> Hold:
        """Why a URL is on a shelf, and what brings it back."""
        match story.reason:
            case DeferReason.BUDGET:
                return Hold(story.reason, self._over_budget())
            case DeferReason.COVERAGE:
                return Hold(
                    story.reason,
                    f"its domain is known, and new domains are looked for first: {self._view.snapshot().domains:,} of "
                    f"{self._settings.limits.target_domains:,} were fetched (--target-domains); it comes back then",
                )
            case _:
                sentence = f"{REASONS[DeferReason.TRAP]} (`traps DIR {story.host}` lists it and can let it go)"
                return Hold(story.reason, sentence, story.due_in_ms)

    def _over_budget(self) -> str:
        if self.host is None:
            return "more than its host has earned"
        return self._hosts_over() if self.host.over else self._urls_over(self.host)

    def _hosts_over(self) -> str:
        settings, domain = self._settings.budget, self.domain
        allowed = budget.host_allowance(settings, domain.useful, domain.referrers, self.policy.quality)
        return (
            f"its domain {domain.name} has more hosts than it has earned: {domain.hosts:,} of {allowed:,} are taken "
            f"on, {domain.hosts_over:,} wait, this one among them. It began with {settings.first_hosts:,}; each host "
            f"with new content earns {settings.hosts_per_useful_host:,} more ({domain.useful:,} did), each other "
            f"domain that links to it {settings.hosts_per_referrer:,} ({_about(domain.referrers)}){self._quality()}"
        )

    def _urls_over(self, host: HostStanding) -> str:
        settings, queued = self._settings.budget, host.queue_length
        if queued >= settings.queued_per_host:
            return (
                f"its host has {queued:,} URLs in its queue, and {settings.queued_per_host:,} is the most at once "
                "(budget.queued_per_host): it comes back as they are fetched"
            )
        allowed = budget.url_allowance(settings, host.fresh, host.referrers, self.policy.quality)
        return (
            f"its host has used up what it has earned: {host.admitted:,} of {allowed:,} URLs were let in. It began "
            f"with {settings.first_urls:,}; each page with new content earns {settings.urls_per_page:,} more "
            f"({host.fresh:,} did), each other domain that links to it {settings.urls_per_referrer:,} "
            f"({_about(host.referrers)}){self._quality()}"
        )

    def _quality(self) -> str:
        return "" if self.policy.quality == 1.0 else f"; by its policy of quality {self.policy.quality:g}"

    def score(self, story: UrlStory) -> dict[str, int]:
        """The points of a queued URL: in all, as it stands in its queue now, and what they are made of."""
        settings = self._settings.priority
        referrers = 0 if self.host is None else self.host.referrers
        known = heard(self._repute, story.host, referrers)
        authority = ranks.authority(story.rank, self._view.mean_rank(), doublings(known))
        waited_s = max(0, self._wall_ms - story.admitted_at) / 1000
        now_step = 0 if self._ordered else self._now // order.step_ms(settings)
        parts = {
            "rank": score(settings, authority, 10**6),
            "depth": score(settings, 0.0, story.depth),
            "kind": bonus_of(settings, story.url),
            "waiting": 0 if self._ordered else min(100, int(100 * waited_s / settings.ageing_s)),
        }
        tier = score(settings, 0.0, 10**6, 50, tier=self.policy.tier) - 50
        return {"points": order.score_at(story.step, now_step), **parts, "tier": tier}


def _about(referrers: int) -> str:
    """How many domains link here, as well as that is known."""
    return f"about {budget.referrers(referrers):,.0f} do" if referrers else "none does"


_END_OF_CALENDAR_S = 253_402_300_799
"""9999-12-31 23:59:59"""


def moment(at_ms: int) -> str:
    """An instant for people."""
    return datetime.fromtimestamp(min(at_ms / 1000, _END_OF_CALENDAR_S), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(seconds: float) -> str:
    """A duration for people: ``0.5 s``, ``90 s``, ``15 min``, ``6.5 h``, ``2 days``."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.3g} days"
