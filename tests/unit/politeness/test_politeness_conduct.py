"""The rules of good conduct as one object, bound to the settings of a crawl."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.interfaces.politeness import RobotsRedirect
from nephila.model.errors import UsageError
from nephila.model.exchange import FailureKind, Fetched, FetchFailed, Truncation
from nephila.model.outcome import Dead, DeferReason, OriginRules, Retry, RulesKind, RulesLearned
from nephila.model.settings import FrontierSettings, PolitenessSettings, RobotsSettings
from nephila.model.task import Level, Pace, PageTask, RobotsTask
from nephila.politeness import StandardPoliteness, conduct
from nephila.urls import Fingerprint

ORIGIN = "https://h.example"
AGENT = "Nephila/0.1 (+https://nephila.invalid/bot)"
WALL = 1_800_000_000_000
TEXT = (
    b"User-agent: nephila\nCrawl-delay: 7\nDisallow: /no\nContent-Signal: ai-train=no\n\nUser-agent: *\nDisallow: /\n"
)


def politeness(**settings: Any) -> StandardPoliteness:
    return StandardPoliteness(replace(PolitenessSettings(), **settings), RobotsSettings(), FrontierSettings(), AGENT)


def rules(body: bytes = TEXT, kind: RulesKind = RulesKind.RULES, origin: str = ORIGIN) -> OriginRules:
    return OriginRules(origin, kind, body, WALL, 10**9, detail="HTTP 503")


def answered(status: int = 200, elapsed_ms: int = 1000, **headers: str) -> Fetched:
    lines = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Fetched(f"{ORIGIN}/x", b"", b"", b"", status, lines, b"", "192.0.2.1", 0, 0, elapsed_ms)


def task(retries: int = 0) -> PageTask:
    return PageTask(Fingerprint(bytes(16)), f"{ORIGIN}/x", 0, Level.MEDIUM, retries=retries)


# Permission


def test_the_group_of_our_own_agent_decides_and_names_its_line() -> None:
    """P1, T8: path and query of the URL, whatever its host and port."""
    polite = politeness()
    for origin in (ORIGIN, "http://h.example:8080"):
        assert polite.permits(rules(), f"{origin}/yes?a=/no").allowed
        refused = polite.permits(rules(), f"{origin}/no?x")
        assert (refused.allowed, refused.line, refused.rule) == (False, 3, "Disallow: /no")


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        (None, True),
        (rules(b"", RulesKind.ALLOW_ALL), True),
        (rules(b"", RulesKind.UNAVAILABLE), False),
        (rules(b"", RulesKind.NO_HOST), False),
    ],
    ids=["none", "allow-all", "unavailable", "no-host"],
)
def test_without_a_text_the_kind_decides(given: OriginRules | None, allowed: bool) -> None:
    """P1: 4xx allows, 5xx and silence forbid, no rules obeyed means all may be asked."""
    permission = politeness().permits(given, f"{ORIGIN}/x")
    assert permission.allowed == allowed
    assert allowed or "HTTP 503" in permission.rule


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_a_robots_txt_says_in_utf_16_what_it_says_in_utf_8(coding: str) -> None:
    """P1, X3: rules, delay and sitemaps, where a mark tells the encoding."""
    mark = "\ufeff" if coding.startswith("utf-16") else ""
    polite, text = politeness(), f"{mark}User-agent: *\r\nDisallow: /no\r\nCrawl-delay: 7\r\n"
    found = rules(f"{text}Sitemap: /m\u00fcp.xml\r\n".encode(coding))
    assert polite.sitemaps(found) == (f"{ORIGIN}/m%C3%BCp.xml",)
    assert polite.sitemaps(rules(text.encode(coding))) == ()
    assert [polite.permits(found, f"{ORIGIN}{path}").allowed for path in ("/no", "/yes")] == [False, True]
    assert polite.release(Pace(1000), answered(), found, WALL).wait_ms == 7000


def test_signals_are_those_of_our_group() -> None:
    """X2, K3: kept with each page."""
    polite = politeness()
    assert "ai-train=no" in polite.signals(rules())
    assert polite.signals(None) == polite.signals(rules(b"", RulesKind.ALLOW_ALL)) == ""


def test_another_version_of_the_rules_is_parsed_anew() -> None:
    """P1: what counts is the text of the version in force, whatever was remembered for the origin before."""
    polite = politeness()
    assert not polite.permits(rules(b"User-agent: *\nDisallow: /a\n"), f"{ORIGIN}/a").allowed
    later = replace(rules(b"User-agent: *\nDisallow: /b\n"), stored_at=WALL + 1)
    assert polite.permits(later, f"{ORIGIN}/a").allowed
    assert not polite.permits(later, f"{ORIGIN}/b").allowed
    assert not polite.permits(
        rules(b"User-agent: *\nDisallow: /b\n", origin="https://i.example"), "https://i/b"
    ).allowed


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """F8: the least recently used goes first, and the last one always stays."""
    monkeypatch.setattr(conduct, "REMEMBERED_BYTES", 4_000)
    polite = politeness()
    texts = [b"User-agent: *\nDisallow: /%d\n" % number for number in range(9)]
    for number, text in enumerate(texts):
        given = rules(text, origin=f"https://h{number}.example")
        assert not polite.permits(given, f"{given.origin}/{number}").allowed
        assert polite._remembered_bytes == sum(weight for _, weight in polite._parsed.values()) <= 4_000
    assert len(polite._parsed) == 4
    polite.permits(rules(b"User-agent: *\n" + b"#" * 500), f"{ORIGIN}/x")
    assert len(polite._parsed) == 1


def test_empty_texts_weigh_something_and_copies_nothing() -> None:
    """F8, Q3: a million hosts with the same few lines take the room of one, and those with none are no exception."""
    polite = politeness()
    for number in range(1_000):
        for text in (b"", b"User-agent: *\nDisallow: /a\n"):
            origin = f"https://h{number}.example"
            assert polite.permits(rules(text, origin=origin), f"{origin}/a").allowed == (not text)
    assert len(polite._parsed) == 2
    assert polite._remembered_bytes > 2 * conduct.PARSED_BYTES
    assert len(polite._at_hand) <= conduct.AT_HAND


def test_rules_are_at_hand_for_all_hosts_that_a_polite_crawl_goes_round() -> None:
    """Q2, F8: of thousands of hosts none pushes another out: their texts are not looked at again in the next round."""
    polite = politeness()
    hosts = [rules(b"User-agent: *\nDisallow: /a\n", origin=f"https://h{number}.example") for number in range(5_000)]
    for one in hosts:
        polite.permits(one, f"{one.origin}/a")
    assert all(polite._at_hand[id(one)][0] is one for one in hosts)


def test_the_largest_files_are_not_all_kept_at_hand() -> None:
    """F8, Q5: a farm of hosts that each have half a megabyte of rules does not fill the memory."""
    polite = politeness()
    kept = [rules(b"#%d" % number + b"#" * 400_000, origin=f"https://h{number}.example") for number in range(20)]
    for one in kept:
        assert polite.permits(one, f"{one.origin}/a").allowed
        assert sum(len(held.body) for held, *_ in polite._at_hand.values()) * conduct.PARSED_RATIO < (
            conduct.AT_HAND_BYTES + 5_000_000
        )


# Release


def test_a_host_rests_its_base_delay_and_a_longer_crawl_delay_binds() -> None:
    """P2: whichever is longer; a host whose rules no longer ask for one is let off."""
    polite = politeness(delay_s=2)
    assert polite.release(Pace(0), answered(), None, WALL).wait_ms == 2000
    slow = polite.release(Pace(2000), answered(), rules(), WALL)
    assert (slow.wait_ms, slow.pace.crawl_delay_ms, slow.elapsed_ms, slow.reason) == (7000, 7000, 1000, None)
    off = polite.release(slow.pace, answered(), rules(b"", RulesKind.ALLOW_ALL), WALL)
    assert off.wait_ms == 2000
    assert polite.release(slow.pace, answered(), None, WALL).wait_ms == 7000, "nothing was said about it"


def test_a_very_long_crawl_delay_is_told_as_the_reason() -> None:
    """P1: over 300 s the host is put off as a whole."""
    release = politeness().release(Pace(0), None, rules(b"User-agent: *\nCrawl-delay: 301\n"), WALL)
    assert (release.wait_ms, release.reason) == (301_000, DeferReason.CRAWL_DELAY)


def test_the_pace_follows_what_was_seen() -> None:
    """P3: slow answers and 503 lengthen it, fast ones bring it back; nothing sent changes nothing."""
    polite = politeness()
    slow = polite.release(Pace(1000), answered(elapsed_ms=3000), None, WALL)
    assert slow.pace.delay_ms == 1500
    busy = polite.release(slow.pace, answered(503, 10), None, WALL)
    assert busy.pace.delay_ms == 3000
    fast = polite.release(busy.pace, answered(200, 10), None, WALL)
    assert fast.pace.delay_ms == 2400
    assert polite.release(fast.pace, None, None, WALL).pace == fast.pace


@pytest.mark.parametrize("status", [429, 503, 301])
def test_retry_after_is_obeyed_up_to_its_ceiling(status: int) -> None:
    """P3: told as the reason, where it is what the host waits for."""
    polite = politeness(max_retry_after_s=100)
    asked = polite.release(Pace(1000), answered(status, retry_after="50"), None, WALL)
    assert (asked.wait_ms, asked.reason) == (50_000, DeferReason.RETRY_AFTER)
    assert polite.release(Pace(1000), answered(status, retry_after="5000"), None, WALL).wait_ms == 100_000
    short = polite.release(Pace(60_000), answered(status, retry_after="1"), None, WALL)
    assert short.wait_ms >= 48_000
    assert short.reason is None


def test_of_several_retry_afters_the_longest_is_obeyed() -> None:
    """P3: and one that makes no sense asks for nothing."""
    headers = tuple(("retry-after", value) for value in ("5", "soon", "50.5", "20"))
    polite = politeness()
    assert polite.release(Pace(1000), replace(answered(503), headers=headers), None, WALL).wait_ms == 50_500
    assert polite.release(Pace(1000), answered(404, retry_after="soon"), None, WALL).wait_ms == 1000


def test_retry_after_of_a_page_means_nothing() -> None:
    """P3: it belongs to 429, 503 and redirects (RFC 9110, 10.2.3)."""
    assert politeness().release(Pace(1000), answered(200, retry_after="50"), None, WALL).wait_ms == 1000


def test_an_exchange_that_we_broke_off_rests_a_little_longer() -> None:
    """P2: for the server it ends when it notices."""
    silent = FetchFailed(f"{ORIGIN}/x", FailureKind.TIMEOUT, "", sent=True, elapsed_ms=30_000)
    release = politeness().release(Pace(1000), silent, None, WALL)
    assert release.wait_ms > release.pace.delay_ms


# Retry and learn


def test_retries_wait_longer_each_time_and_end() -> None:
    """H5: 5, 30 and 180 seconds with a fifth of jitter, then it is given up."""
    polite = politeness()
    for retries, wait_s in enumerate((5, 30, 180)):
        waits = {polite.retry(task(retries), "timeout", "").wait_ms for _ in range(20)}  # type: ignore[union-attr]
        assert len(waits) > 1
        assert all(abs(wait - wait_s * 1000) <= wait_s * 200 for wait in waits)
    assert polite.retry(task(3), "timeout", "no answer") == Dead("timeout", "no answer")


def test_the_same_random_seed_gives_the_same_jitter() -> None:
    """F6: randomness is passed in."""
    assert isinstance(politeness().retry(task(), "reset", ""), Retry)
    assert politeness().retry(task(), "reset", "") == politeness().retry(task(), "reset", "")


def test_learning_is_by_the_settings_of_the_crawl() -> None:
    """P1: rules, redirects, and how long they stay in force."""
    polite = politeness()
    robots = RobotsTask(ORIGIN, f"{ORIGIN}/robots.txt")
    learned = polite.learn(robots, replace(answered(), body=TEXT), None, 5000, WALL)
    assert isinstance(learned, RulesLearned)
    assert (learned.rules.kind, learned.rules.fresh_until) == (RulesKind.RULES, 5000 + 86_400_000)
    moved = polite.learn(robots, answered(302, location="/elsewhere"), None, 5000, WALL)
    assert moved == RobotsRedirect(f"{ORIGIN}/elsewhere", 1)


def test_a_user_agent_that_cannot_be_sent_is_refused() -> None:
    """P6: told before anything is asked."""
    with pytest.raises(UsageError):
        StandardPoliteness(PolitenessSettings(), RobotsSettings(), FrontierSettings(), "Nephila\r\nX: y")


# Another agent, by a policy


def test_another_agent_is_judged_by_its_own_group() -> None:
    """R4, P1, P6, X2: permission, Crawl-delay and signals; what was parsed for one is not used for the other."""
    text = TEXT + b"\nUser-agent: otherbot\nCrawl-delay: 3\nDisallow: /other\nContent-Signal: search=yes\n"
    other = "OtherBot/2 (+https://nephila.invalid/other)"
    polite = politeness()
    for _ in range(2):
        assert [polite.permits(rules(text), f"{ORIGIN}{path}").allowed for path in ("/no", "/other")] == [False, True]
        found = [polite.permits(rules(text), f"{ORIGIN}{path}", other).allowed for path in ("/no", "/other")]
        assert found == [True, False]
        assert (polite.signals(rules(text)), polite.signals(rules(text), other)) == (
            "content-signal: ai-train=no",
            "content-signal: search=yes",
        )
        assert polite.release(Pace(1000), answered(), rules(text), WALL).wait_ms == 7000
        assert polite.release(Pace(1000), answered(), rules(text), WALL, other).wait_ms == 3000
    stranger = polite.permits(rules(text), f"{ORIGIN}/x", "Somebody/1")
    assert (stranger.allowed, stranger.rule) == (False, "Disallow: /")
    assert len(polite._parsed) == 3


def test_the_base_delay_of_a_policy_stays_with_the_pace() -> None:
    """R4, P2: from one lease to the next."""
    release = politeness().release(Pace(1000, base_ms=4000), answered(elapsed_ms=10), None, WALL)
    assert (release.wait_ms, release.pace) == (4000, Pace(4000, base_ms=4000))


DELAYS = st.sampled_from([0, 100, 999, 1000, 1001, 5000])
QUICK = st.sampled_from([0, 1, 100, 499, 500, 999, 1000, 1001, 1999, 2000, 2001, 60_000])


@given(
    settings=st.fixed_dictionaries(
        {
            "delay_s": st.sampled_from([0.0, 0.1, 1.0, 5.0]),
            "fast_below_s": st.sampled_from([0.0, 0.5, 2.0]),
            "slow_after_s": st.sampled_from([0.5, 2.0, 10.0]),
            "fast_factor": st.sampled_from([0.0, 0.8, 1.0]),
        }
    ),
    pace=st.builds(Pace, DELAYS, st.sampled_from([0, 7000]), st.sampled_from([-1, 0, 100, 1000, 5000])),
    status=st.sampled_from([200, 204, 299, 301, 304, 403, 404, 429, 500, 503]),
    elapsed_ms=QUICK,
    cut=st.sampled_from([None, None, *Truncation]),
    size=st.sampled_from([0, 1_000_000, 1_000_001, 3_000_000]),
    text=st.sampled_from([None, b"", b"User-agent: *\nDisallow: /a\n", TEXT, b"#" * 100_001]),
    asked=st.sampled_from(["", "120"]),
)
def test_the_usual_answer_is_settled_as_any_other(
    settings: dict[str, float],
    pace: Pace,
    status: int,
    elapsed_ms: int,
    cut: Truncation | None,
    size: int,
    text: bytes | None,
    asked: str,
) -> None:
    """P2, P3, Q1: the short way to the rest of a host leads to where the long one does."""
    polite, thorough = politeness(**settings), politeness(**settings)
    thorough._usual._quick_ms = -1  # nothing is quick
    answer = replace(answered(status, elapsed_ms, retry_after=asked), body=bytes(size), truncated=cut)
    given_rules = None if text is None else rules(text)
    assert polite.release(pace, answer, given_rules, WALL) == thorough.release(pace, answer, given_rules, WALL)
