"""Retention of a fleet on real engines: what need not be kept goes from bucket and database; workers come back (W5)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from changing_site import PAGES, changing_site, is_steady
from fleet_engines import Engines, Fleet, Worker
from leashed import leashed
from seaweed import BUCKET, ask_object
from served import ServedWeb, nephila, records, run
from waiting import wait_until
from warc_checks import check_archives, check_index, index_lines

from nephila.config import load
from nephila.node.archiving import object_store
from nephila.node.clock import SystemClock
from nephila.store import MARKER

OFTEN = "[recrawl]\npolicy = 'simple'\nfirst_s = 1\nmin_s = 1\nmax_s = 1\n"
"""Pages are due again at once."""
CAPTURES = 4 * PAGES
KILLS = 10
POLL_S = 0.02


@dataclass
class Retained:
    """A fleet whose pages were fetched several times, and whose workers have left."""

    fleet: Fleet
    folder: Path

    def rows(self, query: str) -> list[Any]:
        return self.fleet.engines.database.query(query, f'"crawl_{self.fleet.crawl}"')

    @property
    def captures(self) -> int:
        return int(self.rows("SELECT count(*) FROM captures WHERE NOT robots")[0][0])

    def retain(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.fleet.say("retain", *arguments, "--json"))
        return found

    def bucket(self, prefix: str = "") -> dict[str, bytes]:
        """What lies there, by key."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.fleet.environ.items():
                patch.setenv(name, value)
            store = object_store(load(file=self.fleet.settings).settings, SystemClock(), uploads=1)
            keys = cast("Any", store)._keys(f"{prefix or self.fleet.crawl}/")
            cast("Any", store)._wire.abort()
            cast("Any", store)._threads.shutdown()
        return {key: ask_object(self.fleet.engines.store, "GET", key)[1] for key in keys}

    def archive(self, name: str, prefix: str = "") -> Path:
        """The archive as one of a directory."""
        folder = self.folder / name
        for key, data in self.bucket(prefix).items():
            if "/trail/" not in key and not key.endswith(MARKER):
                path = folder / "warc" / key.rpartition("/")[2]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return folder

    def work_until(self, captures: int, name: str) -> Worker:
        """Have a worker fetch, until so many captures are listed; it goes on."""
        worker = self.fleet.start(name, "--forever")
        wait_until(lambda: self.fleet.pages, f"{name} does not begin", 60)
        wait_until(lambda: self.captures >= captures, f"{name} does not bring enough", 90)
        return worker

    def drain(self, *workers: Worker) -> None:
        for worker in workers:
            self.fleet.say("fleet", "drain", worker.name)
        for worker in workers:
            worker.end(60)

    def check(self, name: str) -> Path:
        """The audit and other people's tools agree; index, catalogue and archive tell of the same captures."""
        found = json.loads(self.fleet.say("audit", "--json", code=None))
        assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
        folder = self.archive(name)
        check_archives(folder)
        here = [record for _, record, _ in records(folder)]
        ids = {record.rec_headers.get_header("WARC-Record-ID") for record in here}
        answers = [record for record in here if record.rec_type in {"response", "revisit"}]
        assert [(str(len(answers)),)] == self.rows("SELECT count(*) FROM captures")
        assert self.rows("SELECT sum(captures) FROM totals") == self.rows("SELECT count(*) FROM captures")
        assert self.rows("SELECT sum(total_requests) FROM domains") == self.rows("SELECT count(*) FROM captures")
        assert self.rows("SELECT count(*) FROM pages") == self.rows("SELECT count(*) FROM page_states")
        refers = {record.rec_headers.get_header("WARC-Refers-To") for record in answers if record.rec_type == "revisit"}
        assert refers - {None} <= ids, "no revisit without its original"
        listed = self.rows("SELECT count(*) FROM captures WHERE status <> 304")[0][0]
        assert len([line for line in index_lines(folder) if '"status"' in line]) == int(listed)
        check_index(folder)
        return folder


@contextmanager
def retaining(crawl: Retained, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """That command, under way; killed in the end if it still runs, and the store is as quick as ever."""
    command = leashed(nephila("retain", "--config", crawl.fleet.settings, *arguments))
    environ = {**os.environ, **crawl.fleet.environ}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        yield process
    finally:
        door = crawl.fleet.engines.door
        door.only, door.delay_s = None, 0.0
        door.let_go()
        if process.returncode is None:
            process.kill()
            process.communicate()


def ids_in(folder: Path) -> set[str]:
    return {
        record.rec_headers.get_header("WARC-Record-ID")
        for _, record, _ in records(folder)
        if record.rec_type in {"response", "revisit"}
    }


@pytest.fixture
def crawl(tmp_path: Path, engines: Engines, hold: ExitStack) -> Retained:
    seed = hold.enter_context(changing_site())
    told = {"allow_address": "127.0.0.0/8", "resolver": "127.0.0.1:9"}
    web = cast("ServedWeb", SimpleNamespace(told=told, seeds=[seed]))
    stream = f'[stream]\nurl = "file://{tmp_path}/pages.jsonl"\n'
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.02, more=OFTEN + stream))
    fleet.seed()
    found = Retained(fleet, tmp_path)
    worker = found.work_until(CAPTURES, "one")
    found.drain(worker)
    return found


