"""Whole crawls whose catalogue is in a real PostgreSQL server: one that goes away, with crawlers that are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gate import Gate, gate
from postgres import DATABASE, PASSWORD, USER, Postgres, running
from served import ServedWeb, crawl_json, nephila, plain_web, run, served
from warc_checks import check_archives, places_in_archives

HOSTS, PAGES = 10, 200
OPTIONS = ("--delay", "0.1", "--scope", "all", "--max-wait", "20", "--set", "catalogue.retry_s=0.05")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running() as started:
        yield started


@pytest.fixture
def door(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A door in front of the server; the password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with gate(server.port) as made:
        yield made


def into(place: Gate | Postgres, name: str) -> tuple[str, ...]:
    """The flags of a crawl whose catalogue is there."""
    url = f"postgresql://{USER}@127.0.0.1:{place.port}/{DATABASE}"
    return (*OPTIONS, "--catalogue", url, "--set", f"catalogue.name={name}")


def check_catalogue(server: Postgres, name: str, out: Path) -> None:
    """The catalogue lists what is in the archives, each once, and has counted each once."""
    check_archives(out)
    answers, _ = places_in_archives(out)
    schema = f"crawl_{name}"
    rows = server.query('SELECT s.name, c."offset" FROM captures c JOIN segments s ON s.id = c.segment', schema)
    assert sorted((segment, int(offset)) for segment, offset in rows) == sorted(answers)
    assert server.query("SELECT sum(captures) FROM totals", schema) == [(str(len(rows)),)]
    assert server.query("SELECT sum(total_requests) FROM domains", schema) == [(str(len(rows)),)]
    assert not (out / "catalogue.sqlite").exists()


def begin(web: ServedWeb, out: Path, flags: tuple[str, ...]) -> subprocess.Popen[str]:
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *flags, "--json")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_crawl_with_its_catalogue_in_postgres(tmp_path: Path, door: Gate, server: Postgres) -> None:
    """W3, N2, K4, W6: pages, status, report, why, export and sql read it there; its password is written nowhere."""
    spec, arguments = plain_web(41, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        summary = crawl_json(web, out, *into(door, "whole"))
        assert summary["pages"] == PAGES
        check_catalogue(server, "whole", out)
        pages = json.loads(run("pages", out, "--json", "--limit", "5").stdout)["pages"]
        status = json.loads(run("status", out, "--json").stdout)
        report = json.loads(run("report", out, "--json").stdout)
        why = json.loads(run("why", out, web.seeds[0], "--json").stdout)
        exported = json.loads(run("export", out, "--to", tmp_path / "pages.jsonl", "--json").stdout)
        counted = json.loads(run("sql", out, "SELECT count(*) AS n FROM pages WHERE status = 200", "--json").stdout)
        refused = run("sql", out, "DELETE FROM captures", code=2)
        again = crawl_json(web, out, *OPTIONS)
        other = run("crawl", web.seeds[0], "--out", tmp_path / "other", *web.flags, *into(door, "whole"), code=1)
    assert len(pages) == 5
    assert status["captures"] == len(places_in_archives(out)[0])
    assert report["pages"] == PAGES
    assert why["captures"]
    assert exported["exported"] == counted["n"] == PAGES
    assert "only what reads" in refused.stderr
    assert again["responses"] == 0
    assert "holds the catalogue of another crawl" in " ".join(other.stderr.split())
    assert not (tmp_path / "other").exists()
    files = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in files


def test_takedowns_reach_the_catalogue_there(tmp_path: Path, door: Gate, server: Postgres) -> None:
    """K2, W3: a page and a domain are taken out of it, and of what is counted; the rest agrees with the archives."""
    spec, arguments = plain_web(45, hosts=4, pages=40)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "50") as web:
        crawl_json(web, out, *into(door, "purged"), "--delay", "0.05")
        pages = json.loads(run("pages", out, "--json", "--limit", "99").stdout)["pages"]
    page, other = (
        pages[0]["url"],
        next(one["url"] for one in pages if one["url"].split("/")[2] != pages[0]["url"].split("/")[2]),
    )
    host = other.split("/")[2].partition(":")[0]
    run("purge", out, page, host, "--reason", "they asked us to")
    left = [one["url"] for one in json.loads(run("pages", out, "--json", "--limit", "99").stdout)["pages"]]
    assert left
    assert page not in left
    assert not [url for url in left if f"//{host}:" in url]
    check_catalogue(server, "purged", out)


def test_a_server_that_restarts_and_a_crawler_that_is_killed(
    tmp_path: Path, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N4, W3, Q4: the catalogue agrees with the archives in the end, and nothing was counted twice."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    spec, arguments = plain_web(42, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        for asked in (HOSTS * 4, HOSTS * 8):
            process = begin(web, out, into(server, "killed"))
            wait_for(lambda asked=asked: web.audit().requests >= asked)  # type: ignore[misc]  # bound at once
            server.crash()
            time.sleep(0.3)
            process.kill()
            process.communicate()
            server.start()
        process = begin(web, out, into(server, "killed"))
        wait_for(lambda: web.audit().requests >= HOSTS * 12)
        server.crash()
        time.sleep(1.5)
        server.start()
        printed, warnings = process.communicate(timeout=120)
        assert process.returncode == 0, warnings
        assert set(web.audit().by_kind) <= {"repeat"}
    assert json.loads(printed)["total_pages"] == PAGES
    assert "answers again" in warnings
    check_catalogue(server, "killed", out)


def test_fetching_waits_for_a_catalogue_that_stays_away(tmp_path: Path, server: Postgres, door: Gate) -> None:
    """N4: what waits for it is bounded; pages are synced and confirmed meanwhile, and it goes on by itself."""
    spec, arguments = plain_web(43, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        flags = (*into(door, "bounded"), "--set", "catalogue.max_waiting=30", "--set", "frontier.urls_per_lease=1")
        process = begin(web, out, flags)
        wait_for(lambda: web.audit().requests >= HOSTS * 3)
        door.shut()
        before = web.audit().requests
        time.sleep(3)
        held = web.audit().requests
        time.sleep(1.5)
        assert web.audit().requests == held, "it goes on fetching"
        assert held - before < PAGES - HOSTS * 3
        door.open()
        printed, warnings = process.communicate(timeout=120)
        assert process.returncode == 0, warnings
    assert json.loads(printed)["pages"] == PAGES
    check_catalogue(server, "bounded", out)


def test_stopping_does_not_wait_for_a_catalogue_that_is_away(tmp_path: Path, server: Postgres, door: Gate) -> None:
    """F10, N4: Ctrl-C ends within seconds and says what is missing; the next start lists it from the archive."""
    spec, arguments = plain_web(44, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        process = begin(web, out, into(door, "stopped"))
        wait_for(lambda: web.audit().requests >= HOSTS * 4)
        door.shut()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=15)
        assert process.returncode == 1
        assert "Nothing is lost" in " ".join(told.split())
        refused = run("pages", out, "--set", "catalogue.open_s=0.1", code=None)
        assert refused.returncode != 0
        door.open()
        summary = crawl_json(web, out, *OPTIONS)
    assert summary["total_pages"] == PAGES
    check_catalogue(server, "stopped", out)
