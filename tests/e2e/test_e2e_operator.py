"""The operator's side over real sockets: `status`, `why`, `traps`, `policy` and `block` beside a crawl and after it."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from served import ServedWeb, crawl_json, nephila, plain_web, run, served

from nephila.control.changes import Changes
from nephila.control.given import ChangeGiven
from nephila.node.clock import SystemClock
from nephila.node.inspect import open_view
from nephila.node.operating import CrawlOperator
from nephila.testing.web.truth import Expect

SMALL = ("--set", "budget.first_urls=6", "--set", "budget.urls_per_page=0", "--set", "budget.urls_per_referrer=0")
UNHURRIED = ("--delay", "0", "--scope", "all", "--max-wait", "1")


def until(holds: Callable[[], bool], what: str, within_s: float = 60) -> None:
    """Look again and again until something holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)


def ask(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
    """What a command answers a script."""
    answer: dict[str, Any] = json.loads(run(*arguments, "--json", code=code).stdout)
    return answer


def changes_of(out: Path) -> list[ChangeGiven]:
    """The log of changes, the newest first."""
    return Changes(out / "changes.jsonl", SystemClock()).last(1000)


@dataclass(frozen=True)
class Small:
    """A crawl with small budgets that has ended."""

    web: ServedWeb
    out: Path
    summary: dict[str, Any]

    def in_state(self, state: str) -> str:
        """Some URL in that state."""
        view = open_view(self.out)
        urls = sorted(self.web.web.truth("Nephila").urls(Expect.PAGE))
        return next(url for url in urls if view.why(url).data["state"] == state)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    folder = tmp_path_factory.mktemp("small")
    spec, arguments = plain_web(11, hosts=8, pages=200)
    with served(folder / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        summary = crawl_json(web, folder / "crawl", *UNHURRIED, *SMALL)
        yield Small(web, folder / "crawl", summary)


def test_small_budgets_park_what_is_over_and_all_agree(small: Small) -> None:
    """F5, R2, C4: the summary, `status` and its JSON tell the same; planned visits do not count as remaining."""
    summary, status = small.summary, ask("status", small.out)
    assert summary["parked"]["over_budget"] == status["parked"]["over_budget"] > 0
    assert summary["pages"] == status["pages"]
    assert summary["planned"] == status["planned"]
    guesses = summary["planned"] - summary["pages"]  # a /sitemap.xml that a host has not is planned, too
    assert 0 < guesses <= summary["hosts"]
    assert (summary["remaining"], summary["traps"]) == (0, 0)
    assert status["captures"] == summary["responses"]
    assert status["known"] == status["pages"] + guesses + status["parked"]["over_budget"]
    text = run("status", small.out).stdout
    assert all(len(line) <= 80 or str(small.out) in line for line in text.splitlines())
    assert "over_budget" in text
    assert "under" not in text


def test_why_tells_of_the_parked_and_of_the_fetched(small: Small) -> None:
    """T8, F5, R2: what was earned and what earns more; when the next visit is planned."""
    parked = run("why", small.out, small.in_state("parked")).stdout
    said = " ".join(parked.split())
    assert "parked: known and kept" in said
    assert "6 of 6 URLs were let in. It began with 6" in said
    assert "next visit" in run("why", small.out, small.in_state("completed")).stdout


def test_coverage_is_told_under_both_names_of_its_flag(tmp_path: Path) -> None:
    """S4, C4: --target-unique-domains; how many of the wanted domains were reached."""
    spec, arguments = plain_web(12, hosts=6, pages=60)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        options = (*web.flags, *UNHURRIED, "--target-unique-domains", "6")
        result = run("crawl", *web.seeds, "--out", tmp_path / "crawl", *options)
    assert "wanted domains reached" in " ".join(result.stdout.split())


def test_blocks_and_policies_are_kept_and_told(small: Small) -> None:
    """R4, T7, T8: set, shown and taken back by the command line; traps where there are none."""
    host = small.in_state("parked").split("/")[2].partition(":")[0]
    assert ask("policy", small.out, host, "--tier", "high", "--recrawl-every", "6h")["policy"]["recrawl_s"] == 21_600
    assert host in run("policy", small.out).stdout
    assert ask("policy", small.out, host, "--clear")["policy"] is None
    assert (
        ask("block", small.out, "nobody.example", "--reason", "asked us to")["blocked"]["pattern"] == "nobody.example"
    )
    why = ask("why", small.out, "https://www.nobody.example/x", code=1)
    assert why["would_be_refused"] == {"reason": "blocked", "detail": "nobody.example: asked us to"}
    assert ask("block", small.out, "nobody.example", "--remove")["removed"]
    assert ask("block", small.out)["blocks"] == []
    assert ask("traps", small.out) == {"traps": [], "count": 0, "limit": 100, "in_all": 0}
    assert ask("aliases", small.out) == {"aliases": [], "count": 0}


def test_each_order_of_the_command_line_is_in_the_log_of_changes(small: Small) -> None:
    """K1, C2: who, when and what, in the form of the API; seeds of a crawl that goes on, too."""
    known = changes_of(small.out)
    run("block", small.out, "changed.example", "--reason", "asked us to")
    run("block", small.out, "changed.example", "--remove")
    run("block", small.out, "changed.example", "--remove", code=1)
    run("policy", small.out, "changed.example", "--pause")
    run("policy", small.out, "changed.example", "--clear")
    run("dead", small.out, "--retry-all")
    run("dead", small.out, "--retry", "http://changed.example/", code=2)
    run("purge", small.out, "http://changed.example/?token=x", "--reason", "they asked us")
    seeds = ("http://changed.test/?token=x", "--seeds", "-", *small.web.flags, *UNHURRIED, *SMALL)
    run("crawl", *seeds, "--out", small.out, input="http://more.test/\n", code=1)  # there are no such names
    run("crawl", "--out", small.out, code=None)
    assert CrawlOperator(small.out).unblock("http://changed.example/?token=x$")
    found = changes_of(small.out)[: -len(known) or None][::-1]
    assert [(one.what, one.target, one.state) for one in found] == [
        ("block", "changed.example", "done"),
        ("unblock", "changed.example", "done"),
        ("policy", "changed.example", "done"),
        ("policy", "changed.example", "done"),
        ("retry", "all", "done"),
        ("takedown", "", "done"),
        ("seeds", "", "done"),
    ]
    assert {one.who for one in found} == {f"command line ({pwd.getpwuid(os.getuid()).pw_name})"}
    block, unblock, paused, cleared, retried, takedown, sown = found
    assert (block.before, block.after["reason"]) == (None, "asked us to")
    assert unblock.before == block.after
    assert (paused.before["paused"], paused.after["paused"], cleared.after["paused"]) == (False, True, False)
    assert retried.after["revived"] == 0
    assert (takedown.after["urls"], takedown.after["reason"]) == (
        ["http://changed.example/?token=***"],
        "they asked us",
    )
    assert sown.after == {"urls": ["http://changed.test/?token=***"], "count": 1, "lists": ["-"], "added": 2}


@pytest.mark.parametrize(
    "arguments",
    [
        ("policy", "DIR", "site0.test", "--pause", "--delay", "inf"),
        ("policy", "DIR", "site0.test", "--hours", "3-3"),
        ("policy", "DIR", "not a domain", "--pause"),
        ("policy", "DIR", "--pause"),
        ("block", "DIR", "site0.test"),
        ("block", "DIR", "a b", "--reason", "x"),
        ("traps", "DIR", "--release", "*"),
        ("aliases", "DIR", "--undo", "no such"),
        ("traps", "DIR", "site0.test", "--release", "*"),
    ],
)
def test_what_makes_no_sense_changes_nothing(small: Small, arguments: tuple[str, ...]) -> None:
    """C4, R4, T7, K1: one sentence on standard error, exit code 2, nothing in the log of changes."""
    known = changes_of(small.out)
    result = run(*(small.out if word == "DIR" else word for word in arguments), code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("nephila: ")
    operator = CrawlOperator(small.out)
    assert (operator.policies(), operator.blocks()) == ({}, [])
    assert changes_of(small.out) == known


def test_a_pause_in_a_running_crawl_holds_until_it_is_lifted(tmp_path: Path, say: Callable[[str], None]) -> None:
    """R4, T8, C4: no further request to the domain arrives; resumed, it goes on, also when nothing else is left."""
    spec, arguments = plain_web(13, hosts=4, pages=120)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "150") as web:
        host = web.seeds[0].split("/")[2].partition(":")[0]
        options = ("--delay", "0.2", "--scope", "all", "--forever", "--quiet")
        crawler = subprocess.Popen(nephila("crawl", *web.seeds, "--out", out, *web.flags, *options))
        try:
            requests = _counter(web)
            until(lambda: requests(host) > 3 and (out / "catalogue.sqlite").exists(), "the crawl begins")
            run("policy", out, host, "--pause")
            until(lambda: ask("status", out)["hosts_put_off"].get("paused", 0) > 0, "the host is put off")
            paused_at = requests(host)
            until(lambda: _only_paused_left(out), "the others are done")
            status = ask("status", out)
            assert (status["running"], status["paused_domains"]) == (True, [host])
            assert requests(host) == paused_at
            queued = _queued(web, out, host)
            assert f"a person paused {host}" in " ".join(run("why", out, queued).stdout.split())
            run("policy", out, host, "--resume")
            lifted = time.monotonic()
            until(lambda: requests(host) > paused_at + 2, "it goes on")
            say(f"paused after {paused_at} requests, went on {time.monotonic() - lifted:.1f} s after it was lifted")
            assert ask("why", out, queued)["reason"] != "paused"
        finally:
            crawler.send_signal(signal.SIGINT)
            assert crawler.wait(20) == 130
        assert not web.audit().violations


def _counter(web: ServedWeb) -> Callable[[str], int]:
    """How many requests the servers have seen for a host."""

    def requests(host: str) -> int:
        seen = web.audit().hosts.get(host)
        return seen.requests if seen else 0

    return requests


def _only_paused_left(out: Path) -> bool:
    status = ask("status", out)
    queued = sum(status["queued"].values()) + sum(status["waiting_for_a_time"].values())
    return queued == status["hosts_put_off"].get("paused", 0) and status["hosts_by_place"]["leased"] == 0


def _queued(web: ServedWeb, out: Path, host: str) -> str:
    """Some URL of a host that waits in its queue."""
    view = open_view(out)
    urls = sorted(url for url in web.web.truth("Nephila").urls(Expect.PAGE) if f"//{host}" in url)
    return next(url for url in urls if view.why(url).data["state"] == "queued")
