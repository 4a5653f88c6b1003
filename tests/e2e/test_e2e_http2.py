"""A site that speaks HTTP/2 alone, through the command line: crawled, archived, audited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from http2_site import PATHS, Site, http2_site
from served import records, run
from warc_checks import check_archives, check_books

QUICK = ("--scope", "host", "--delay", "0", "--max-wait", "1", "--timeout", "5", "--allow-address", "127.0.0.0/8")
ASKED = ("/", "/robots.txt", "/sitemap.xml", *PATHS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with http2_site(tmp_path_factory.mktemp("http2"), only=True) as found:
        yield found


@pytest.fixture(scope="module")
def crawled(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("crawled") / "crawl"
    result = run("crawl", site.url(), "--out", out, *QUICK, "--ca-file", site.authority, "--json")
    summary = json.loads(result.stdout)
    assert (summary["pages"], "Traceback" in result.stderr) == (5, False)
    return out


def test_a_site_that_speaks_nothing_else_is_crawled_and_archived(crawled: Path, site: Site) -> None:
    """H1, K1: every exchange says its protocol; other people's tools find nothing wrong with the archive."""
    check_books(crawled)
    found = {}
    for _, record, block in records(crawled):
        if record.rec_type in {"response", "request"}:
            assert record.rec_headers["WARC-Protocol"] == "h2"
        if record.rec_type == "response":
            found[record.rec_headers["WARC-Target-URI"]] = block[:13]
        if record.rec_type == "request":
            assert block.startswith(b"GET /")
            assert b"\r\nconnection:" not in block.lower()
    assert found.keys() == {site.url(path) for path in ASKED}
    told = [found[site.url(path)] for path in ("/", "/moved", "/missing")]
    assert told == [b"HTTP/1.1 200 ", b"HTTP/1.1 301 ", b"HTTP/1.1 404 "]


def test_its_audit_is_clean(crawled: Path) -> None:
    """P5: requests in the archive are judged as any others."""
    report = json.loads(run("audit", crawled, "--json").stdout)
    assert report["requests"] == len(ASKED)


def test_a_second_cycle_asks_conditionally_and_goes_on_over_http2(crawled: Path, site: Site) -> None:
    """R1, H1: a 304 is a revisit, of the same protocol."""
    run("crawl", "--out", crawled, "--new-cycle", "--json")
    check_archives(crawled)
    revisits = [
        record.rec_headers["WARC-Protocol"]
        for _, record, _ in records(crawled)
        if record.rec_type == "revisit" and record.rec_headers["WARC-Target-URI"] == site.url("/same")
    ]
    assert revisits == ["h2"]


def test_without_it_the_reason_is_told(site: Site, tmp_path: Path) -> None:
    """H1, H5: where the user has switched it off."""
    out = tmp_path / "crawl"
    run("crawl", site.url(), "--out", out, *QUICK, "--ca-file", site.authority, "--http2", "off", "--json", code=1)
    lines = [line for path in (out / "events").glob("*.jsonl") for line in path.read_text().splitlines()]
    details = {event["detail"] for event in map(json.loads, lines) if event["event"] == "error"}
    assert details == {"the server speaks no HTTP that it was offered"}
