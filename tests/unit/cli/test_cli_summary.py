from __future__ import annotations

from dataclasses import replace

import click
import pytest

from nephila.cli.explanations import ENDINGS
from nephila.cli.figures import clock, moment, rate, short_count, size, span
from nephila.cli.next_steps import worker_place
from nephila.cli.summary import EXIT_CODES, summary_lines
from nephila.model.settings import FleetSettings, Settings
from nephila.model.summary import CrawlSummary, SpoolStanding, StoppedBy

from .conftest import SEEDS, SUMMARY


def text(summary: CrawlSummary = SUMMARY, width: int = 80) -> str:
    return click.unstyle("\n".join(summary_lines(summary, SEEDS, width)))


def test_the_summary_tells_what_happened_and_why() -> None:
    """S3, C4: figures, statuses, errors and refusals with their meaning, what remains, where it is, what to do next."""
    said = text()
    assert said.startswith("Done: nothing is left that could run within --max-wait.\n")
    for fact in (
        "1,234 in 1:23 (14.8/s), 31.2 MB on the wire; 2,000 over all",
        "12 hosts in 4 domains",
        "1,300, robots.txt included; status 200 (1,234), 404 (66)",
        "3 had content that was already stored",
        "12  timeout             no whole answer within the time limit",
        " 1  martian",
        "40,321  scope               outside what was asked for (--scope)",
        "7 URLs queued",
        "7  robots_unavailable  robots.txt cannot be read at present",
        "2 URLs given up",
        "1.2 s of processor time, 120 MB of memory",
        "crawl-example.org",
        "nephila crawl --out crawl-example.org",
        "nephila dead crawl-example.org",
        "nephila why crawl-example.org URL",
    ):
        assert fact in said


def test_the_summary_tells_what_is_parked_planned_and_starving() -> None:
    """F5, F7, R2, S4, T2, D3: what is kept and not queued, by reason; how far coverage has come; where to look."""
    rich = replace(
        SUMMARY,
        parked={"over_budget": 1203, "trap": 30},
        traps=1,
        planned=9,
        starving=1,
        total_domains=45,
        target_domains=100,
        near_duplicates=1017,
    )
    said = text(rich)
    for fact in (
        "12 hosts in 4 domains; 45 of 100 wanted domains reached",
        "1,017 said nearly what another page had said before",
        "1,233 URLs known and kept, not queued for now",
        "1,203  over_budget         more than host or domain has earned",
        "   30  trap                of a shape that brings nothing new",
        "1 pattern of URLs that bring nothing new",
        "9 visits to pages that were fetched, each at its time",
        "1 fetch went to hosts that had waited too long",
        "7 URLs queued",
        "nephila traps crawl-example.org",
    ):
        assert fact in said
    assert "all 45 wanted domains reached" in text(replace(rich, target_domains=45))
    assert "wanted" not in text()
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_crawl_that_is_done_is_not_told_to_go_on() -> None:
    """C4: the next step fits the end."""
    done = replace(SUMMARY, remaining=0, remaining_by_reason={}, dead=0, total_pages=1234, out="my dir")
    said = text(done)
    assert "nephila crawl --out 'my dir' --new-cycle" in said
    assert "  go on" not in said
    assert "over all runs" not in said
    assert "dead" not in said


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_summary_fits_the_screen(width: int) -> None:
    """C4: commands stay whole to be copied; everything else is wrapped."""
    lines = text(width=width).splitlines()
    assert all(len(line) <= width for line in lines if "nephila " not in line)
    assert all(line == line.rstrip() for line in lines)


def test_a_long_tail_of_reasons_is_summed_up() -> None:
    """C4: the largest are listed, the rest counted."""
    said = text(replace(SUMMARY, errors={f"kind{number}": number for number in range(1, 13)}))
    assert "12  kind12" in said
    assert "kind4\n" not in said
    assert "10  of 4 other kinds" in said


def test_every_end_has_its_words_and_its_exit_code() -> None:
    """C4: a new way to end cannot be forgotten."""
    assert set(ENDINGS) == set(StoppedBy)
    assert set(EXIT_CODES) == set(StoppedBy)


