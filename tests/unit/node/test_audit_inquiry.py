"""Each kind of finding on requests that are made for it, and the clocks under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nephila.model.terms import Terms
from nephila.node.audit.findings import Audit, FindingKind
from nephila.node.audit.inquiry import Circumstance, Inquiry
from nephila.node.audit.line_of_time import BETWEEN_MS, BootLine, CommonLine
from nephila.node.audit.merging import merged
from nephila.node.audit.request import Came, Request, Stretch, sortable, unsorted
from nephila.node.audit.rulebook import RuleBook

DAY_MS = 86_400_000
WALL = 1_767_225_600_000
TERMS = replace(Terms(), user_agent="Nephila/0.1", allow_addresses=("127.0.0.0/8",))
RULES = b"User-agent: *\nDisallow: /private\n"


class Court:
    """Judges requests that a test makes up."""

    def __init__(self, rules: RuleBook) -> None:
        self.rules = rules
        self.terms = [TERMS]
        self.begun: dict[int, int] = {}
        self.lossy = False
        self.bounds: dict[int, list[tuple[int, int]]] = {}
        """Of machines that work beside each other."""
        self.waits = False

    def request(
        self, sent_ms: int, path: str = "/", *, host: str = "a.test", took: int = 10, **more: object
    ) -> Request:
        boot = more.pop("boot", 0)
        wall = more.pop("wall", WALL + sent_ms)
        origin = f"http://{host}"
        made = Request(boot, sent_ms, took, wall, host, origin, origin + path, 0)  # type: ignore[arg-type]
        made.agent, made.address = "Nephila/0.1", "127.0.0.1"
        for name, value in more.items():
            setattr(made, name, value)
        return made

    def robots(self, sent_ms: int, came: Came = Came.RULES, text: bytes = RULES, **more: object) -> Request:
        made = self.request(sent_ms, "/robots.txt", **more)  # type: ignore[arg-type]
        made.is_robots, made.came, made.ended_at = True, came, made.wall_at + made.elapsed_ms
        made.rules = self.rules.keep(text) if came is Came.RULES else ""
        return made

    def judge(self, *requests: Request) -> Audit:
        found = Audit()
        lines = sorted(sortable(request) for request in requests)
        ends = [Stretch(0, max(request.end_ms for request in requests), self.waits)]
        line = CommonLine(self.bounds) if self.bounds else BootLine(self.begun)
        parties = max(1, len(self.bounds))
        inquiry = Inquiry(found, self.rules, self.terms, line, ends, Circumstance(lossy=self.lossy, parties=parties))
        heard = merged((unsorted(line) for line in lines), found)
        inquiry.hear(sorted(heard, key=lambda one: line.place(one).line_ms) if self.bounds else heard)
        return found


@pytest.fixture
def court(tmp_path: Path) -> Iterator[Court]:
    with RuleBook(tmp_path / "rules") as rules:
        yield Court(rules)


def test_a_polite_sequence_is_clean(court: Court) -> None:
    """K1: the exact delay is enough."""
    found = court.judge(court.robots(0), court.request(1010), court.request(2020, "/x"))
    assert found.is_clean
    assert (found.requests, found.judged, found.gaps, found.shortest_gap_ms) == (3, 2, 2, 1000)


def test_two_at_once_and_too_soon(court: Court) -> None:
    """K1, P2: before the end of an answer, and within the delay after it."""
    found = court.judge(
        court.robots(0), court.request(1010, took=5000), court.request(3000, "/x"), court.request(6500, "/y")
    )
    assert found.counts == {FindingKind.OVERLAP: 1, FindingKind.HURRY: 1}
    assert "3,010 ms before the answer" in found.findings[0].detail
    assert "490 ms after" in found.findings[1].detail


def test_two_in_the_same_millisecond_are_two(court: Court) -> None:
    """K1, P2: only what the event log tells of the same request is the same."""
    twins = [court.request(1010, "/x"), court.request(1010, "/y")]
    told = court.request(1010, "/x", archived=False, answered=True, stretch=0)
    found = court.judge(court.robots(0), *twins, told)
    assert found.counts == {FindingKind.OVERLAP: 1}
    assert found.requests == 3


def test_a_policy_is_what_counts_and_a_change_of_it_accuses_nobody(court: Court) -> None:
    """K1, R4: lowered, raised, and the request in between."""
    lowered = [court.request(1010 + 110 * turn, f"/{turn}", policy_ms=100) for turn in range(3)]
    found = court.judge(
        court.robots(0),
        *lowered,
        court.request(1450, "/up", policy_ms=5000),
        court.request(4000, "/late", policy_ms=5000),
    )
    assert found.counts == {FindingKind.HURRY: 1}
    assert found.policies == {"a.test": 5000}
    assert found.findings[0].url.endswith("/late")


def test_crawl_delay_binds_the_origin(court: Court) -> None:
    """K1, P1: longer than the base delay, and only for who asks for it."""
    slow = RULES + b"Crawl-delay: 5\n"
    found = court.judge(court.robots(0, text=slow), court.request(1010), court.request(6020, "/x"))
    assert found.counts == {FindingKind.HURRY: 1}
    assert "asks for 5,000 ms" in found.findings[0].detail


def test_rules_that_change_hold_from_their_answer_on(court: Court) -> None:
    """K1, P1: each page against the version of its time."""
    closed = b"User-agent: *\nDisallow: /\n"
    found = court.judge(
        court.robots(0),
        court.request(2000, "/x"),
        court.robots(DAY_MS, text=closed),
        court.request(DAY_MS + 2000, "/x"),
    )
    assert found.counts == {FindingKind.FORBIDDEN: 1}
    assert found.rules == 2
    assert "line 2 of http://a.test/robots.txt, for Nephila: Disallow: /" in found.findings[0].detail


@pytest.mark.parametrize(
    ("answers", "kinds"),
    [
        ([], {FindingKind.NO_RULES}),
        ([Came.OPEN], set()),
        ([Came.FAILING], {FindingKind.NO_RULES}),
        ([Came.MOVED], {FindingKind.NO_RULES}),
        ([Came.RULES, Came.FAILING], {FindingKind.FORBIDDEN}),
        ([Came.OPEN, Came.FAILING], {FindingKind.NO_RULES}),
        ([Came.FAILING, Came.OPEN], set()),
    ],
)
def test_what_an_answer_to_robots_txt_means(court: Court, answers: list[Came], kinds: set[FindingKind]) -> None:
    """K1, P1: 4xx opens, 5xx leaves the last good rules, or nothing."""
    asked = [court.robots(2000 * turn, came) for turn, came in enumerate(answers)]
    assert set(court.judge(*asked, court.request(20_000, "/private")).counts) == kinds


def test_unavailable_for_thirty_days_means_open(court: Court) -> None:
    """K1, P1: and a permissive run does not wait for that."""
    failing = [court.robots(day * DAY_MS, Came.FAILING) for day in range(31)]
    assert court.judge(*failing, court.request(30 * DAY_MS + 5000)).is_clean
    assert not court.judge(*failing[:20], court.request(20 * DAY_MS + 5000)).is_clean
    court.terms = [replace(TERMS, robots_permissive=True)]
    assert court.judge(failing[0], court.request(5000)).is_clean


def test_old_rules_are_found(court: Court) -> None:
    """K1, P1: a day, and what a lease may add to it; while it fails, the last good rules have no age."""
    assert court.judge(court.robots(0), court.request(DAY_MS + 500_000)).is_clean
    late = court.request(DAY_MS + 700_000, "/x")
    assert court.judge(court.robots(0), late).counts == {FindingKind.STALE_RULES: 1}
    assert court.judge(court.robots(0), court.robots(DAY_MS, Came.FAILING), late).is_clean


def test_retry_after_is_obeyed_up_to_its_ceiling(court: Court) -> None:
    """K1, P3: by the answers on record."""
    busy = court.request(2000, status=503, retry_after_ms=60_000)
    assert court.judge(court.robots(0), busy, court.request(62_010, "/x")).is_clean
    assert court.judge(court.robots(0), busy, court.request(30_000, "/x")).counts == {FindingKind.RETRY_AFTER: 1}


def test_a_crowd_at_an_address(court: Court) -> None:
    """K1, P2: at once, and within a second; not where the delay is 0."""
    robots = [court.robots(0, host=f"h{n}.test", took=1, address=f"127.0.1.{n}") for n in range(30)]
    at_once = [court.request(5000, host=f"h{n}.test", took=300) for n in range(5)]
    assert court.judge(*robots, *at_once).counts == {FindingKind.CROWD: 1}
    quick = [court.request(5000 + 30 * n, host=f"h{n}.test", took=5) for n in range(16)]
    assert court.judge(*robots, *quick).counts == {FindingKind.CROWD: 2}
    court.terms = [replace(TERMS, address_limited=False)]
    assert court.judge(*robots, *quick, *at_once).counts.get(FindingKind.CROWD) is None


def test_an_address_that_is_not_public(court: Court) -> None:
    """K1, H6: metadata services above all; behind a proxy nobody can tell."""
    court.terms = [replace(TERMS, allow_addresses=())]
    found = court.judge(court.robots(0, address="93.184.216.34"), court.request(2000, address="169.254.169.254"))
    assert found.counts == {FindingKind.ADDRESS: 1}
    court.terms = [replace(TERMS, allow_addresses=(), proxied=True)]
    assert court.judge(court.robots(0), court.request(2000)).is_clean


def test_an_answer_that_only_the_event_log_knows(court: Court) -> None:
    """K1: missing, unless it was among the last things that a process did."""
    told = court.request(2000, archived=False, answered=True, status=200, stretch=0)
    assert court.judge(court.robots(0), told, court.request(40_000, "/x")).counts == {FindingKind.MISSING: 1}
    assert court.judge(court.robots(0), told, court.request(5000, "/x")).lost == 1


# Clocks


def test_a_wall_clock_that_jumps_hides_nothing_and_makes_nothing_up(court: Court) -> None:
    """K1: within a boot only the clock that does not jump counts."""
    back = court.request(1010, wall=WALL - DAY_MS)
    assert court.judge(court.robots(0), back).is_clean
    hidden = court.request(500, wall=WALL + DAY_MS)
    assert court.judge(court.robots(0), hidden).counts == {FindingKind.HURRY: 1}


def test_across_a_reboot_the_least_that_has_passed_counts(court: Court) -> None:
    """K1: the time since the process began is proof; else the wall clock's word; else it is not measured."""
    before = court.robots(50_000)
    court.begun = {0: 0, 1: 100}
    rested = court.request(1200, boot=1, wall=WALL - DAY_MS)
    assert court.judge(before, rested).is_clean
    court.begun = {0: 0, 1: 1100}
    assert court.judge(before, court.request(1200, boot=1, wall=WALL + 60_000)).is_clean
    assert court.judge(before, court.request(1200, boot=1, wall=WALL + 50_300)).counts == {FindingKind.HURRY: 1}
    unknown = court.judge(before, rested)
    assert unknown.is_clean
    assert unknown.unmeasured == 1


