"""The benches that hold a pace against a bound: they have the machine to themselves (tests/durations.toml)."""

from __future__ import annotations

import json

import pytest
from bench_commands import bench, document


def test_the_service_level_holds() -> None:
    """Q6: on a tenth of the pages."""
    report = document("slo", "--quick", "--json")
    assert report["held"] == dict.fromkeys(("pages_per_s", "error_share", "html_share", "all_pages"), True)
    assert report["pages"] == 2000
    assert report["saved"]["text/html"] == 2000


def test_a_polite_crawl_uses_its_delays_and_breaks_none() -> None:
    """Q2, P5: on a machine that has other work the share has slack; violations have none."""
    done = bench("polite", "--quick", "--json")
    report = json.loads(done.stdout)
    assert (report["violations"], report["broken"]) == (0, [])
    assert report["hosts_asked"] == report["hosts"] == 300
    assert report["share"] > 0.25, report
    assert report["late_ms"]["median"] > 0
    assert done.returncode == (0 if report["ok"] else 1)


def test_a_second_process_brings_pages_where_all_is_waiting() -> None:
    """Q1: each process has a few exchanges in flight, with a server that takes its time."""
    report = document(
        "pages", "--far", "--json", "--sizes", "3", "--pages", "500", "--turns", "1", "--concurrency", "16"
    )
    assert [row["processes"] for row in report["cases"]] == [1, 2]
    one, two = report["cases"]
    assert one["pages"] == two["pages"] == 500
    (gain,) = report["gains"]
    assert gain["speed"] == pytest.approx(two["pages_per_s"] / one["pages_per_s"], abs=0.01)
    assert gain["speed"] > 1.2  # 1.7 and more over a longer run on a quiet machine
