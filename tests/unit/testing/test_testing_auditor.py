from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from nephila.testing.web import Auditor, AuditReport, ViolationKind
from nephila.testing.web.auditor import Arrival, Ticket

HONEST = {"user-agent": "Nephila/0.1 (+https://nephila.invalid/bot)"}
DAY_MS = 24 * 3600 * 1000


class Rules:
    """Host a: Crawl-delay 5 s. Host b: robots.txt moved to c. Nobody may ask for /private/."""

    def required_delay_ms(self, host: str) -> float:
        return 5000 if host == "a.test" else 0

    def allowed(self, host_name: str, target: str, agent: str) -> bool:
        return not target.startswith("/private/")

    def canonical_target(self, host: str, target: str) -> str:
        return target.partition("?")[0].rstrip("/") or "/"

    def robots_source(self, host: str) -> str:
        return "c.test" if host == "b.test" else host

    def robots_borrowers(self, host: str) -> int:
        return int(host == "c.test")

    def is_part(self, host: str, target: str) -> bool:
        return target.startswith("/part/")


class Crawler:
    """Behaves exactly as a test tells it to; every exchange takes 10 ms."""

    def __init__(self, **options: float) -> None:
        self.auditor = Auditor(Rules(), **options)  # type: ignore[arg-type]
        self.now = 0.0

    def ask(
        self,
        host: str,
        target: str,
        wait_ms: float = 1000,
        status: int = 200,
        *,
        headers: Mapping[str, str] = HONEST,
        address: str = "127.1.1.1",
        **end: object,
    ) -> None:
        self.answered(self.arrived(host, target, wait_ms, headers=headers, address=address), status, **end)

    def arrived(
        self,
        host: str,
        target: str,
        wait_ms: float = 1000,
        *,
        headers: Mapping[str, str] = HONEST,
        address: str = "127.1.1.1",
    ) -> Ticket:
        self.now += wait_ms
        return self.auditor.arrived(Arrival(host, address, target, self.now, 1, headers))

    def answered(self, ticket: Ticket, status: int = 200, **end: object) -> None:
        self.now += 10
        self.auditor.answered(ticket, self.now, status, **end)  # type: ignore[arg-type]

    @property
    def blamed(self) -> dict[ViolationKind, int]:
        return self.auditor.report().by_kind


@pytest.fixture
def crawler() -> Crawler:
    crawler = Crawler()
    crawler.ask("d.test", "/robots.txt")
    return crawler


def test_good_behaviour_is_not_blamed(crawler: Crawler) -> None:
    """P5: a crawler that keeps every rule has no violation."""
    crawler.ask("d.test", "/")
    crawler.ask("d.test", "/a", status=404)
    crawler.ask("a.test", "/robots.txt", wait_ms=0)
    crawler.ask("a.test", "/", wait_ms=5000)
    crawler.ask("b.test", "/robots.txt", wait_ms=0, status=301)
    crawler.ask("c.test", "/robots.txt", wait_ms=0)
    crawler.ask("b.test", "/")
    report = crawler.auditor.report()
    assert report.violations == ()
    assert (report.requests, len(report.hosts)) == (8, 4)
    assert report.statuses == {200: 6, 404: 1, 301: 1}


def test_two_requests_at_once_are_an_overlap(crawler: Crawler) -> None:
    """P2, P5: at most one request at a time per host."""
    first = crawler.arrived("d.test", "/1")
    second = crawler.arrived("d.test", "/2")
    crawler.answered(first)
    crawler.answered(second)
    assert crawler.blamed == {ViolationKind.OVERLAP: 1}


def test_different_hosts_may_be_asked_at_once(crawler: Crawler) -> None:
    """P2, P5: the limit is per host."""
    crawler.ask("c.test", "/robots.txt")
    first = crawler.arrived("d.test", "/1")
    second = crawler.arrived("c.test", "/2")
    crawler.answered(second)
    crawler.answered(first)
    assert crawler.blamed == {}


@pytest.mark.parametrize(("wait_ms", "blamed"), [(999.9, 1), (1000, 0), (0, 1)])
def test_a_gap_shorter_than_the_delay_is_a_hurry(crawler: Crawler, wait_ms: float, blamed: int) -> None:
    """P2, P5: the gap counts from the end of the last answer, robots.txt included."""
    crawler.ask("d.test", "/", wait_ms=wait_ms)
    assert crawler.blamed.get(ViolationKind.HURRY, 0) == blamed


def test_a_crawl_delay_binds_when_it_is_longer() -> None:
    """P1, P2, P5: Crawl-delay is required of who has read it."""
    crawler = Crawler()
    crawler.ask("a.test", "/robots.txt")
    crawler.ask("a.test", "/", wait_ms=4999)
    assert crawler.blamed == {ViolationKind.HURRY: 1}
    (violation,) = crawler.auditor.report().violations
    assert (violation.host, violation.target, violation.previous_ms) == ("a.test", "/", 1010)