def test_a_crawl_that_met_nothing_has_a_short_summary() -> None:
    """C4: no empty lists."""
    nothing = CrawlSummary(0, 0, 0, {}, 0, 0, 0, {}, {}, 0.1, 0.0, 0.1, 1, StoppedBy.INTERRUPT, 0, {}, 0, "x", 0)
    said = text(nothing)
    assert said.startswith("Interrupted: what was fetched is stored")
    assert "errors" not in said
    assert "refused  " not in said
    assert "0 hosts in 0 domains" in said


def test_figures_are_short_and_exact_enough() -> None:
    """C4: figures for people."""
    assert [short_count(n) for n in (0, 99_999, 100_000, 1_234_567, 999_999_999, 10**15)] == [
        "0",
        "99,999",
        "100 k",
        "1.23 M",
        "1.00 G",
        "1,000 T",
    ]
    assert [size(n) for n in (999, 1000, 31_200, 1_500_000_000, 10**18)] == [
        "999 B",
        "1.00 kB",
        "31.2 kB",
        "1.50 GB",
        "1,000 PB",
    ]
    assert [rate(n) for n in (0, 0.254, 14.83, 1480.2)] == ["0.00/s", "0.25/s", "14.8/s", "1,480/s"]
    assert [clock(n) for n in (0, 7.9, 754, 3723, 262_923)] == ["0:00", "0:07", "12:34", "1:02:03", "3d 1:02:03"]
    assert moment(0) == "1970-01-01 00:00:00"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "0.5 s"), (1.0, "1 s"), (90, "90 s"), (900, "15 min"), (21_600.0, "6 h"), (172_800, "2 d"), (0, "0 s")],
)
def test_durations_are_told_in_the_unit_that_leaves_them_whole(seconds: float, said: str) -> None:
    """C4: as people would write them."""
    assert span(seconds) == said


def test_plugins_that_failed_are_named_in_the_summary() -> None:
    """E1: with how often; those that did not fail are not mentioned."""
    said = " ".join(text(replace(SUMMARY, plugins={"hangs": 3, "raises": 1})).split())
    assert "plugins failed: hangs (3), raises (1); the crawl went on without their answers" in said
    assert "plugins" not in text()


def test_a_worker_says_how_the_crawl_of_its_fleet_is_asked() -> None:
    """N3, C4: commands after a worker name the fleet's file, its region and the worker, and no crawl directory."""
    fleet = FleetSettings(crawl="web", directory="/data/my worker", worker="two", group="eu")
    place = worker_place("fleet.toml", Settings(fleet=fleet))

    def said(summary: CrawlSummary) -> str:
        return click.unstyle("\n".join(summary_lines(summary, None, 100, place)))

    again = "nephila worker --config fleet.toml --group eu --dir '/data/my worker' --name two"
    drained = said(replace(SUMMARY, stopped_by=StoppedBy.DRAINED, out="/data/my worker"))
    assert drained.startswith("Drained: what this worker had begun is stored")
    for line in (
        f"  go on                  {again}\n",
        "nephila dead --config fleet.toml --group eu\n",
        "nephila pages --config fleet.toml --group eu\n",
        "nephila why --config fleet.toml URL",
        "  worker in     /data/my worker\n",
    ):
        assert line in drained
    assert "crawl --out" not in drained
    assert f"{again} --set limits.max_time_s=0" in said(replace(SUMMARY, stopped_by=StoppedBy.MAX_TIME))
    spool = SpoolStanding("s3://crawls/web", 1, 10)
    assert f"upload what waits      {again}" in said(replace(SUMMARY, stopped_by=StoppedBy.UNSENT, spool=spool))
    assert "--new-cycle" not in said(replace(SUMMARY, stopped_by=StoppedBy.DONE, remaining=0))


def test_of_a_directory_that_is_gone_no_command_is_told() -> None:
    """C4, F10: no room is to be made, and nothing goes on where it was."""
    said = click.unstyle("\n".join(summary_lines(replace(SUMMARY, stopped_by=StoppedBy.GONE), None, 100)))
    assert said.startswith("Stopped because its directory was moved or removed")
    assert "was in " in said
    assert "nephila " not in said
    assert "make room" not in said
