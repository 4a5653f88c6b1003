"""Every alert is made to fire, and to end; figures over time add up."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from nephila.fetch import AddressGuard
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import UsageError
from nephila.model.settings import AlertSettings
from nephila.model.summary import LATENCY_BOUNDS_S, CrawlSnapshot
from nephila.node import watching
from nephila.node.alarms import RULES, judge
from nephila.node.conscience import Conscience, Sent
from nephila.node.logbook import COARSE_POINTS, FINE_POINTS, Figures, FiguresFile, Growth, Logbook, Point, Process
from nephila.node.watching import exchanges_since
from nephila.node.webhook import Webhook

NOW = 1_794_000_000_000
SETTINGS = AlertSettings()
CALM_STEPS = 40


def calm() -> Figures:
    """A crawl that is well: 400 pages a second, one error in a hundred, hosts ready."""
    figures = Figures()
    for number in range(CALM_STEPS):
        growth = Growth(
            pages=4000,
            responses=4000,
            bytes=4000 * 30_000,
            errors={"timeout": 40},
            latencies=[4000, *[0] * len(LATENCY_BOUNDS_S)],
            latency_ms=4000 * 40,
            lookups=4000,
            lookups_found=3900,
        )
        at = NOW - (CALM_STEPS - number) * 10_000
        figures.fine.append(Point(at, growth, queued={"high": 1_000_000}, ready=5))
    figures.present.process = Process(open_files=100, max_files=1000, disk_free_bytes=50, disk_bytes=100)
    return figures


def each(figures: Figures, **changes: Any) -> Figures:
    """The same figures with something else in every step."""
    for point in figures.fine:
        for name, value in changes.items():
            setattr(point.growth if hasattr(point.growth, name) else point, name, value)
    return figures


def present(figures: Figures, **changes: Any) -> Figures:
    for name, value in changes.items():
        setattr(figures.present, name, value)
    return figures


def growing(figures: Figures) -> Figures:
    for number, point in enumerate(figures.fine):
        point.queued = {"high": 100_000_000 + number}
    return figures


WRONG = {
    "rate_below_target": lambda: each(calm(), pages=2000),
    "error_rate": lambda: each(calm(), errors={"timeout": 150, "reset": 100}),
    "busy_host": lambda: present(calm(), busy_hosts={"a.test": 21, "b.test": 3}),
    "storage_growth": lambda: each(calm(), bytes=500_000_000),
    "frontier_growth": lambda: growing(calm()),
    "render_queue": lambda: present(calm(), render_queue=10_001),
    "dns_hit_rate": lambda: each(calm(), lookups_found=3500),
    "duplicate_rate": lambda: each(calm(), duplicates=800, near_duplicates=500),
    "latency": lambda: each(calm(), latency_ms=4000 * 3100),
    "starvation": lambda: present(calm(), longest_wait_s=200_000.0),
    "file_descriptors": lambda: present(calm(), process=Process(open_files=950, max_files=1000, disk_free_bytes=1)),
    "disk_space": lambda: present(calm(), process=Process(disk_free_bytes=4, disk_bytes=100)),
    "politeness_violations": lambda: present(calm(), violations=1),
}


def names(figures: Figures, settings: AlertSettings = SETTINGS) -> list[str]:
    return [alert.name for alert in judge(figures, settings, NOW)]


def test_a_crawl_that_is_well_rings_nothing() -> None:
    """O2: no alert without a reason."""
    assert names(calm()) == []
    assert names(Figures()) == []


def test_every_alert_is_made_to_fire() -> None:
    """O2: all that are listed, and nothing that is not."""
    assert set(WRONG) == set(RULES)


@pytest.mark.parametrize("name", WRONG)
def test_an_alert_fires_alone_and_keeps_its_time(name: str) -> None:
    """O2: it names its value and threshold, lasts from the first look on, and ends."""
    figures = WRONG[name]()
    (alert,) = judge(figures, SETTINGS, NOW)
    assert (alert.name, alert.since) == (name, NOW)
    assert alert.value != alert.threshold or name == "politeness_violations"
    assert alert.summary
    figures.present.alerts = [replace_since(alert)]
    (again,) = judge(figures, SETTINGS, NOW)
    assert again.since == 5
    assert judge(calm(), SETTINGS, NOW) == []


def replace_since(alert: Any) -> Any:
    return type(alert)(alert.name, 5, alert.value, alert.threshold, alert.summary)


def test_thresholds_are_settings_and_can_be_switched_off() -> None:
    """O2: each by its own."""
    off = replace(
        SETTINGS,
        min_pages_per_s=0,
        max_error_share=0,
        max_busy_per_host=0,
        max_bytes_per_day=0,
        max_frontier=0,
        max_render_queue=0,
        min_dns_hit_share=0,
        max_duplicate_share=0,
        max_latency_s=0,
        max_wait_s=0,
        max_descriptors_share=0,
        min_free_share=0,
        max_violations=0,
    )
    for name, figures in WRONG.items():
        assert names(figures(), off) == [], name
    assert names(calm(), replace(SETTINGS, min_pages_per_s=500)) == ["rate_below_target"]


def test_a_polite_crawl_that_waits_for_its_hosts_is_not_too_slow() -> None:
    """O2, P2: the rate is judged only while hosts are ready that nobody asks."""
    assert names(each(calm(), pages=1, ready=0)) == []


def test_a_moment_rings_nothing() -> None:
    """O2: shares are judged over the window, with enough answers in it."""
    figures = Figures()
    figures.fine.append(Point(NOW - 10_000, Growth(pages=1, responses=10, errors={"timeout": 9}), ready=1))
    assert names(figures) == []


# Figures over time

FRONTIER = FrontierSnapshot(
    now=0,
    cycle=1,
    queued={"high": 3},
    delayed={"retry": 2},
    states={},
    hosts=1,
    hosts_ready=1,
    hosts_waiting=0,
    hosts_leased=0,
    domains=1,
    pages=1,
    pages_in_cycle=1,
    next_in_ms=0,
)


def snapshot(pages: int, errors: int) -> CrawlSnapshot:
    return CrawlSnapshot(
        elapsed_s=1,
        pages=pages,
        responses=pages,
        bytes=pages * 100,
        in_flight=1,
        queued=5,
        hosts=1,
        domains=1,
        duplicates=0,
        errors={"timeout": errors},
        latencies=(pages, *[0] * len(LATENCY_BOUNDS_S)),
        latency_ms=pages * 10,
    )


def test_steps_days_and_months_add_up_over_runs(tmp_path: Path) -> None:
    """O2, C1: the figures of a run begin at 0, those of the day go on; what was written is read back."""
    path = tmp_path / "figures.json"
    first = Logbook(path, NOW)
    for number in range(1, 11):
        first.record(NOW + number * 5_000, snapshot(number * 10, number), FRONTIER)
    first.close()
    second = Logbook(path, NOW)
    second.record(NOW + 60_000, snapshot(7, 1), FRONTIER)
    second.save()
    figures = FiguresFile(path).read()
    assert (figures.day(NOW).pages, figures.month(NOW).pages) == (107, 107)
    assert figures.since(NOW).errors == {"timeout": 11}
    assert sum(point.growth.pages for point in figures.fine) == 107
    assert sum(point.growth.pages for point in figures.coarse) == 107
    assert figures.present.run.pages == 7
    assert figures.since(NOW + 60_000).pages == 7
    assert figures.day(NOW + 86_400_000).pages == 0


def test_figures_stay_small_however_long_a_crawl_runs(tmp_path: Path) -> None:
    """O2, Q3: so many steps, so many days, and no more."""
    book = Logbook(tmp_path / "figures.json", NOW)
    for number in range(2000):
        book.record(NOW + number * 3_600_000, snapshot(number, 0), FRONTIER)
    assert (len(book.figures.fine), len(book.figures.coarse)) == (FINE_POINTS, COARSE_POINTS)
    assert len(book.figures.days) == 62
    book.record(NOW, snapshot(3000, 0), FRONTIER)  # the clock was set back
    assert book.figures.fine[-1].growth.pages == 1 + 1001


def test_quantiles_follow_the_buckets() -> None:
    """C3: of half, of nearly all, of none."""
    growth = Growth(latencies=[50, 40, 9, 0, 0, 0, 0, 0, 0, 0, 1])
    assert growth.quantile_s(0.5) == pytest.approx(0.05)
    assert growth.quantile_s(0.9) == pytest.approx(0.1)
    assert (growth.quantile_s(1.0) or 0) > 30
    assert Growth().quantile_s(0.5) is None


def test_figures_of_another_form_are_passed_over(tmp_path: Path) -> None:
    """O2: a file that is torn or of another version is none."""
    (tmp_path / "figures.json").write_text('{"present": 1}')
    assert FiguresFile(tmp_path / "figures.json").read().fine == []
    assert FiguresFile(tmp_path / "none.json").read().fine == []


# Whether hosts were left alone


def test_the_conscience_knows_visits() -> None:
    """J3, P5: parts need no delay; after them it is due once for each, and once for the page."""
    conscience = Conscience(lambda _host: 1000)
    visit = [Sent("a.test", 0, 100), Sent("a.test", 110, 150, part=True), Sent("a.test", 120, 160, part=True)]
    conscience.look([*visit, Sent("a.test", 3200, 3300)])
    assert conscience.violations == 0
    conscience.look([Sent("a.test", 4300, 4400), Sent("a.test", 4400, 4500, part=True), Sent("a.test", 5600, 5700)])
    assert conscience.violations == 1


def test_a_request_before_its_time_is_counted() -> None:
    """P5, P2: by when requests left and answers ended, in whatever order they are told."""
    conscience = Conscience(lambda host: 1000 if host == "a.test" else 0)
    conscience.look([Sent("a.test", 0, 100), Sent("b.test", 0, 100), Sent("b.test", 100, 200)])
    conscience.look([Sent("a.test", 1100, 1200)])
    assert conscience.violations == 0
    conscience.look([Sent("a.test", 2100, 2200)])
    assert (conscience.violations, conscience.example) == (1, "a.test")
    conscience.look([Sent("a.test", 9000, 9100), Sent("a.test", 4000, 4100)])
    assert conscience.violations == 1


class _Listed:
    """Files of an archive as a catalogue lists them: offsets are places."""

    def __init__(self, *files: Sequence[Sent]) -> None:
        self.files = files
        self.most = 0

    def marks(self) -> dict[int, int]:
        return {number: len(file) for number, file in enumerate(self.files)}

    def exchanges(self, segment: int, after: int, limit: int) -> list[tuple[int, str, int, int, bool]]:
        rows = [
            (place, one.host, one.at, one.ended_at - one.at, one.part)
            for place, one in enumerate(self.files[segment])
            if place >= after
        ]
        self.most = max(self.most, len(rows[:limit]))
        return rows[:limit]


def test_exchanges_are_read_a_few_at_a_time_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5, Q3: hosts that several processes ask in turn are seen as they were asked; memory does not grow with speed."""
    monkeypatch.setattr(watching, "EXCHANGES_AT_ONCE", 3)
    sent = [Sent("a.test", 2000 * number, 2000 * number + 100) for number in range(20)]
    listed, read = _Listed(sent[::2], sent[1::2], ()), {0: 4}
    found = exchanges_since(read, listed)
    conscience = Conscience(lambda _host: 1000)
    assert [next(found) for _ in range(12)] == sent[1:8:2] + sent[8:16]
    conscience.look(found)
    assert (conscience.violations, listed.most, read) == (0, 3, {0: 10, 1: 10})
    listed.files = (sent[::2], (*sent[1::2], Sent("a.test", 38_900, 38_950)), ())
    conscience.look(exchanges_since(read, listed))
    assert (conscience.violations, conscience.example) == (1, "a.test")