def test_a_tolerance_can_be_given() -> None:
    """P5: for clocks that differ."""
    crawler = Crawler(tolerance_ms=2)
    crawler.ask("d.test", "/robots.txt")
    crawler.ask("d.test", "/1", wait_ms=998)
    crawler.ask("d.test", "/2", wait_ms=997)
    assert crawler.blamed == {ViolationKind.HURRY: 1}


def test_a_page_before_robots_txt_is_blamed() -> None:
    """P1, P5: robots.txt is fetched before the first page of a host."""
    crawler = Crawler()
    crawler.ask("d.test", "/")
    assert crawler.blamed == {ViolationKind.NO_RULES: 1}


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_failing_robots_txt_opens_nothing(status: int) -> None:
    """P1, P5: 5xx and 429 mean that nothing may be fetched."""
    crawler = Crawler()
    crawler.ask("d.test", "/robots.txt", status=status)
    crawler.ask("d.test", "/")
    assert crawler.blamed == {ViolationKind.NO_RULES: 1}


def test_a_page_while_robots_txt_is_still_on_its_way_is_blamed() -> None:
    """P1, P5: the rules must have arrived."""
    crawler = Crawler()
    crawler.arrived("d.test", "/robots.txt")
    crawler.ask("d.test", "/")
    assert crawler.blamed == {ViolationKind.NO_RULES: 1, ViolationKind.OVERLAP: 1}


def test_a_redirected_robots_txt_must_be_followed_to_its_end() -> None:
    """P1, P5: the rules are those at the end of the redirects."""
    crawler = Crawler()
    crawler.ask("b.test", "/robots.txt", status=301)
    crawler.ask("b.test", "/")
    assert crawler.blamed == {ViolationKind.NO_RULES: 1}


def test_a_forbidden_page_is_blamed(crawler: Crawler) -> None:
    """P1, P5: what robots.txt forbids is not asked for."""
    crawler.ask("d.test", "/private/1")
    assert crawler.blamed == {ViolationKind.FORBIDDEN: 1}


@pytest.mark.parametrize("again", ["/page", "/page?utm_source=x", "/page/"])
def test_a_page_asked_for_twice_is_a_repeat(crawler: Crawler, again: str) -> None:
    """F2, P5: a URL is fetched once a cycle, in whatever spelling."""
    crawler.ask("d.test", "/page")
    crawler.ask("d.test", again)
    assert crawler.blamed == {ViolationKind.REPEAT: 1}
    assert crawler.auditor.report().asked == {"d.test/page": 2}


def test_a_missing_page_is_not_tried_again(crawler: Crawler) -> None:
    """H5, P5: 404 is final."""
    crawler.ask("d.test", "/page", status=404)
    crawler.ask("d.test", "/page", status=404)
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


@pytest.mark.parametrize(("status", "complete"), [(503, True), (429, True), (200, False), (0, False)])
def test_passing_failures_may_be_tried_four_times(crawler: Crawler, status: int, complete: bool) -> None:
    """F2, H5, P5: three retries after the first try, no more."""
    for _ in range(4):
        crawler.ask("d.test", "/page", status=status, complete=complete)
    assert crawler.blamed == {}
    crawler.ask("d.test", "/page", status=status, complete=complete)
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


def test_after_a_success_no_retry_is_left(crawler: Crawler) -> None:
    """F2, P5: the exception ends with the failure."""
    crawler.ask("d.test", "/page", status=503)
    crawler.ask("d.test", "/page")
    crawler.ask("d.test", "/page")
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


def test_a_redirect_to_another_spelling_may_be_followed_once(crawler: Crawler) -> None:
    """H2, P5: the same page under its new spelling; asking the old one again is a loop."""
    crawler.ask("d.test", "/page", status=301, respells=True)
    crawler.ask("d.test", "/page/", status=301, respells=True)
    assert crawler.blamed == {}
    crawler.ask("d.test", "/page")
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


def test_a_redirect_elsewhere_gives_no_right_to_come_back(crawler: Crawler) -> None:
    """H2, P5: only a redirect to itself excuses another spelling."""
    crawler.ask("d.test", "/page", status=301)
    crawler.ask("d.test", "/page/")
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


@pytest.mark.parametrize("name", ["if-none-match", "if-modified-since"])
def test_a_conditional_request_is_no_repeat(crawler: Crawler, name: str) -> None:
    """H3, P5: a re-fetch that says what it has."""
    crawler.ask("d.test", "/page")
    crawler.ask("d.test", "/page", status=304, headers=HONEST | {name: "x"})
    assert crawler.blamed == {}


def test_a_new_cycle_forgives_pages(crawler: Crawler) -> None:
    """F2, P5: once a cycle."""
    crawler.ask("d.test", "/page")
    crawler.auditor.new_cycle()
    crawler.ask("d.test", "/page")
    assert crawler.blamed == {}


def test_robots_txt_is_good_for_a_day(crawler: Crawler) -> None:
    """P1, P5: cached for 24 hours."""
    crawler.ask("d.test", "/robots.txt", wait_ms=DAY_MS - 20)
    assert crawler.blamed == {ViolationKind.REPEAT: 1}
    crawler.ask("d.test", "/robots.txt", wait_ms=DAY_MS)
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


