"""What the answer to a request for robots.txt means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.interfaces.politeness import RobotsRedirect
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, Truncation
from nephila.model.outcome import OriginRules, RulesKind, RulesLearned
from nephila.model.settings import RobotsSettings
from nephila.model.task import RobotsTask
from nephila.politeness import judge_robots

ORIGIN = "https://h.example"
TASK = RobotsTask(ORIGIN, f"{ORIGIN}/robots.txt")
NOW, WALL = 5_000, 1_800_000_000_000
DAY_MS = 86_400_000


def answered(status: int, body: bytes = b"", location: str = "", truncated: Truncation | None = None) -> Fetched:
    headers = (("location", location),) if location else ()
    return Fetched(TASK.url, b"", b"", b"", status, headers, body, "192.0.2.1", 0, 0, 10, truncated)


def failed(kind: FailureKind = FailureKind.TIMEOUT) -> FetchFailed:
    return FetchFailed(TASK.url, kind, "no answer within 10 s", sent=True)


def judge(
    answer: Answer,
    last: OriginRules | None = None,
    *,
    task: RobotsTask = TASK,
    robots: RobotsSettings | None = None,
    now: int = NOW,
    wall: int = WALL,
) -> OriginRules:
    learned = judge_robots(task, answer, last, robots or RobotsSettings(), now, wall)
    assert isinstance(learned, RulesLearned)
    assert learned.rules.origin == ORIGIN
    return learned.rules


GOOD = judge(answered(200, b"User-agent: *\nDisallow: /x\n"))


def test_an_answer_brings_rules_for_a_day() -> None:
    """P1: 2xx, fresh for 24 h."""
    assert (
        OriginRules(ORIGIN, RulesKind.RULES, b"User-agent: *\nDisallow: /x\n", WALL, NOW + DAY_MS, 200, 0, "HTTP 200")
        == GOOD
    )


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_4xx_means_no_restrictions(status: int) -> None:
    """P1: RFC 9309, 2.3.1.3, old rules or not."""
    for last in (None, GOOD):
        rules = judge(answered(status), last)
        assert (rules.kind, rules.body, rules.fresh_until) == (RulesKind.ALLOW_ALL, b"", NOW + DAY_MS)
        assert rules.status == status


@pytest.mark.parametrize("answer", [answered(429), answered(500), answered(503), answered(999), failed()])
def test_without_good_rules_a_failure_forbids_everything(answer: Answer) -> None:
    """P1: 5xx, 429, unreachable; tried again soon."""
    rules = judge(answer)
    assert (rules.kind, rules.body, rules.failing_since) == (RulesKind.UNAVAILABLE, b"", NOW)
    assert rules.fresh_until == NOW + 300_000
    assert rules.detail


@pytest.mark.parametrize("answer", [answered(429), answered(502), failed(), failed(FailureKind.NO_SUCH_NAME)])
def test_the_last_good_rules_stay_in_force(answer: Answer) -> None:
    """P1: body, version and all, but they are asked for again soon."""
    rules = judge(answer, GOOD, now=NOW + DAY_MS, wall=WALL + DAY_MS)
    assert (rules.kind, rules.body, rules.stored_at, rules.status) == (RulesKind.RULES, GOOD.body, WALL, 200)
    assert (rules.failing_since, rules.fresh_until) == (NOW + DAY_MS, NOW + DAY_MS + 300_000)


def test_no_restrictions_are_no_good_rules() -> None:
    """P1: a site that had no robots.txt and now fails is left alone."""
    assert judge(answered(500), judge(answered(404))).kind is RulesKind.UNAVAILABLE


@pytest.mark.parametrize("last", [None, GOOD])
def test_the_wait_doubles_up_to_its_limit_and_ends_after_thirty_days(last: OriginRules | None) -> None:
    """P1: 5 min, 10, 20, ... 6 h; then no restrictions, still asked again."""
    elapsed, waits, rules = 0, [], last
    while rules is None or rules.kind is not RulesKind.ALLOW_ALL:
        rules = judge(answered(503), rules, now=NOW + elapsed, wall=WALL + elapsed)
        waits.append(rules.fresh_until - NOW - elapsed)
        elapsed += waits[-1]
    assert waits[:9] == [300_000 * factor for factor in (1, 2, 4, 8, 16, 32, 64, 72, 72)]
    assert max(waits) == 21_600_000
    assert 30 * DAY_MS <= elapsed - waits[-1] < 31 * DAY_MS
    assert rules.body == b""


def test_a_good_answer_ends_the_failing() -> None:
    """P1: and the next failure counts from anew."""
    failing = judge(answered(503), GOOD)
    again = judge(answered(200, b"new"), failing, wall=WALL + 1)
    assert (again.body, again.failing_since, again.stored_at) == (b"new", 0, WALL + 1)


@pytest.mark.parametrize("jump_ms", [-400 * DAY_MS, 400 * DAY_MS])
def test_a_wall_clock_that_jumps_neither_opens_a_site_nor_makes_us_ask_for_ever(jump_ms: int) -> None:
    """P1: what counts is the time that has really passed."""
    first = judge(answered(503))
    rules = judge(answered(503), first, now=NOW + 300_000, wall=WALL + jump_ms)
    assert (rules.kind, rules.fresh_until) == (RulesKind.UNAVAILABLE, NOW + 300_000 + 600_000)


def test_a_crawl_that_rested_for_a_month_has_seen_nothing_fail_meanwhile() -> None:
    """P1: two failures thirty days apart are no thirty days of failures."""
    rules = judge(answered(503), judge(answered(503)), now=NOW + 31 * DAY_MS, wall=WALL + 31 * DAY_MS)
    assert rules.kind is RulesKind.UNAVAILABLE
    assert rules.fresh_until == NOW + 31 * DAY_MS + 600_000


def test_a_setting_makes_it_permissive() -> None:
    """P1: unreachable means no restrictions, but not instead of rules that are known."""
    permissive = RobotsSettings(permissive=True)
    rules = judge(failed(), robots=permissive)
    assert (rules.kind, rules.fresh_until) == (RulesKind.ALLOW_ALL, NOW + 300_000)
    assert judge(failed(), GOOD, robots=permissive).kind is RulesKind.RULES


@pytest.mark.parametrize("kind", [FailureKind.ADDRESS, FailureKind.NO_SUCH_NAME])
def test_a_host_that_cannot_or_may_not_be_reached_is_no_host(kind: FailureKind) -> None:
    """P1, H6: whatever the settings and however long."""
    rules = judge(failed(kind), robots=RobotsSettings(permissive=True, give_up_s=0))
    assert rules.kind is RulesKind.NO_HOST
    assert rules.detail.startswith(kind)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_followed_over_hosts_up_to_a_limit(status: int) -> None:
    """P1: RFC 9309, 2.3.1.2: five hops, then as 4xx."""
    answer = answered(status, location="//other.example/r\xc3\xbc#f")
    for hops in range(5):
        task = RobotsTask(ORIGIN, TASK.url, hops)
        moved = judge_robots(task, answer, GOOD, RobotsSettings(), NOW, WALL)
        assert moved == RobotsRedirect("https://other.example/r%C3%BC", hops + 1)
    assert judge(answer, GOOD, task=RobotsTask(ORIGIN, TASK.url, 5)).kind is RulesKind.ALLOW_ALL


@pytest.mark.parametrize("location", ["", "http://", "mailto:x@y.example", "ftp://h/robots.txt"])
def test_a_redirect_to_nowhere_is_no_robots_file(location: str) -> None:
    """P1: as 4xx."""
    assert judge(answered(302, location=location)).kind is RulesKind.ALLOW_ALL


@pytest.mark.parametrize(
    ("body", "kept"),
    [(b"Allow: /a\nDisallow: /ab", b"Allow: /a\n"), (b"Allow: /a\rDisallow: /ab", b"Allow: /a\r"), (b"Allow: /a", b"")],
)
def test_a_cut_file_ends_with_its_last_whole_line(body: bytes, kept: bytes) -> None:
    """P1: half a rule may say the opposite of the whole."""
    assert judge(answered(200, body, truncated=Truncation.LENGTH)).body == kept
    assert judge(answered(200, body)).body == body


def test_what_is_over_the_cap_is_cut_off() -> None:
    """P1: 500 KiB."""
    rules = judge(answered(200, b"Allow: /a\n" * 60_000))
    assert len(rules.body) == 512_000
    assert rules.body.endswith(b"\n")


@given(
    st.lists(st.tuples(st.sampled_from([200, 204, 301, 404, 429, 500, 503]), st.integers(0, 40 * DAY_MS)), max_size=12),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_failures_never_open_a_site_before_their_time(history: list[tuple[int, int]], permissive: bool) -> None:
    """P1: only 4xx, redirects to nowhere, thirty days or the setting lead to no restrictions."""
    rules: OriginRules | None = None
    now, robots = NOW, RobotsSettings(permissive=permissive)
    for status, pause in history:
        now += pause
        rules = judge(answered(status, b"User-agent: *\n"), rules, robots=robots, now=now, wall=WALL + now)
        assert rules.fresh_until > now
        assert bool(rules.body) == (rules.kind is RulesKind.RULES)
        if rules.kind is RulesKind.ALLOW_ALL and status in {429, 500, 503}:
            assert permissive or now - rules.failing_since >= 30 * DAY_MS