def test_rules_that_went_with_the_power_are_not_held_against_the_page(court: Court) -> None:
    """K1: a page names the rules that it was asked for under; only a crash explains that they are not on record."""
    page = court.request(5000, claims=WALL + 1)
    assert court.judge(page).counts == {FindingKind.NO_RULES: 1}
    court.lossy = True
    assert court.judge(page).unjudged == 1
    assert court.judge(court.request(5000)).counts == {FindingKind.NO_RULES: 1}


# Visits


def part(court: Court, sent_ms: int, path: str, visit: str = "7-0", **more: object) -> Request:
    return court.request(sent_ms, path, visit=visit, is_part=True, **more)  # type: ignore[arg-type]


def test_a_visit_needs_no_delay_and_is_rested_for(court: Court) -> None:
    """J3, K1: two at once, and three delays after three requests."""
    page = court.request(2000, visit="7-0")
    parts = (part(court, 2010, "/1.js", took=100), part(court, 2011, "/2.js", took=50))
    found = court.judge(court.robots(0), page, *parts, court.request(5200, "/next"))
    assert found.is_clean, found.findings
    assert (found.parts, found.visits, found.cut_visits) == (2, 1, 0)
    found = court.judge(court.robots(0), page, *parts, court.request(5000, "/next"))
    assert found.counts == {FindingKind.HURRY: 1}


