"""Whole crawls that tell others of their pages: over streams that go away, with crawlers that are killed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from gate import Gate, gate
from served import ServedWeb, crawl_json, nephila, plain_web, run, served, stored_pages
from stream_servers import StreamServer, running, valkey

HOSTS, PAGES = 8, 120
OPTIONS = ("--delay", "0.1", "--scope", "all", "--max-wait", "20", "--set", "stream.retry_s=0.05")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StreamServer]:
    folder = tmp_path / "valkey"
    folder.mkdir()
    with running(valkey(folder)) as started:
        yield started


@pytest.fixture
def door(server: StreamServer) -> Iterator[Gate]:
    with gate(server.port) as made:
        yield made


def told(server: StreamServer) -> list[dict[str, object]]:
    """What somebody downstream reads."""
    with redis.Redis(port=server.port) as client:
        return [json.loads(entry[b"message"]) for _, entry in client.xrange("pages")]


def into(door: Gate) -> tuple[str, ...]:
    return (*OPTIONS, "--stream", f"redis://127.0.0.1:{door.port}", "--set", "stream.name=pages")


def begin(web: ServedWeb, out: Path, flags: tuple[str, ...]) -> subprocess.Popen[str]:
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *flags, "--json")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_requests(web: ServedWeb, count: int) -> None:
    deadline = time.monotonic() + 60
    while web.audit().requests < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_and_restarted_every_page_was_told(
    tmp_path: Path, server: StreamServer, door: Gate, processes: int
) -> None:
    """W7, Q4: each at least once, with an id that is one page's; few more than once; the crawl goes on as ever."""
    spec, arguments = plain_web(51, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        for asked in (HOSTS * 3, HOSTS * 6):
            process = begin(web, out, (*into(door), "--processes", str(processes)))
            wait_for_requests(web, asked)
            process.kill()
            process.communicate()
        summary = crawl_json(web, out, *OPTIONS)
        again = crawl_json(web, out, *OPTIONS)
    assert summary["total_pages"] == PAGES
    assert again["responses"] == 0
    messages = told(server)
    places: dict[object, object] = {}
    for message in messages:
        assert places.setdefault(message["id"], message["url"]) == message["url"]
    assert sorted(str(url) for url in places.values()) == sorted(stored_pages(out))
    assert len(messages) - len(places) < PAGES / 2
    assert all(message["crawl"] == "crawl" for message in messages)


def test_a_stream_that_is_away_slows_nothing_until_a_bound(tmp_path: Path, server: StreamServer, door: Gate) -> None:
    """W7, N4: then fetching waits, and goes on by itself; nothing is left out."""
    spec, arguments = plain_web(52, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        flags = (*into(door), "--set", "catalogue.max_waiting=20", "--set", "frontier.urls_per_lease=1")
        process = begin(web, out, flags)
        wait_for_requests(web, HOSTS * 2)
        door.shut()
        before = web.audit().requests
        time.sleep(2.5)
        held = web.audit().requests
        time.sleep(1)
        assert web.audit().requests == held, "it goes on fetching"
        assert held > before
        door.open()
        printed, warnings = process.communicate(timeout=120)
        assert process.returncode == 0, warnings
    assert json.loads(printed)["pages"] == PAGES
    assert "messages go to pages again" in " ".join(warnings.split())
    assert {str(message["url"]) for message in told(server)} == set(stored_pages(out))


def test_a_stream_that_cannot_be_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    """W7, C4: one sentence, and no directory is left behind."""
    out = tmp_path / "crawl"
    for url, sentence in (
        ("redis://u:secret@127.0.0.1:1", "has a password in it"),
        ("gopher://127.0.0.1", "no kind of stream"),
        ("redis://127.0.0.1:1", "cannot be reached|is away"),
    ):
        done = run("crawl", "http://127.0.0.1:1/", "--out", out, "--stream", url, "--set", "stream.open_s=0", code=None)
        assert done.returncode in {1, 2}
        words = " ".join(done.stderr.split())
        assert any(one in words for one in sentence.split("|")), words
        assert "Traceback" not in words
        assert not out.exists()