def test_a_failing_robots_txt_may_be_tried_again_and_a_lent_one_asked_for_each_borrower() -> None:
    """P1, P5: answers that settle nothing do not count; each origin may follow its own redirect."""
    crawler = Crawler()
    for _ in range(6):
        crawler.ask("c.test", "/robots.txt", status=503)
    crawler.ask("c.test", "/robots.txt")
    crawler.ask("c.test", "/robots.txt")
    assert crawler.blamed == {}
    crawler.ask("c.test", "/robots.txt")
    assert crawler.blamed == {ViolationKind.REPEAT: 1}


@pytest.mark.parametrize("agent", ["", "Mozilla/5.0", "Nephila/0.1", "NephilaX/0.1 (+https://a.invalid)"])
def test_a_wrong_agent_is_blamed(crawler: Crawler, agent: str) -> None:
    """P5, P6: an honest User-Agent with a contact URL."""
    crawler.ask("d.test", "/", headers={"user-agent": agent})
    assert crawler.blamed == {ViolationKind.AGENT: 1}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("wait_ms", "blamed"), [(2999, 1), (3000, 0)])
def test_retry_after_binds_the_whole_host(crawler: Crawler, status: int, wait_ms: float, blamed: int) -> None:
    """P3, P5: Retry-After is obeyed."""
    crawler.ask("d.test", "/busy", status=status, retry_after_ms=3000)
    crawler.ask("d.test", "/other", wait_ms=wait_ms)
    assert crawler.blamed.get(ViolationKind.RETRY_AFTER, 0) == blamed


def test_a_crowd_at_one_address_is_blamed_where_a_limit_is_given() -> None:
    """P2, P5: the looser limit for hosts that share a server."""
    crawler = Crawler(per_address=2)
    tickets = [crawler.arrived(f"{name}.test", "/robots.txt", 0) for name in "defg"]
    assert crawler.blamed == {ViolationKind.CROWD: 2}
    for ticket in tickets:
        crawler.answered(ticket)
    crawler.ask("h.test", "/robots.txt")
    assert crawler.blamed == {ViolationKind.CROWD: 2}


def test_the_report_goes_through_json_unharmed(crawler: Crawler, tmp_path: Path) -> None:
    """P5: an auditor in another process can be read."""
    crawler.ask("d.test", "/private/1", wait_ms=10)
    crawler.auditor.dump(tmp_path / "audit.json")
    read = AuditReport.from_json((tmp_path / "audit.json").read_text())
    assert read == crawler.auditor.report()
    assert read.by_kind == {ViolationKind.HURRY: 1, ViolationKind.FORBIDDEN: 1}
    assert read.hosts["d.test"].shortest_gap_ms == 10


# Visits


def test_a_visit_is_one_call_and_is_rested_for(crawler: Crawler) -> None:
    """J3, P5: no delay within it, two requests at once, and as many delays after it as it had requests."""
    crawler.ask("d.test", "/page")
    first, second = crawler.arrived("d.test", "/part/1", 0), crawler.arrived("d.test", "/part/2", 0)
    crawler.answered(first)
    crawler.answered(second)
    crawler.ask("d.test", "/part/3", 50)
    crawler.ask("d.test", "/other", 4000)
    crawler.ask("d.test", "/third", 1000)
    assert crawler.blamed == {}


def test_a_visit_that_is_not_rested_for_is_a_hurry(crawler: Crawler) -> None:
    """J3, P5: one delay is not enough after three requests."""
    crawler.ask("d.test", "/page")
    crawler.ask("d.test", "/part/1", 0)
    crawler.ask("d.test", "/part/2", 0)
    crawler.ask("d.test", "/other", 2900)
    assert crawler.blamed == {ViolationKind.HURRY: 1}


def test_three_at_once_are_too_many_for_a_visit(crawler: Crawler) -> None:
    """J3, P5."""
    crawler.ask("d.test", "/page")
    for number in range(3):
        crawler.arrived("d.test", f"/part/{number}", 0)
    assert crawler.blamed == {ViolationKind.OVERLAP: 1}


def test_thirty_requests_are_a_visit_and_one_more_is_not(crawler: Crawler) -> None:
    """J3, P5: the page is one of them."""
    crawler.ask("d.test", "/page")
    for number in range(30):
        crawler.ask("d.test", f"/part/{number}", 0)
    assert crawler.blamed == {ViolationKind.VISIT: 1}


def test_a_part_before_any_page_is_no_visit() -> None:
    """J3, P5: nor is a part that is asked for twice."""
    crawler = Crawler()
    crawler.ask("e.test", "/part/1")
    assert crawler.blamed[ViolationKind.VISIT] == 1
    crawler.ask("d.test", "/robots.txt")
    crawler.ask("d.test", "/page")
    crawler.ask("d.test", "/part/1", 0)
    crawler.ask("d.test", "/part/1", 0)
    assert crawler.blamed[ViolationKind.REPEAT] == 1