# The webhook


class _Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, json.loads(body)))  # type: ignore[attr-defined]
        self.send_response(302 if self.path == "/moved" else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook() -> Any:
    server = HTTPServer(("127.0.0.1", 0), _Hook)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_alerts_are_posted_to_an_allowed_address_only(hook: Any) -> None:
    """O2, H6: an address that is not public must be opened; a redirect is not followed."""
    url = f"http://127.0.0.1:{hook.server_port}"
    opened = AddressGuard(("127.0.0.0/8",))
    assert "not public" in Webhook(f"{url}/hook", AddressGuard()).post({})
    assert hook.seen == []
    assert Webhook(f"{url}/hook?x=1", opened).post({"firing": [1]}) == ""
    assert hook.seen == [("/hook?x=1", {"firing": [1]})]
    assert "302" in Webhook(f"{url}/moved", opened).post({})
    for wrong in ("ftp://a.test/", "http://", "https://user:secret@a.test/", "ftp://user:secret@a.test/"):
        with pytest.raises(UsageError, match="no URL to post to") as refused:
            Webhook(wrong, opened)
        assert "secret" not in str(refused.value), "which stands on screens and in journals then"


def test_an_address_for_alerts_may_be_written_as_in_a_browser(hook: Any) -> None:
    """O2: what is not ASCII is encoded; what is none is refused at the start, a name that nobody can have is told."""
    opened = AddressGuard(("127.0.0.0/8",))
    assert Webhook(f"http://127.0.0.1:{hook.server_port}/h\u00f6k?\u00fc= 1", opened).post({}) == ""
    assert hook.seen == [("/h%C3%B6k?%C3%BC=%201", {})]
    for wrong in ("http://[/x", "http://a.test:99999/", "http://a.test:x/"):
        with pytest.raises(UsageError, match="no URL to post to"):
            Webhook(wrong, opened)
    assert "did not take it" in Webhook(f"http://{'a' * 70}.test/", opened).post({})
