"""The programs in examples/ and the one in the README do what they say, run as a reader would run them."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from served import plain_web, served

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES, HOSTS = 60, 6


@dataclass(frozen=True)
class Reader:
    """Somebody who tries an example in a directory of their own, on a web that is served beside them."""

    folder: Path
    seed: str

    def runs(self, program: Path, *arguments: str) -> str:
        """Run a program to its end; what it prints."""
        command = [sys.executable, str(program), *arguments]
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        assert not ended.stderr
        return ended.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A web of articles, and the settings that lead to it as a file."""
    spec, arguments = plain_web(11, hosts=HOSTS, pages=PAGES)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "20") as web:
        settings = (
            '[scope]\nmode = "all"\n[limits]\nmax_wait_s = 1\n[politeness]\ndelay_s = 0.02\n'
            f'[fetch]\nallow_addresses = ["{web.told["allow_address"]}"]\n'
            f'[dns]\nresolvers = ["{web.told["resolver"]}"]\n'
        )
        (tmp_path / "web.toml").write_text(settings)
        yield Reader(tmp_path, web.seeds[0])
        assert not web.audit().violations


def test_every_example_is_run_here() -> None:
    """E2: none is left to rot."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in text for path in EXAMPLES.glob("*.py"))


def test_a_first_crawl_prints_every_page(reader: Reader) -> None:
    """E2: pages with url, status, title and links, in ten lines."""
    told = reader.runs(EXAMPLES / "first_crawl.py", reader.seed, "site", "web.toml").splitlines()
    urls = [line.split()[1] for line in told]
    assert len(urls) == len(set(urls)) == PAGES
    assert all(re.fullmatch(r"200 http://\S+ .+ \(\d+ links\)", line) for line in told)


def test_the_program_of_the_readme_runs(reader: Reader) -> None:
    """E2: what the first page shows is no promise but a program of at most ten lines."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert len(program.splitlines()) <= 10
    ast.parse(program)
    here = program.replace('"https://example.org"', f'"{reader.seed}", config="web.toml"')
    assert here != program
    (reader.folder / "program.py").write_text(here)
    assert len(reader.runs(reader.folder / "program.py").splitlines()) == PAGES


def test_a_listener_hears_what_happens(reader: Reader) -> None:
    """O1, E2: one fetch_ok for each page, from the crawl's beginning to its end."""
    told = reader.runs(EXAMPLES / "follow_events.py", reader.seed, "site", "web.toml")
    assert re.match(rf"{PAGES} pages in [\d.]+ s, ended by: done\n", told)
    kinds = {kind: int(count) for count, kind in re.findall(r"^ +(\d+)  (\w+)$", told, re.MULTILINE)}
    assert kinds["fetch_ok"] == PAGES + HOSTS  # each host is asked for a /sitemap.xml, too
    assert (kinds["crawl_start"], kinds["crawl_end"]) == (1, 1)
    assert len(re.findall(r"^ *\d+ ms  http://", told, re.MULTILINE)) == 5


def test_a_stopped_crawl_goes_on_where_it_was(reader: Reader) -> None:
    """E2, F10: stop from code; the directory alone is enough to go on, and no page comes twice."""
    told = reader.runs(EXAMPLES / "stop_and_resume.py", reader.seed, "site", "web.toml")
    first, second = told.splitlines()
    stopped = re.fullmatch(r"stopped by interrupt: (\d+) pages, (\d+) URLs queued", first)
    went_on = re.fullmatch(r"went on: (\d+) more pages, 0 of them twice", second)
    assert stopped is not None, told
    assert went_on is not None, told
    assert 10 <= int(stopped[1]) < PAGES
    assert int(stopped[1]) + int(went_on[1]) == PAGES


def test_a_crawl_can_be_looked_into(reader: Reader) -> None:
    """E2, T8: status, pages and the story of each."""
    reader.runs(EXAMPLES / "first_crawl.py", reader.seed, "site", "web.toml")
    told = reader.runs(EXAMPLES / "inspect_crawl.py", "site")
    assert told.startswith(f"{PAGES} pages of 6 hosts, cycle 1, running: False\nqueued: 0")
    assert told.count("verdict      fetched and stored") == 3
    assert told.count("robots.txt") == 3


# Plugins


def test_a_filter_follows_articles_only(reader: Reader) -> None:
    """E1, T8: the plugin of a program runs in a process of its own, which imports that program."""
    told = reader.runs(EXAMPLES / "plugin_articles.py", reader.seed, "site", "web.toml").splitlines()
    *pages, last = told
    assert 10 < len(pages) < PAGES
    assert all(re.fullmatch(r"200 http://[^/]+/(\S*-\d+(\.html|/)?)?", line) for line in pages)
    kept_out = re.fullmatch(r"(\d+) links kept out, failures: {}", last)
    assert kept_out is not None, last
    assert int(kept_out[1]) > 0
    told_why = reader.runs(EXAMPLES / "inspect_crawl.py", "site")
    assert f"{len(pages)} pages of" in told_why


class _LinkedData(BaseHTTPRequestHandler):
    """Two pages with JSON-LD, one block of them broken."""

    def do_GET(self) -> None:
        data = json.dumps({"@type": "Article", "name": self.path})
        block = f'<script type="application/ld+json">{data}</script>'
        broken = "<script type='application/ld+json'>{not json</script>"
        body = f"<title>t</title>{block}{broken}<a href=/two>two</a>".encode()
        status = 200 if self.path in {"/", "/two"} else 404
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is said."""


@contextmanager
def linked_data() -> Iterator[str]:
    """A server with such pages; its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _LinkedData)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_extractor_writes_json_ld(tmp_path: Path) -> None:
    """E1, X5: what it finds comes with the page, broken blocks left out."""
    settings = '[limits]\nmax_wait_s = 1\n[politeness]\ndelay_s = 0.02\n[fetch]\nallow_addresses = ["127.0.0.0/8"]\n'
    (tmp_path / "web.toml").write_text(settings)
    with linked_data() as seed:
        told = Reader(tmp_path, seed).runs(EXAMPLES / "plugin_json_ld.py", seed, "site", "web.toml")
    assert told == "2 blocks in json-ld.jsonl\n"
    lines = [json.loads(line) for line in (tmp_path / "json-ld.jsonl").read_text().splitlines()]
    assert [line["data"]["name"] for line in lines] == ["/", "/two"]


def test_a_sink_fills_a_database(reader: Reader) -> None:
    """E1: every page once, and the database closed by the plugin itself."""
    told = reader.runs(EXAMPLES / "plugin_sqlite_sink.py", reader.seed, "site", "web.toml")
    assert told.startswith(f"{PAGES} pages in pages.sqlite; most linked to:\n")
    with closing(sqlite3.connect(reader.folder / "pages.sqlite")) as connection:
        [(pages, titles)] = connection.execute("SELECT count(*), count(title) FROM page WHERE status = 200").fetchall()
    assert pages == titles == PAGES
    assert not (reader.folder / "pages.sqlite-journal").exists()


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_without_arguments_says_what_it_takes(program: Path, tmp_path: Path) -> None:
    """E2: and shows no traceback."""
    ended = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.strip() == (ast.get_docstring(ast.parse(program.read_text()), clean=False) or "").strip()
    assert f"python {program.name} " in ended.stderr
