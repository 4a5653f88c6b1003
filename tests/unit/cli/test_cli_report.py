from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from nephila.cli.charts import area, bars, nice, table
from nephila.cli.main import run
from nephila.cli.report import levels_for, report_lines, spark, squeezed
from nephila.cli.report_page import decade, render
from nephila.model.errors import CrawlDirectoryError
from nephila.report import Moment, Timeline, WorkerFigures

from .conftest import REPORT, FakeNode

Invoke = Callable[..., Result]
BLOCKS = levels_for("utf-8")


def test_the_report_tells_all_in_rows_and_bars(invoke: Invoke) -> None:
    """O3: what was fetched, how fast, what failed where, and what is left."""
    told = invoke("report", "d").stdout
    for wanted in (
        "1,234 from 45 domains",
        "12 for robots.txt; 31.2 MB on the wire",
        "13, 1.0% of all exchanges",
        "30 the same bytes, 20 nearly the same, 10 not changed since",
        "half at most 3.00 kB",
        "7 queued, 3 waiting, 20 parked, 2 given up",
        "pages/s",
        "timeout",
        "slow.test",
        "100 to 999",
        "a.test",
        "/calendar/{date}",
    ):
        assert wanted in told, wanted
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("pages", "ended_ms", "best"),
    [
        ([43, 46], 2000, 46),
        ([43, 43], 1900, 86 / 1.9),
        ([43, 9], 1001, 52 / 1.001),
        ([10, 50, 43, 2], 3010, 50),
        ([7], 100, 70),
        ([7], 0, 7),
        ([8, 2], 60_000, 8),
    ],
)
def test_the_best_rate_is_never_below_the_average(pages: list[int], ended_ms: int, best: float) -> None:
    """O3: both are of the same pages and the same time."""
    begun_at = REPORT.timeline.begun_at
    timeline = Timeline(begun_at, 1000, [Moment(one) for one in pages])
    report = replace(REPORT, pages=sum(pages), timeline=timeline, ended_at=begun_at + ended_ms)
    assert report.most_pages_per_s == pytest.approx(best)
    assert report.most_pages_per_s >= report.pages_per_s


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 20_000))
def test_no_timeline_has_a_best_rate_below_its_average(pages: list[int], more_ms: int) -> None:
    """O3: wherever in the last step, or after it, the last answer ends."""
    begun_at = REPORT.timeline.begun_at
    timeline = Timeline(begun_at, 2000, [Moment(one) for one in pages])
    ended_at = begun_at + 2000 * (len(pages) - 1) + more_ms
    report = replace(REPORT, pages=sum(pages), timeline=timeline, ended_at=ended_at)
    assert report.pages_per_s <= report.most_pages_per_s * (1 + 1e-9)


