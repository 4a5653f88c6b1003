"""`why`, `status` and what people decide, on a frontier that is driven by hand: every wait and refusal in words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from nephila.config import write_stored
from nephila.control.by_command import noting_in
from nephila.control.changes import Changes
from nephila.frontier.embedded import LmdbFrontier
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import UsageError
from nephila.model.outcome import (
    DeferReason,
    Deferred,
    Done,
    Dropped,
    OriginRules,
    Outcome,
    Release,
    Retry,
    RulesKind,
    RulesLearned,
    Settlement,
)
from nephila.model.policy import DomainPolicy, Tier
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import (
    BudgetSettings,
    FrontierSettings,
    LimitSettings,
    PolitenessSettings,
    ScopeSettings,
    Settings,
    TrapSettings,
)
from nephila.model.task import Candidate, Lease, Pace, RobotsTask
from nephila.node.addressing import identifier_of
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.engines import policy_of
from nephila.node.inspect import open_view
from nephila.node.operating import open_operator
from nephila.store import SqliteCatalogue
from nephila.testing.contracts.catalogue import sample_row
from nephila.urls import Address

T = TypeVar("T")
SEGMENT = SegmentId("segment-1")
QUIET = Settings(
    scope=ScopeSettings(mode="all"),
    limits=LimitSettings(max_pages_per_host=100_000),
    politeness=PolitenessSettings(delay_s=0.0),
    frontier=FrontierSettings(sync=False, linger_ms=0.0),
)
AT_REST = Release(0, Pace(0))


@dataclass
class Driven:
    """A crawl directory whose frontier is driven by hand."""

    out: Path
    settings: Settings
    stored: int = 0

    def run(self, act: Callable[[LmdbFrontier], Awaitable[T]]) -> T:
        """Do something with the frontier, as a crawl would."""

        async def opened() -> T:
            path = CrawlDirectory(self.out).frontier
            frontier = LmdbFrontier(path, SystemClock(), policy_of(self.settings), threaded=False)
            try:
                return await act(frontier)
            finally:
                await frontier.close()

        return asyncio.run(opened())

    def addresses(self, frontier: LmdbFrontier, urls: Sequence[str]) -> list[Address]:
        found = [identifier_of(self.settings, frontier.secret).identify(url) for url in urls]
        return [one for one in found if isinstance(one, Address)]

    def admit(self, *urls: str, depth: int = 1) -> None:
        async def act(frontier: LmdbFrontier) -> None:
            await frontier.admit([Candidate(one, depth) for one in self.addresses(frontier, urls)])

        self.run(act)

    def fetch(
        self, outcome: Callable[[int], Outcome], *links: str, pages: int = 1, release: Release = AT_REST
    ) -> list[str]:
        """Claim pages one after the other and let each end so, with these links; which they were."""
        return self.run(lambda frontier: self._fetch(frontier, outcome, links, pages, release))

    async def _fetch(
        self,
        frontier: LmdbFrontier,
        outcome: Callable[[int], Outcome],
        links: Sequence[str],
        pages: int,
        release: Release,
    ) -> list[str]:
        found = [Candidate(one, 2) for one in self.addresses(frontier, links)]
        asked: list[str] = []
        while len(asked) < pages and (leases := await frontier.claim(1, 60.0)):
            (lease,) = leases
            if await self._robots(frontier, lease):
                continue
            for task in lease.tasks:
                self.stored += 1
                asked.append(task.url)
                last = task is lease.tasks[-1]
                settlement = Settlement(task, outcome(self.stored), found)
                settled = await frontier.settle(lease.token, [settlement], release if last else None)
                assert settled.accepted
        return asked

    async def _robots(self, frontier: LmdbFrontier, lease: Lease) -> bool:
        task = lease.tasks[0]
        if not isinstance(task, RobotsTask):
            return False
        now = frontier.snapshot().now
        rules = OriginRules(task.origin, RulesKind.ALLOW_ALL, b"", SystemClock().wall_ms(), now + 10**9)
        await frontier.settle(lease.token, [Settlement(task, RulesLearned(rules))], AT_REST)
        return True

    def why(self, url: str) -> tuple[dict[str, str], dict[str, object]]:
        answer = open_view(self.out).why(url)
        return dict(answer.lines), dict(answer.data)


def done(number: int, *, text: bytes = b"", duplicate: bool = False, status: int = 200) -> Done:
    """A page stored somewhere, with a text of its own unless one is given."""
    ref = RecordRef(SEGMENT, number * 100, 100, number * 100 + 100)
    text = text or number.to_bytes(8, "little")
    page = status < 400
    return Done(ref, status, text.ljust(32), duplicate=duplicate, text=text, shape=text, page=page)


def known(number: int) -> Done:
    """A page whose bytes were stored before."""
    return done(number, duplicate=True, text=b"the same")


@pytest.fixture
def drive(tmp_path: Path) -> Callable[..., Driven]:
    def begin(settings: Settings = QUIET) -> Driven:
        out = tmp_path / "crawl"
        with CrawlDirectory(out).held():
            pass
        write_stored(out, settings)
        SqliteCatalogue(CrawlDirectory(out).catalogue).close()
        driven = Driven(out, settings)
        driven.admit("https://a.example.org/")
        return driven

    return begin


Drive = Callable[..., Driven]


# Queued and waiting


def test_why_tells_the_class_and_the_points_of_a_queued_url(drive: Drive) -> None:
    """T8, R1: in which class, how many points, of what they are made, and since when."""
    driven = drive()
    lines, data = driven.why("https://a.example.org/")
    assert lines["verdict"] == "queued: it waits for its turn"
    assert "class" in lines["depth"]
    assert "of 100 points (" in lines["priority"]
    assert "depth +18" in lines["priority"]
    assert "it was never fetched" in lines["priority"]
    points = data["score"]
    assert isinstance(points, dict)
    assert points["points"] == points["rank"] + points["depth"]


def test_why_tells_of_a_pause_by_hand(drive: Drive) -> None:
    """T8, R4: who paused what, and how it goes on."""
    driven = drive()
    operator = open_operator(driven.out)
    operator.set_policy("example.org", DomainPolicy(paused=True))
    assert driven.fetch(done) == []
    lines, data = driven.why("https://a.example.org/")
    assert lines["because"] == "a person paused example.org (`policy DIR DOMAIN --resume`)"
    assert data["reason"] == "paused"
    operator.set_policy("example.org", None)
    lines, data = driven.why("https://a.example.org/")
    assert "because" not in lines
    assert driven.fetch(done) == ["https://a.example.org/"]


def test_why_tells_the_hours_of_a_policy(drive: Drive) -> None:
    """T8, R4: which hours, and when the next one begins."""
    driven = drive()
    hour = time.gmtime().tm_hour
    later = ((hour + 3) % 24, (hour + 3) % 24 + 1)
    open_operator(driven.out).set_policy("example.org", DomainPolicy(hours=(later,)))
    assert driven.fetch(done) == []
    lines, data = driven.why("https://a.example.org/")
    assert lines["because"] == f"the policy of example.org has it asked at {later[0]}-{later[1]} UTC only"
    assert data["reason"] == "hours"
    assert " h)" in lines["due"] or " min)" in lines["due"]


def test_why_tells_of_a_domain_that_fails(drive: Drive) -> None:
    """T8, P4: too many errors, and until when it is left alone."""
    settings = replace(QUIET, politeness=replace(QUIET.politeness, pause_window=10, pause_s=3600.0))
    driven = drive(settings)
    driven.admit(*(f"https://a.example.org/{number}" for number in range(20)))
    asked = driven.fetch(lambda _: Retry(600_000, "timeout", "30 s"), pages=9)
    assert len(asked) == 8  # one lease: the pause holds from the next claim on
    left = next(url for url in (f"https://a.example.org/{number}" for number in range(20)) if url not in asked)
    lines, data = driven.why(left)
    assert "more than 50% of the last 10 requests to example.org failed" in lines["because"]
    assert data["reason"] == "domain_errors"
    failed, told = driven.why(asked[0])
    assert failed["because"] == "it failed and will be tried again (timeout: 30 s)"
    assert "in 10 min" in failed["due"]
    assert told["state"] == "delayed"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (DeferReason.DNS, "the name of its host could not be looked up"),
        (DeferReason.ADDRESS, "the server behind its host has had as many requests of ours as it may have at once"),
        (DeferReason.CRAWL_DELAY, "its robots.txt asks for a very long delay"),
        (DeferReason.RETRY_AFTER, "the server said when to come back"),
    ],
)
def test_why_tells_what_a_url_is_deferred_for(drive: Drive, reason: DeferReason, said: str) -> None:
    """T8, F2: the reason and the time."""
    driven = drive()
    driven.fetch(lambda _: Deferred(400_000, reason))
    lines, data = driven.why("https://a.example.org/")
    assert (lines["because"], data["reason"]) == (said, reason)
    assert "in 6.6" in lines["due"] or "in 6.7" in lines["due"]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (DeferReason.CRAWL_DELAY, "the robots.txt of its host asks for 10 min between requests"),
        (DeferReason.RETRY_AFTER, "the server said when to come back"),
        (DeferReason.ROBOTS, "robots.txt cannot be fetched"),
    ],
)
def test_why_tells_what_a_whole_host_waits_for(drive: Drive, reason: DeferReason, said: str) -> None:
    """T8, P1, P3: of a URL that could go but for its host."""
    driven = drive()
    release = Release(600_000, Pace(0, 600_000), reason=reason)
    driven.fetch(done, "https://a.example.org/next", release=release)
    lines, data = driven.why("https://a.example.org/next")
    assert said in lines["because"]
    assert data["reason"] == reason
    assert "in 10 min" in lines["due"]


def test_why_tells_of_a_host_that_has_had_its_pages(drive: Drive) -> None:
    """T8, S3: how many, and which limit."""
    driven = drive(replace(QUIET, limits=LimitSettings(max_pages_per_host=1)))
    driven.fetch(done, "https://a.example.org/next", pages=2)
    lines, _ = driven.why("https://a.example.org/next")
    assert "its host has had 1 pages in this cycle, the limit is 1 (--max-pages-per-host" in lines["because"]


# Parked


def test_why_tells_what_a_host_has_earned_and_what_earns_more(drive: Drive) -> None:
    """T8, F5: over the budget of its host; it comes back when that has earned more."""
    budget = BudgetSettings(first_urls=2, urls_per_page=1, urls_per_referrer=5)
    driven = drive(replace(QUIET, budget=budget))
    urls = [f"https://a.example.org/{number}" for number in range(6)]
    driven.fetch(done, *urls)
    parked = [url for url in urls if driven.why(url)[1]["state"] == "parked"]
    assert len(parked) == 4
    lines, data = driven.why(parked[0])
    assert lines["verdict"].startswith("parked: known and kept")
    assert "2 of 3 URLs were let in" in lines["because"] or "3 of 3 URLs were let in" in lines["because"]
    assert "began with 2; each page with new content earns 1 more (1 did)" in lines["because"]
    assert "each other domain that links to it 5 (none does)" in lines["because"]
    assert data["reason"] == "over_budget"
    assert open_view(driven.out).status().parked == {"over_budget": 4}


def test_why_tells_that_a_domain_has_more_hosts_than_it_has_earned(drive: Drive) -> None:
    """T8, F5: a host too many for its domain."""
    driven = drive(replace(QUIET, budget=BudgetSettings(first_hosts=1, hosts_per_useful_host=2, hosts_per_referrer=3)))
    driven.admit("https://b.example.org/")
    lines, data = driven.why("https://b.example.org/")
    assert "its domain example.org has more hosts than it has earned: 1 of 1 are taken on, 1 wait" in lines["because"]
    assert "each host with new content earns 2 more (0 did)" in lines["because"]
    assert data["state"] == "parked"


def test_why_tells_of_coverage(drive: Drive) -> None:
    """T8, S4: how many domains are reached, and how many are wanted."""
    driven = drive(replace(QUIET, limits=LimitSettings(target_domains=3)))
    driven.fetch(done, "https://a.example.org/next", "https://other.net/")
    lines, data = driven.why("https://a.example.org/next")
    assert "1 of 3 were fetched (--target-domains)" in lines["because"]
    assert data["reason"] == "coverage"
    assert driven.why("https://other.net/")[1]["state"] == "queued"
    assert open_view(driven.out).status().target_domains == 3


TRAPPED = replace(QUIET, traps=TrapSettings(slow_after=4, stop_after=8, slow_s=600.0, probe_s=86_400.0))


def trapped(drive: Drive) -> tuple[Driven, list[str]]:
    """A host whose numbered pages are all the same; the URLs that are held back by then."""
    driven = drive(TRAPPED)
    urls = [f"https://a.example.org/x/{number}" for number in range(30)]
    driven.admit(*urls)
    driven.fetch(known, pages=30)
    held = [url for url in urls if driven.why(url)[1]["state"] == "parked"]
    assert len(held) > 20
    return driven, held


def test_why_and_traps_tell_the_same_evidence(drive: Drive) -> None:
    """T8, T2: the sentence of the tally that holds it, and when the next one is tried."""
    driven, held = trapped(drive)
    lines, data = driven.why(held[0])
    assert lines["because"].startswith("URLs of its shape stopped bringing anything new (`traps DIR a.example.org`")
    assert "URLs of the shape /x/{" in lines["evidence"]
    assert data["reason"] == "trap"
    assert "next try" in lines
    found, in_all = open_operator(driven.out).traps(10, "a.example.org")
    assert in_all == len(found) > 0
    narrow = found[0] if found[0].pattern.startswith("/x/{") else found[1]
    assert narrow.evidence == lines["evidence"]
    assert sum(one.parked for one in found) == len(held)
    assert (narrow.host, narrow.fresh, narrow.state) == ("a.example.org", 0, "slowed")
    assert narrow.duplicates == narrow.fetched == narrow.barren
    assert narrow.next_try_at > narrow.since
    assert open_operator(driven.out).traps(10, "b.example.org")[0] == []
    assert len(open_operator(driven.out).traps(1, "")[0]) == 1
    assert open_view(driven.out).status().traps == in_all


def test_a_trap_that_is_let_go_starts_anew(drive: Drive) -> None:
    """T2, K1: what lay on its shelf comes back, on record; a pattern that is none is told."""
    driven, held = trapped(drive)
    operator = open_operator(driven.out, noting_in(driven.out))
    changes = Changes(CrawlDirectory(driven.out).changes, SystemClock())
    with pytest.raises(UsageError, match="is no trap on") as caught:
        operator.release_trap("a.example.org", "/y/{n}")
    assert "/x/" in caught.value.hint
    with pytest.raises(UsageError, match="is no trap on"):
        operator.release_trap("b.example.org", "*")
    assert changes.last(10) == []
    for trap in operator.traps(10, "a.example.org")[0]:
        waiting, back = operator.release_trap("a.example.org", trap.pattern)
        assert (waiting, back) == (trap.parked, trap.parked)
        noted = changes.last(1)[0]
        assert (noted.what, noted.target, noted.state) == ("release", "a.example.org", "done")
        assert noted.after == {"pattern": trap.pattern, "parked": waiting, "back_at_once": back}
    assert operator.traps(10, "")[0] == []
    assert all(driven.why(url)[1]["state"] == "queued" for url in held)
    assert driven.fetch(done, pages=1)[0] in held


# Refused, dropped, done


def test_why_tells_which_block_refused_and_when_it_was_taken_back(drive: Drive) -> None:
    """T8, T7: with the reason that was given; from the next claim and admission on."""
    driven = drive()
    operator = open_operator(driven.out)
    entry = operator.block("HTTPS://A.example.org/private", "they  asked us")
    assert (entry.pattern, entry.reason) == ("https://a.example.org/private", "they asked us")
    operator.block("other.net", "not ours")
    driven.fetch(done, "https://a.example.org/private/x", "https://www.other.net/y")
    for url, rule in (
        ("https://a.example.org/private/x", "https://a.example.org/private: they asked us"),
        ("https://www.other.net/y", "other.net: not ours"),
    ):
        lines, data = driven.why(url)
        assert (data["state"], data["reason"]) == ("refused", "blocked")
        assert lines["because"] == f"a person blocked it ({rule})"
        assert lines["found"] == "on https://a.example.org/"
    never, _ = driven.why("https://other.net/never")
    assert never["if it were found"] == "refused: a person blocked it (other.net: not ours)"
    assert [one.pattern for one in operator.blocks()] == ["https://a.example.org/private", "other.net"]
    assert operator.unblock("Other.net")
    assert not operator.unblock("other.net")
    assert "taken back" in driven.why("https://www.other.net/y")[0]["since then"]
    for pattern, reason in (("a b", "x"), ("a.org", "  ")):
        with pytest.raises(UsageError):
            operator.block(pattern, reason)


def test_the_catalogue_shows_which_domains_are_blocked(drive: Drive) -> None:
    """T7, W3: by the command, whether a crawl runs or not: all of a domain, not a host or a part of it."""
    crawl = drive()
    rows = [replace(sample_row(number), domain=f"{name}.example") for number, name in enumerate("abc")]
    catalogue = SqliteCatalogue(CrawlDirectory(crawl.out).catalogue)
    catalogue.record(rows, ())

    def shown() -> set[str]:
        return {one.domain for one in catalogue.leading_domains(9) if one.blocked}

    operator = open_operator(crawl.out)
    operator.block("a.example", "they asked us")
    operator.block("www.b.example", "they asked us")
    operator.block("https://c.example/private", "they asked us")
    assert shown() == {"a.example"}
    operator.block("b.example", "they asked us again")
    assert shown() == {"a.example", "b.example"}
    assert operator.unblock("a.example")
    assert shown() == {"b.example"}
    catalogue.close()
    CrawlDirectory(crawl.out).catalogue.unlink()
    operator.block("a.example", "a crawl without a catalogue has blocks as well")
    assert not CrawlDirectory(crawl.out).catalogue.exists()


def test_why_tells_of_a_queued_url_of_a_blocked_host(drive: Drive) -> None:
    """T8, T7: it was queued before the block."""
    driven = drive()
    open_operator(driven.out).block("example.org", "asked us to")
    assert driven.fetch(done) == []
    lines, data = driven.why("https://a.example.org/")
    assert (lines["because"], data["reason"]) == ("a person blocked example.org: asked us to", "blocked")


def test_why_tells_which_policy_found_it_too_deep(drive: Drive) -> None:
    """T8, R4: how deep it is, and what the policy allows."""
    driven = drive()
    open_operator(driven.out).set_policy("example.org", DomainPolicy(max_depth=1))
    driven.fetch(done, "https://a.example.org/deep")
    lines, data = driven.why("https://a.example.org/deep")
    assert (data["state"], data["reason"]) == ("refused", "policy_depth")
    assert "depth 2, the policy of example.org allows 1" in lines["because"]


def test_why_tells_of_a_url_that_robots_forbid(drive: Drive) -> None:
    """T8, P1: dropped, with the rule."""
    driven = drive()
    driven.fetch(lambda _: Dropped("robots", "line 3: Disallow: /"))
    lines, _ = driven.why("https://a.example.org/")
    assert lines["because"] == "robots.txt forbids it (line 3: Disallow: /)"


def test_why_asks_robots_as_the_agent_of_the_policy(drive: Drive) -> None:
    """R4, P6: the rules for who we say we are there."""
    driven = drive()

    async def learn(frontier: LmdbFrontier) -> None:
        (lease,) = await frontier.claim(1, 60.0)
        (task,) = lease.tasks
        assert isinstance(task, RobotsTask)
        body = b"User-agent: Polite\nDisallow: /x\n\nUser-agent: *\nAllow: /\n"
        rules = OriginRules(task.origin, RulesKind.RULES, body, 1, frontier.snapshot().now + 10**9, 200)
        await frontier.settle(lease.token, [Settlement(task, RulesLearned(rules))], AT_REST)

    driven.run(learn)
    assert "forbids" not in driven.why("https://a.example.org/x")[0]["robots.txt"]
    open_operator(driven.out).set_policy("example.org", DomainPolicy(user_agent="Polite/1 (+https://b.org)"))
    assert "forbids it: line 2" in driven.why("https://a.example.org/x")[0]["robots.txt"]


def test_why_tells_when_a_page_is_visited_next(drive: Drive) -> None:
    """T8, R2: a planned visit, and how often it was missing."""
    driven = drive()
    driven.fetch(done)
    lines, data = driven.why("https://a.example.org/")
    assert "in 7 days" in lines["next visit"]
    assert (data["interval_s"], data["visits"], data["gone"]) == (604_800, 1, False)
    status = open_view(driven.out).status()
    assert (status.planned, status.waiting_for_a_time) == (1, {})
    assert "changes" not in lines, "nothing was compared yet"
    driven.run(lambda frontier: frontier.begin_cycle())
    driven.fetch(done)
    lines, data = driven.why("https://a.example.org/")
    assert lines["changes"].startswith("about every ")
    assert data["change_rate"]


def test_why_tells_of_a_page_that_is_missing_but_not_proven_gone(drive: Drive) -> None:
    """T8, R5: one 404 proves nothing."""
    driven = drive()
    driven.fetch(lambda number: done(number, status=404))
    lines, data = driven.why("https://a.example.org/")
    assert lines["missing"].startswith("once since ")
    assert lines["missing"].endswith(": not yet proven gone")
    assert (data["missing"], data["gone"]) == (1, False)


# Status and policies


def test_status_counts_what_the_catalogue_has_without_counting(drive: Drive) -> None:
    """C4, W3: captures and bytes are kept with every change, and stay right when they are recorded again."""
    driven = drive()
    catalogue = SqliteCatalogue(CrawlDirectory(driven.out).catalogue)
    rows: list[CaptureRow] = [sample_row(number) for number in range(5)]
    catalogue.record(rows, ())
    catalogue.record(rows[2:], ())
    status = open_view(driven.out).status()
    assert (status.captures, status.bytes) == (5, 5 * 1_700)
    catalogue.rebuild(rows[:2])
    assert (catalogue.capture_count(), catalogue.wire_bytes()) == (2, 2 * 1_700)
    catalogue.close()


def test_status_tells_class_age_and_pauses(drive: Drive) -> None:
    """F1, F4, F7, R4: of the queue as it is."""
    driven = drive()
    driven.admit("https://a.example.org/1", "https://a.example.org/2")
    open_operator(driven.out).set_policy("example.org", DomainPolicy(paused=True))
    open_operator(driven.out).set_policy("other.net", DomainPolicy(tier=Tier.LOW))
    status = open_view(driven.out).status()
    assert sum(status.queued.values()) == sum(sum(ages.values()) for ages in status.ages.values()) == 3
    assert sum(ages["under_4h"] for ages in status.ages.values()) == 3
    assert (status.paused, status.paused_domains, status.policies) == (1, ("example.org",), 2)


def test_a_policy_that_says_nothing_is_none(drive: Drive) -> None:
    """R4: so that what is listed means something; a host or URL stands for its domain."""
    driven = drive()
    operator = open_operator(driven.out)
    operator.set_policy("example.org", DomainPolicy(delay_s=2.0))
    operator.set_policy("example.org", DomainPolicy())
    assert operator.policies() == {}
    assert operator.domain_of("WWW.Example.co.uk") == ("example.co.uk", "www.example.co.uk")
    assert operator.domain_of("https://b\u00fccher.example/x") == ("xn--bcher-kva.example", "xn--bcher-kva.example")
    with pytest.raises(UsageError, match="no domain"):
        operator.domain_of("not a domain")
    with pytest.raises(UsageError, match="cannot be sent"):
        operator.set_policy("example.org", DomainPolicy(user_agent="a\nb"))
    assert operator.policies() == {}