def test_a_visit_has_its_bounds(court: Court) -> None:
    """J3, K1: so many at once, so many in all, nothing that robots.txt forbids."""
    page = court.request(2000, visit="7-0")
    crowd = [part(court, 2010 + number, f"/{number}.js", took=100) for number in range(3)]
    assert court.judge(court.robots(0), page, *crowd).counts == {FindingKind.OVERLAP: 1}
    many = [part(court, 2010 + 200 * number, f"/{number}.js") for number in range(30)]
    assert court.judge(court.robots(0), page, *many).counts == {FindingKind.VISIT: 1}
    secret = part(court, 2020, "/private/x.js")
    assert court.judge(court.robots(0), page, secret).counts == {FindingKind.FORBIDDEN: 1}


def test_a_visit_whose_page_is_not_on_record_is_judged_from_its_first_part(court: Court) -> None:
    """J3, K1: a process died over it; its parts stand for it, and nobody can hide behind that."""
    parts = (part(court, 2000, "/1.js"), part(court, 2020, "/2.js"))
    found = court.judge(court.robots(0), *parts, court.request(5100, "/next"))
    assert found.is_clean, found.findings
    assert found.cut_visits == 1
    hurried = (part(court, 500, "/1.js"), part(court, 510, "/2.js", visit="8-0"))
    assert court.judge(court.robots(0), *hurried).counts == {FindingKind.HURRY: 2}


