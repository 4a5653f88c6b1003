"""What a crawl says that has failed, or that could have gone better."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import click
import pytest
from click.testing import Result

from nephila.cli.alerts import WarningSink
from nephila.cli.explanations import ERRORS, REMEDIES
from nephila.cli.output import tell
from nephila.cli.summary import exit_code, shortfall, summary_lines
from nephila.model.errors import NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.seeds import SeedRefused, SeedReport

from .conftest import SUMMARY, FakeNode

Invoke = Callable[..., Result]

SILENT = replace(SUMMARY, responses=0, pages=0, errors={"dns": 1, "connect": 3, "martian": 9})


def test_a_crawl_that_nobody_answered_has_failed_and_says_what_to_do(invoke: Invoke, node: FakeNode) -> None:
    """C4: the commonest reason, exit code 1, in JSON too."""
    node.summary = SILENT
    result = invoke("crawl", "a.org", "--json", "-q", "--user-agent", "B (+https://b.org)")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["exit_code"] == 1
    assert result.stderr.startswith("nephila: no server answered: no connection: refused or unreachable.\n")
    assert "the same command goes on" in result.stderr


def test_a_crawl_that_waits_for_servers_that_did_not_answer_has_failed_too(invoke: Invoke, node: FakeNode) -> None:
    """C4, F2: the same command given again at once asks nobody; a script must not take that for success."""
    waiting = {"robots_unavailable": 6, "queued": 1}
    node.summary = replace(SILENT, errors={}, remaining_by_reason=waiting, due_in_s=271.2)
    result = invoke("crawl", "a.org", "--json", "-q", "--user-agent", "B (+https://b.org)")
    assert result.exit_code == json.loads(result.stdout)["exit_code"] == 1
    assert "nothing was fetched, 6 URLs of servers that did not answer before: robots.txt cannot be" in result.stderr
    assert "the same command goes on, the next URL in 4:32" in result.stderr


@pytest.mark.parametrize(
    ("errors", "dead", "told", "advice"),
    [
        ({"address": 1}, 0, "no server answered: the address is not public", "--new-cycle asks once more"),
        ({}, 0, "no server has ever answered", "--new-cycle asks once more"),
        ({}, 2, "no server has ever answered", "dead d --retry-all` queues again"),
    ],
)
def test_what_was_given_up_is_not_said_to_go_on(
    invoke: Invoke, node: FakeNode, errors: dict[str, int], dead: int, told: str, advice: str
) -> None:
    """C4: of a crawl in which nothing was ever fetched and nothing waits."""
    left = replace(SILENT, errors=errors, remaining=0, remaining_by_reason={}, dead=dead, unanswered=True)
    node.summary = left
    result = invoke("crawl", "a.org", "-q", "--out", "d", "--user-agent", "B (+https://b.org)")
    assert result.exit_code == 1
    assert told in result.stderr
    assert advice in " ".join(result.stderr.split())
    assert "the same command" not in result.stderr
    assert exit_code(replace(left, errors={}, unanswered=False)) == 0


@pytest.mark.parametrize(
    ("summary", "code", "told"),
    [
        (SILENT, 1, "nephila: no server answered"),
        (replace(SUMMARY, stopped_by=StoppedBy.STORAGE, failure="the disk is full"), 1, "nephila: the disk is full.\n"),
        (replace(SUMMARY, stopped_by=StoppedBy.INTERRUPT), 130, ""),
        (replace(SUMMARY, stopped_by=StoppedBy.MAX_PAGES), 0, ""),
    ],
)
def test_a_demonstration_that_failed_says_so(
    invoke: Invoke, node: FakeNode, summary: CrawlSummary, code: int, told: str
) -> None:
    """C4: an auditor who has seen no request has nothing to object to; --pages is what was asked for."""
    node.summary = summary
    result = invoke("demo", "--out", "d")
    assert result.exit_code == code
    assert result.stderr.startswith(told)


@pytest.mark.parametrize(
    "summary",
    [
        replace(SILENT, responses=1),
        replace(SILENT, errors={}, remaining_by_reason={}),
        replace(SILENT, errors={}, remaining_by_reason={"paused": 7}),
        replace(SILENT, errors={"http_5xx": 2}, remaining_by_reason={}),
        replace(SILENT, stopped_by=StoppedBy.INTERRUPT),
        replace(SILENT, stopped_by=StoppedBy.MAX_TIME),
    ],
)
def test_any_other_end_is_told_by_its_own_exit_code(summary: CrawlSummary) -> None:
    """C4: one answer is an answer; a limit or a signal is its own reason."""
    assert shortfall(summary) is None
    assert (
        exit_code(summary) == {StoppedBy.DONE: 0, StoppedBy.INTERRUPT: 130, StoppedBy.MAX_TIME: 3}[summary.stopped_by]
    )


def test_every_failure_with_a_remedy_has_its_words() -> None:
    """C4: what is wrong goes before what to do."""
    assert set(REMEDIES) <= set(ERRORS)


def test_what_the_disk_refused_is_told_however_quiet(invoke: Invoke, node: FakeNode) -> None:
    """C4, W2: the summary alone would not say which file."""
    node.summary = replace(SUMMARY, stopped_by=StoppedBy.STORAGE, failure="The archive is full. Make room.")
    result = invoke("crawl", "a.org", "-q", "--user-agent", "B (+https://b.org)")
    assert (result.exit_code, result.stderr) == (1, "nephila: The archive is full. Make room.\n")


def test_refused_seeds_are_named_with_their_line_and_the_reason() -> None:
    """S1: the first few."""
    refused = [SeedRefused(f"bad{number}", "malformed", "it is bad", f"file l.txt:{number}") for number in range(9)]
    report = SeedReport(1, 0, {"malformed": 9}, tuple(refused))
    said = click.unstyle("\n".join(summary_lines(SUMMARY, report, 80)))
    assert "    bad0 (file l.txt:0): it is bad" in said
    assert "bad4" in said
    assert "bad5" not in said
    assert "    and 4 more, each an event seed_refused with its line" in said
    few = SeedReport(1, 0, {"malformed": 2}, tuple(refused[:2]))
    assert "more" not in click.unstyle("\n".join(summary_lines(SUMMARY, few, 80)))


def test_warnings_about_the_crawl_are_shown_and_those_about_a_url_are_not() -> None:
    """C4, H1: unasked for, they would bury the others."""
    lines: list[str] = []
    sink = WarningSink(lines.append)
    sink.emit(Event(EventKind.WARNING, 0, reason="descriptors", detail="too \x1bfew"))
    sink.emit(Event(EventKind.WARNING, 0, url="http://a.test/", reason="validators_lie", detail="x"))
    sink.emit(Event(EventKind.FETCH_OK, 0, detail="x"))
    sink.flush()
    sink.close()
    assert lines == ["Warning: too \N{REPLACEMENT CHARACTER}few."]


def test_commands_that_a_hint_names_can_be_copied_as_they_stand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C4: in a checkout the program is not on the path, and was called by another name."""
    monkeypatch.setenv("NEPHILA_COMMAND", "./nephila")
    tell(NephilaError("there is no crawl", hint="`nephila crawl URL --out DIR` begins one"))
    assert "\n  `./nephila crawl URL --out DIR` begins one\n" in capsys.readouterr().err
    monkeypatch.delenv("NEPHILA_COMMAND")
    tell(NephilaError("there is no crawl", hint="`nephila crawl URL --out DIR` begins one"))
    assert "\n  `nephila crawl URL --out DIR` begins one\n" in capsys.readouterr().err
