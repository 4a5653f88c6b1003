"""A crawl among a hundred hosts that send anything: none of them hurts it, nor the honest hosts beside them.

The crawls run in a network namespace that has loopback and nothing else (`hostile_crawl`); here stands what they must
have come to.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import DELAY_S, HONEST
from namespace import run_alone

SUPPORT = Path(__file__).parents[1] / "support"
SMALL_PEAK, LARGE_PEAK = 250_000_000, 1_000_000_000
"""Anonymous memory, as docs/limits.md states it: for the small limits of this crawl, and for the default ones."""
SHARE = 0.25
"""What is left of the honest hosts' pace among hostile ones, at least, on a machine that is busy many times over; on
one that has nothing else to do it is far more (docs/limits.md)."""
CORE = 0.7
"""Of a core, that all hostile hosts together take at most."""

Crawls = Mapping[str, Any]


def crawls(folder: Path, *more: str, timeout: float) -> Crawls:
    result = run_alone([SUPPORT / "hostile_crawl.py", folder, *more], timeout=timeout)
    assert (result.returncode, result.stderr) == (0, "")
    told: dict[str, Any] = json.loads((folder / "evidence.json").read_text())
    return told


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Crawls:
    """What both crawls came to."""
    return crawls(tmp_path_factory.mktemp("hostile"), timeout=180)


def events(crawl: Mapping[str, Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for path in sorted((Path(crawl["out"]) / "events").glob("*.jsonl")):
        lines += [json.loads(line) for line in path.read_text().splitlines()]
    return lines


def share(crawl: Mapping[str, Any]) -> float:
    """What part of the pace that the delay allows the slowest honest host had."""
    return min(DELAY_S * (len(times) - 1) / (times[-1] - times[0]) for times in crawl["arrivals"].values())


def assert_unhurt(crawl: Mapping[str, Any]) -> None:
    assert crawl["exit"] in {0, 3, 130}, "done, out of time, or interrupted by the program when it had seen enough"
    assert "Traceback" not in crawl["stderr"]
    assert "error" not in crawl["stderr"].lower()
    assert [event for event in events(crawl) if event["event"] == "warning" and event.get("reason") == "bug"] == []
    connection = sqlite3.connect(f"file:{crawl['out']}/catalogue.sqlite?mode=ro", uri=True)
    try:
        assert connection.execute("SELECT count(*) FROM errors WHERE kind = 'bug'").fetchone() == (0,)
    finally:
        connection.close()


def test_no_server_crashes_the_crawl_or_finds_a_bug_in_it(evidence: Crawls, say: Callable[[str], None]) -> None:
    """Q5: any bytes at any phase, over plain connections and TLS."""
    mixed = evidence["mixed"]
    assert_unhurt(mixed)
    reached = [name for name, address in mixed["hostile"].items() if mixed["connections"].get(address)]
    say(f"{len(reached)} of {len(mixed['hostile'])} hostile hosts were asked; errors {mixed['summary']['errors']}")
    assert len(reached) == len(mixed["hostile"])


def test_no_server_makes_the_crawl_hang(evidence: Crawls) -> None:
    """Q5, H2: each fetch has its time, and a crawl that is told to stop does so within seconds."""
    assert evidence["mixed"]["exit"] == 130, "every host was asked and every honest page fetched before time was up"
    assert evidence["mixed"]["seconds"] < 90


def test_memory_stays_within_its_bound(evidence: Crawls, say: Callable[[str], None]) -> None:
    """Q5: bombs, endless bodies, a million links; anonymous memory, sampled while the crawl runs."""
    peak = evidence["mixed"]["peak_anonymous_bytes"]
    say(f"anonymous memory {peak / 1e6:.0f} MB at most, {evidence['honest']['peak_anonymous_bytes'] / 1e6:.0f} without")
    assert 0 < peak < SMALL_PEAK


def test_honest_hosts_are_crawled_completely_and_keep_their_pace(evidence: Crawls, say: Callable[[str], None]) -> None:
    """Q5, Q2: no page holds the loop for long, and no host takes more than its part of the processor."""
    honest, mixed = evidence["honest"], evidence["mixed"]
    for crawl in (honest, mixed):
        assert len(crawl["fetched"]) == HONEST
        assert set(crawl["fetched"].values()) == {crawl["pages"] + 1}
    core = (mixed["summary"]["cpu_s"] - honest["summary"]["cpu_s"]) / mixed["summary"]["seconds"]
    say(f"pace {share(mixed):.3f} of what the delay allows, {share(honest):.3f} without; {core:.2f} of a core more")
    assert core < CORE
    assert share(mixed) > SHARE * share(honest)


def test_no_redirect_or_link_leads_to_a_private_address(evidence: Crawls) -> None:
    """Q5, H6: every address of the namespace has a listener, and only those of the web's hosts were connected to."""
    assert evidence["mixed"]["trespasses"] == {}


@pytest.mark.long
def test_the_same_holds_under_the_default_limits(tmp_path: Path, say: Callable[[str], None]) -> None:
    """Q5, H2: 10 MB a body and 20 MB unpacked, for two minutes."""
    told = crawls(tmp_path, "--large", timeout=500)
    mixed = told["mixed"]
    assert_unhurt(mixed)
    say(f"anonymous memory {mixed['peak_anonymous_bytes'] / 1e6:.0f} MB at most; pace {share(mixed):.3f}")
    assert mixed["peak_anonymous_bytes"] < LARGE_PEAK
    assert set(mixed["fetched"].values()) == {mixed["pages"] + 1}
    assert mixed["trespasses"] == {}
