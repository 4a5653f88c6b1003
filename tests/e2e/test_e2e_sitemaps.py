"""Sitemaps, feeds and lists of seeds through the command line, over real sockets, in one process and in several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import QUICK, ServedWeb, crawl_json, run, served, stored_pages

from nephila.testing.serve import listed_spec

DELAY = ("--delay", "0.02")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ServedWeb]:
    with served(tmp_path / "web", listed_spec(1), "--kind", "listed", "--base-delay-ms", "20") as found:
        yield found


def stories(out: Path) -> set[str]:
    return {url for url in stored_pages(out) if "/story/" in url}


@pytest.mark.parametrize("processes", ["1", "2"])
def test_pages_that_only_lists_name_are_fetched_politely(web: ServedWeb, tmp_path: Path, processes: str) -> None:
    """X3, P5: over real sockets, by whichever process has the host; status and why tell of it."""
    out = tmp_path / "crawl"
    summary = crawl_json(web, out, *DELAY, *QUICK, "--processes", processes)
    assert len(stories(out)) == 75
    assert (summary["lists"], summary["pages"]) == (6, 78)
    assert summary["listed"] >= 3 * 23
    assert web.audit().violations == ()
    status = json.loads(run("status", out, "--json").stdout)
    assert status["lists"]["added"] == summary["listed"]
    assert "5 sitemaps and 1 feed read" in run("status", out).stdout
    why = run("why", out, next(url for url in stories(out) if "robots" in url and url.endswith("/story/9")))
    assert "/maps/three.txt" in why.stdout


def test_a_list_may_be_given_as_seeds(web: ServedWeb, tmp_path: Path) -> None:
    """S1: a sitemap by its URL, an outline from a file: all that they name, on whatever host."""
    port = web.told["port"]
    (tmp_path / "feeds.opml").write_text(
        f'<opml><body><outline xmlUrl="http://feed-2.test:{port}/news/feed.xml"/></body></opml>'
    )
    out = tmp_path / "crawl"
    lists = ["--seeds", f"http://guess-1.test:{port}/sitemap.xml", "--seeds", str(tmp_path / "feeds.opml")]
    given = ["crawl", *lists, "--out", out, "--json", *web.flags, *QUICK[:-2], *DELAY, "--scope", "host"]
    summary = json.loads(run(*given).stdout)
    hosts = {url.split("/")[2].partition("-")[0] for url in stories(out)}
    assert hosts == {"guess", "feed"}
    assert len(stories(out)) == 50
    assert summary["seeds"]["added"] == 2