def test_what_need_not_be_kept_goes_and_workers_come_back(crawl: Retained) -> None:
    """W5, N3, D2: as foretold, room is freed, audited; a worker that comes back refers to nothing that is gone.

    K2: a takedown goes on from there.
    """
    before, room = crawl.captures, sum(map(len, crawl.bucket().values()))
    would = json.loads(crawl.fleet.say("retain", "--captures", "1", "--dry-run", "--json"))["would"]
    assert crawl.captures == before
    told = crawl.retain("--captures", "1")
    assert told["finished"]
    assert told["captures"] == would["captures"] > PAGES
    assert crawl.captures == before - told["captures"]
    assert room - sum(map(len, crawl.bucket().values())) > would["bytes"] * 0.9
    crawl.check("after")
    assert "nothing that need not be kept" in crawl.fleet.say("retain", "--captures", "1")
    worker = crawl.work_until(crawl.captures + 2 * PAGES, "one")
    refused = run("retain", "--config", crawl.fleet.settings, "--captures", "1", code=2, env=crawl.fleet.environ)
    assert "workers are on the register (one)" in " ".join(refused.stderr.split())
    assert "fleet drain" in refused.stderr
    crawl.fleet.say("retain", "--captures", "1", "--dry-run")
    crawl.drain(worker)
    crawl.check("later")
    assert crawl.retain()["finished"], "3 of each, by default"
    crawl.check("last")
    (page,) = crawl.rows("SELECT url FROM pages WHERE status = 200 ORDER BY crawled_at, url LIMIT 1")[0]
    crawl.fleet.say("purge", page, "--reason", "they asked us")
    assert page not in {url for (url,) in crawl.rows("SELECT url FROM captures")}
    crawl.check("purged")


def test_an_age_limit_spares_what_is_marked(crawl: Retained, tmp_path: Path) -> None:
    """W5, W7, N3, D2: marks are in the database; a worker that comes back stores in full what it had met before."""
    lines = (tmp_path / "pages.jsonl").read_text().splitlines()
    marked = [line for line in lines if not is_steady(json.loads(line)["url"])][::7]
    (tmp_path / "done.jsonl").write_text("\n".join(marked))
    settings = ("--config", crawl.fleet.settings)
    new = json.loads(run("indexed", tmp_path / "done.jsonl", "--json", *settings, env=crawl.fleet.environ).stdout)
    assert new == {"new": len(marked), "marked": len(marked)}
    wrong = run("indexed", *settings, code=2, env=crawl.fleet.environ, input=f"{'0' * 32}/x.warc.gz#1\n")
    assert "of another crawl" in wrong.stderr
    told = crawl.retain("--captures", "0", "--older-than", "1s")
    assert told["captures"] > 0
    listed = "SELECT s.name || '#' || c.\"offset\" FROM captures c JOIN segments s ON s.id = c.segment"
    left = {key for (key,) in crawl.rows(listed)}
    assert {json.loads(line)["storage_key"] for line in marked} <= left
    crawl.check("after")
    for name in ("one", "two"):
        crawl.drain(crawl.work_until(crawl.captures + PAGES, name))
        crawl.check(f"after {name}")


def test_killed_anywhere_it_goes_on_and_moves_everything_once(
    crawl: Retained, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """W5, F10: kill -9 whenever an object was written, here or elsewhere; audited at every step."""
    prefix = f"old/{uuid4().hex}"
    everything = ids_in(crawl.archive("before"))
    target = ("--captures", "1", "--archive-to", f"s3://{BUCKET}/{prefix}", "--json")

    def begin() -> subprocess.Popen[str]:
        return hold.enter_context(retaining(crawl, *target))

    store = crawl.fleet.engines.store
    known, kills, process = store.written, 0, begin()
    deadline = time.monotonic() + 200
    while process.poll() is None:
        assert time.monotonic() < deadline
        if kills == KILLS or store.written == known:
            time.sleep(POLL_S)
            continue
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
        known = store.written
        found = json.loads(crawl.fleet.say("audit", "--json", code=None))
        assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
        process = begin()
    _, told = process.communicate()
    assert process.returncode == 0, told
    assert kills >= 2
    say(f"killed {kills} times")
    here, there = ids_in(crawl.check("after")), ids_in(crawl.archive("old", prefix))
    check_archives(crawl.folder / "old")
    assert not here & there
    assert here | there == everything


def test_workers_come_back_while_it_goes_on(crawl: Retained, tmp_path: Path) -> None:
    """W5, N3, D2: from the moment that it says so; nothing that they store refers to what goes."""
    before, fleet = crawl.captures, crawl.fleet
    door = fleet.engines.door
    with retaining(crawl, "--captures", "0", "--older-than", "1s", "--json") as process:
        door.only, door.delay_s = process.pid, 0.02
        assert process.stderr is not None
        assert "may be started again" in process.stderr.readline()
        door.hold()
        assert crawl.captures == before, "nothing is taken out yet"
        workers = [fleet.start(name, "--forever") for name in ("one", "two")]
        wait_until(lambda: fleet.pages >= PAGES, "nobody works", 60)
        assert process.poll() is None, "it is not under way any more"
        door.delay_s = 0.0
        door.let_go()
        printed, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert json.loads(printed)["finished"]
    crawl.drain(*workers)
    crawl.check("after")


def test_a_worker_that_is_gone_with_its_spool_is_waited_for(crawl: Retained) -> None:
    """W5, N3: what lies there may refer to what goes; given up, it is put in order first."""
    worker = crawl.work_until(crawl.captures + 1, "two")
    worker.kill()
    refused = run("retain", "--config", crawl.fleet.settings, "--captures", "1", code=2, env=crawl.fleet.environ)
    assert "workers are on the register (two)" in " ".join(refused.stderr.split())
    assert "fleet forget" in refused.stderr
    inside = run(
        *("retain", "--config", crawl.fleet.settings, "--archive-to", f"s3://{BUCKET}/{crawl.fleet.crawl}/old"),
        code=2,
        env=crawl.fleet.environ,
    )
    assert "lies in the archive of the crawl" in " ".join(inside.stderr.split())