# Machines beside each other


@pytest.fixture
def fleet(court: Court) -> Court:
    """Two machines: the second was started 5,000,000 ms before the first."""
    court.bounds = {0: [(0, 10_000_000)], 1: [(5_000_000, 5_000_000)]}
    return court


LATER = 5_000_000
"""What the clock of the second machine is ahead of the first one's."""


def test_a_host_that_goes_from_one_machine_to_another_is_measured_by_the_common_clock(fleet: Court) -> None:
    """K1, P2, N1: whatever their own clocks say, the delay holds between two workers."""
    polite = fleet.judge(fleet.robots(0), fleet.request(LATER + 1010, "/x", boot=1), fleet.request(2020, "/y"))
    assert polite.is_clean, polite.findings
    assert (polite.gaps, polite.unmeasured, polite.shortest_gap_ms) == (2, 0, 1000)
    hasty = fleet.judge(fleet.robots(0), fleet.request(LATER + 800, "/x", boot=1))
    assert hasty.counts == {FindingKind.HURRY: 1}
    both = fleet.judge(fleet.robots(0), fleet.request(2000, took=900), fleet.request(LATER + 2500, "/x", boot=1))
    assert both.counts == {FindingKind.OVERLAP: 1}


def test_between_machines_clocks_may_be_a_little_apart_and_on_one_they_may_not(fleet: Court) -> None:
    """K1, P2: a tenth of a second where two clocks were compared, a millisecond where there is one."""
    short = 1010 - BETWEEN_MS + 1
    assert fleet.judge(fleet.robots(0), fleet.request(LATER + short, "/x", boot=1)).is_clean
    assert fleet.judge(fleet.robots(0), fleet.request(short, "/x")).counts == {FindingKind.HURRY: 1}


def test_the_best_bound_of_a_machine_counts_for_all_of_its_time(court: Court) -> None:
    """K1, N1: an answer that came late makes a bad bound, which a better one later repairs."""
    court.bounds = {0: [(0, 10_000_000)], 1: [(LATER, 5_000_000 - 4_000), (LATER + 60_000, 5_000_000)]}
    found = court.judge(court.robots(0), court.request(LATER + 1010 + 30, "/x", boot=1))
    assert found.is_clean, found.findings


def test_a_machine_that_noted_no_common_clock_is_not_accused_by_it(court: Court) -> None:
    """K1: then the wall clock is asked, as between two starts of a machine; backwards, the gap is not measured."""
    court.bounds = {0: [(0, 10_000_000)]}
    assert court.judge(court.robots(0), court.request(5, "/x", boot=1, wall=WALL + 500)).counts
    found = court.judge(court.robots(0), court.request(5, "/x", boot=1, wall=WALL - 500))
    assert found.unmeasured + found.counts.total() > 0


def test_requests_at_one_address_are_counted_over_all_machines(fleet: Court) -> None:
    """K1, P2: four at once are four, whoever sends them."""
    hosts = [f"h{number}.test" for number in range(5)]
    robots = [fleet.robots(number * 1000, host=host) for number, host in enumerate(hosts)]
    first = [fleet.request(10_000, host=host, took=5000) for host in hosts[:2]]
    second = [fleet.request(LATER + 11_000, host=host, took=3000, boot=1) for host in hosts[2:]]
    assert fleet.judge(*robots, *first, *second[:2]).is_clean
    assert fleet.judge(*robots, *first, *second).counts == {FindingKind.CROWD: 1}


def test_an_answer_whose_file_is_under_way_is_not_missed(court: Court) -> None:
    """K1, W2: it is counted; when the file has arrived it must be there."""
    told = court.request(1010, "/x", archived=False, answered=True, status=200, stretch=0)
    late = court.request(900_000, "/z", archived=False, answered=False, stretch=0)
    assert court.judge(court.robots(0), told, late).counts == {FindingKind.MISSING: 1}
    court.waits = True
    found = court.judge(court.robots(0), told, late)
    assert found.is_clean
    assert found.waiting == 1
