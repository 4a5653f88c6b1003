"""Sitemaps, feeds and lists of seeds through the command line, over real sockets, in one process and in several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

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


class ListServer(BaseHTTPRequestHandler):
    """Lists of seeds as people put them on servers, good ones and others."""

    def do_GET(self) -> None:
        here = f"{self.headers['Host']}"
        answers = {
            "/good": ("text/plain", f"# ours\nhttp://{here}/one\nhttp://[bad\n{here}/two # bare\n\nmailto:a@b.test\n"),
            "/html": ("text/html", f"<p>See <a href='http://{here}/three'>three</a>"),
            "/binary": ("application/octet-stream", "\0\1\2" * 100),
            "/empty": ("text/plain", "# nothing yet\n"),
            "/prose": ("text/plain", "There is nothing to be seen here.\nGo on.\n"),
            "/one": ("text/html", "<p>The first page of all"),
            "/two": ("text/html", "<p>Another page, which is not like it"),
        }
        kind, text = answers.get(self.path, ("text/plain", "not found"))
        self.send_response(302 if self.path == "/moved" else 200 if self.path in answers else 404)
        if self.path == "/moved":
            self.send_header("Location", "/good")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def listing() -> Iterator[str]:
    """The address of such a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), ListServer) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


OPEN = (
    "--allow-address",
    "127.0.0.0/8",
    "--delay",
    "0",
    "--no-guess-sitemap",
    "--max-wait",
    "2",
    "--user-agent",
    "B (+https://b.test)",
)


def test_a_list_behind_a_url_is_read_as_a_file_is(listing: str, tmp_path: Path) -> None:
    """S1: bare domains and comments are understood, and a line that is no seed is told and costs no other."""
    out = tmp_path / "crawl"
    result = run("crawl", "--seeds", f"http://{listing}/good", "--out", out, *OPEN)
    assert set(stored_pages(out)) == {f"http://{listing}/{name}" for name in ("good", "one", "two")}
    assert f"2 lines of the list of seeds http://{listing}/good cannot be crawled: 3 (http://[bad)" in result.stderr
    assert "6 (mailto:a@b.test)" in result.stderr


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone", "HTTP 404"),
        ("html", "what came is no list of URLs or domains (text/html)"),
        ("binary", "what came is no list of URLs or domains (application/octet-stream)"),
        ("empty", "what came is no list of URLs or domains (text/plain)"),
        ("prose", "what came is no list of URLs or domains (text/plain)"),
        ("moved", "it redirects to"),
    ],
)
def test_a_list_that_gives_no_seed_is_warned_of(listing: str, tmp_path: Path, name: str, why: str) -> None:
    """S1, C4: with the reason; without it a crawl that does nothing looks like one that is done."""
    result = run("crawl", "--seeds", f"http://{listing}/{name}", "--out", tmp_path / "crawl", *OPEN)
    assert f"Warning: the list of seeds http://{listing}/{name} gave none: {why}" in result.stderr