@pytest.mark.parametrize("width", [40, 57, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """O3, C4: down to 40 columns."""
    assert max(map(len, report_lines(REPORT, width, BLOCKS))) <= width


def test_a_long_tail_is_summed_up_without_a_bar() -> None:
    """O3: nothing is left out of the sum."""
    lines = list(report_lines(replace(REPORT, errors={f"kind{n:02}": 100 - n for n in range(10)}), 80, BLOCKS))
    rest = next(line for line in lines if " more " in line)
    assert rest.split() == ["4", "more", str(94 + 93 + 92 + 91)]


def test_a_crawl_without_an_answer_has_a_report() -> None:
    """O3: one sentence."""
    lines = list(report_lines(replace(REPORT, timeline=Timeline()), 80, BLOCKS))
    assert lines[-1].strip() == "Nothing was fetched yet."
    assert "nothing was fetched yet" in render(replace(REPORT, timeline=Timeline()))


def test_charts_of_characters() -> None:
    """O3: only nothing is blank; a stream that knows no blocks gets plain characters."""
    assert spark([0, 0.001, 4, 8], BLOCKS) == " ▁▄█"
    assert spark([0, 0], BLOCKS) == "  "
    assert spark([1, 2], levels_for("ascii")) == "=@"
    assert levels_for("no-such-encoding") == levels_for(None) == levels_for("latin-1") != BLOCKS
    assert squeezed([1, 3, 5, 7], 2) == [2, 6]
    assert squeezed([1, 2], 4) == [1, 1, 2, 2]


def test_the_report_as_json(invoke: Invoke) -> None:
    """O3, C4: everything as data."""
    document = json.loads(invoke("report", "d", "--json").stdout)
    assert document["timeline"]["moments"][3] == {"pages": 60, "answers": 66, "errors": 0, "bytes": 500_000}
    assert document["error_hosts"][0]["kinds"] == {"timeout": 12}
    assert document["coverage"]["leading"][0]["domain"] == "a.test"
    assert document["traps"][0]["pattern"] == "/calendar/{date}"
    assert document["pages_per_s"] == pytest.approx(1234 / 22)


class Reader(HTMLParser):
    """Checks that every element is closed, and keeps what there is."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"meta", "line"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    """O3: well formed, no script, nothing from elsewhere; names of strangers are text and nothing more."""
    page = render(REPORT)
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert "script" not in reader.names
    assert not {"src", "href", "onload"} & reader.attributes
    assert "url(" not in page
    assert "http" not in re.sub("http-equiv|http_|https?://calendar", "", page)
    assert "slow.test<script>" in reader.text
    assert "my <crawl>" in reader.text
    assert "default-src 'none'" in page


def test_the_page_is_written_wholly_or_not_at_all(invoke: Invoke, tmp_path: Path) -> None:
    """O3, C4: what was there stays until the new one is complete."""
    result = invoke("report", "d", "--html", "r.html")
    assert result.exit_code == 0
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    result = invoke("report", "d", "--html", "missing/r.html")
    assert result.exit_code == 1
    assert isinstance(result.exception, Exception)
    assert "missing/r.html cannot be written: No such file or directory" in str(result.exception)
    assert invoke("report", "d", "--html", "-").stdout.endswith("</html>\n")


def test_what_is_no_file_is_written_into_and_not_replaced(invoke: Invoke, tmp_path: Path) -> None:
    """O3, C4: `--html /dev/stdout` by root must not leave a file where the device was."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # the page fits into a pipe
    try:
        assert invoke("report", "d", "--html", "pipe").exit_code == 0
        assert os.read(reader, 1 << 20).startswith(b"<!doctype html>")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_and_what_it_leads_to_is_written(invoke: Invoke, tmp_path: Path) -> None:
    """O3, C4: `latest.html` that leads into a served folder goes on doing so."""
    (tmp_path / "served").mkdir()
    (tmp_path / "latest.html").symlink_to("served/report.html")
    for _ in range(2):  # first it leads nowhere
        assert invoke("report", "d", "--html", "latest.html").exit_code == 0
        assert (tmp_path / "latest.html").is_symlink()
        assert (tmp_path / "served" / "report.html").read_text().startswith("<!doctype html>")
    assert [path.name for path in (tmp_path / "served").iterdir()] == ["report.html"]


def test_the_page_has_the_permissions_that_new_files_have(invoke: Invoke, tmp_path: Path) -> None:
    """O3, K4: who keeps files to himself does so with this one."""
    old = os.umask(0o077)
    try:
        for umask, mode in ((0o077, 0o600), (0o027, 0o640), (0o022, 0o644)):
            os.umask(umask)
            assert invoke("report", "d", "--html", "r.html").exit_code == 0
            assert (tmp_path / "r.html").stat().st_mode & 0o777 == mode
    finally:
        os.umask(old)


def test_the_name_of_a_crawl_may_be_bytes(invoke: Invoke, node: FakeNode, tmp_path: Path) -> None:
    """O3, C4: what is no text is spelled in the page, as on standard output."""
    node.reported = replace(REPORT, directory="caf\udce9")
    assert invoke("report", "d", "--html", "r.html").exit_code == 0
    assert "caf\\udce9" in (tmp_path / "r.html").read_text()


def test_wrong_use_is_told(invoke: Invoke, node: FakeNode) -> None:
    """C4: one way to print at a time; a directory that is no crawl."""
    assert invoke("report", "d", "--html", "x", "--json").exit_code == 2
    node.raises = CrawlDirectoryError("there is no crawl in d")
    assert isinstance(invoke("report", "d").exception, CrawlDirectoryError)


def test_scales_end_at_round_figures() -> None:
    """O3: 1, 2 or 5 times a power of ten."""
    assert [nice(most) for most in (0, 0.03, 0.9, 1, 3, 17, 58, 100, 101)] == pytest.approx(
        [1, 0.05, 1, 1, 5, 20, 100, 100, 200]
    )


def test_pieces_of_the_page() -> None:
    """O3: empty ones say so; figures are escaped."""
    assert bars([]) == table(("a",), []) == '<p class="none">None.</p>'
    assert "&lt;b&gt;" in table(("a",), [("<b>",)])
    drawn = area([0.0, 5.0], 1_700_000_000_000, 1000, str, "x > y")
    assert 'aria-label="x &gt; y"' in drawn
    assert [decade(digits) for digits in (0, 1, 4)] == ["none", "1 to 9", "1,000 to 9,999"]


def test_the_report_of_a_fleet_names_its_workers_and_what_waits_with_them(invoke: Invoke, node: FakeNode) -> None:
    """O3, F9: in rows, as data and on the page; a directory's has no word of workers."""
    assert "workers" not in invoke("report", "d").stdout
    assert "Workers" not in render(REPORT)
    first = WorkerFigures("first", "working", 900, 3, 12.5, 4_000_000)
    node.reported = replace(REPORT, workers=(first, WorkerFigures("<two>", "silent", 334)))
    Path("fleet.toml").write_text('[fleet]\ncrawl = "web"\n')
    told = invoke("report", "--config", "fleet.toml", "--group", "eu")
    assert told.exit_code == 0, told.output
    (_, settings) = node.asked[-1]
    assert (settings.settings.fleet.crawl, settings.settings.fleet.group) == ("web", "eu")
    assert "1 working, 1 silent; 4.00 MB in their spools are not in this report yet" in " ".join(told.stdout.split())
    assert re.search(r"^ +first +900 ", told.stdout, re.MULTILINE)
    assert max(map(len, report_lines(node.reported, 40, BLOCKS))) <= 40
    document = json.loads(invoke("report", "--config", "fleet.toml", "--json").stdout)
    assert document["workers"][0]["waiting_bytes"] == 4_000_000
    page = render(node.reported)
    assert "4.00 MB" in page
    assert "&lt;two&gt;" in page


def test_a_report_is_of_one_crawl(invoke: Invoke) -> None:
    """C4: one sentence for none, and for two."""
    for arguments in ((), ("d", "--config", "fleet.toml")):
        found = invoke("report", *arguments)
        assert found.exit_code != 0
        assert "Name one crawl" in str(found.exception)


def test_a_page_on_standard_output_is_the_utf_8_that_it_says_it_is(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O3, C4: whatever the locale."""
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="latin-1"))
    node.reported = replace(REPORT, directory="Größe 世界")
    assert run(["report", "d", "--html", "-"], node.backend()) == 0
    assert "Größe 世界" in written.getvalue().decode()
