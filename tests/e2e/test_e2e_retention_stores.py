"""Retention of crawls by one machine whose archive is in a bucket, whose catalogue is in PostgreSQL, or both."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from changing_site import PAGES, changing_site
from leashed import leashed
from postgres import Postgres
from seaweed import BUCKET, Seaweed
from served import nephila, records, run
from warc_checks import check_archives, check_index, index_lines

from nephila.model.settings import S3Settings
from nephila.store import MARKER
from nephila.store.s3 import CredentialChain, S3ObjectStore

CYCLES = 4
POLL_S = 0.02
OPTIONS = ("--allow-address", "127.0.0.0/8", "--delay", "0", "--user-agent", "Nephila/1.0 (+https://example.org/bot)")
SMALL = ("--set", "spool.segment_bytes=400KB", "--set", "archive.max_bytes=400KB")


@dataclass
class Store:
    """A bucket, seen without the program."""

    server: Seaweed

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Everything under a prefix, by name."""

        def now() -> int:
            return int(time.time() * 1000)

        settings = S3Settings(endpoint=self.server.endpoint)
        store = S3ObjectStore(BUCKET, settings, CredentialChain(self.server.environ, now), now)
        found = {key.removeprefix(f"{prefix}/"): store.read(key, 0, 1 << 27) for key in store._keys(f"{prefix}/")}
        store._wire.abort()
        store._threads.shutdown()
        return {name: data for name, data in found.items() if name != MARKER}


@dataclass
class Crawl:
    """A crawl of one machine, wherever its archive and its catalogue are."""

    out: Path
    prefix: str
    store: Store
    database: Postgres | None

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        if self.database is not None:
            return self.database.query(query, f'"crawl_{self.name}"')
        connection = sqlite3.connect(f"file:{self.out}/catalogue.sqlite?mode=ro", uri=True)
        try:
            return [tuple(map(str, row)) for row in connection.execute(query)]
        finally:
            connection.close()

    @property
    def name(self) -> str:
        return self.out.parent.name.replace("-", "_").lower()

    @property
    def captures(self) -> int:
        return int(self.rows("SELECT count(*) FROM captures WHERE NOT robots")[0][0])

    def archive(self, folder: Path) -> Path:
        """Its archive as one of a directory."""
        if not self.prefix:
            return self.out
        _write(folder, self.store.objects(self.prefix))
        return folder

    @property
    def room(self) -> int:
        """What its archive takes."""
        if self.prefix:
            return sum(map(len, self.store.objects(self.prefix).values()))
        return sum(path.stat().st_blocks * 512 for path in self.files)

    @property
    def files(self) -> list[Path]:
        """Its archive files, in the directory."""
        return sorted((self.out / "warc").rglob("*.warc.gz"))

    def check(self, folder: Path) -> None:
        """The audit and other people's tools agree; index, catalogue and archive tell of the same captures."""
        found = json.loads(run("audit", self.out, "--json", code=None).stdout)
        assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
        folder = self.archive(folder)
        check_archives(folder)
        here = [record for _, record, _ in records(folder)]
        ids = {record.rec_headers.get_header("WARC-Record-ID") for record in here}
        answers = [record for record in here if record.rec_type in {"response", "revisit"}]
        assert len(answers) == int(self.rows("SELECT count(*) FROM captures")[0][0])
        assert self.rows("SELECT sum(captures) FROM totals") == self.rows("SELECT count(*) FROM captures")
        assert self.rows("SELECT count(*) FROM pages") == self.rows("SELECT count(*) FROM page_states")
        refers = {record.rec_headers.get_header("WARC-Refers-To") for record in answers if record.rec_type == "revisit"}
        assert refers - {None} <= ids, "no revisit without its original"
        listed = self.rows("SELECT count(*) FROM captures WHERE status <> 304")
        assert len([line for line in index_lines(folder) if '"status"' in line]) == int(listed[0][0])
        check_index(folder)


def check_holes(files: Sequence[Path], freed: int) -> None:
    """What went is nothing but zeros, and takes no block: those at the ends of a hole belong to its neighbours, too.

    How much room that is depends on where captures lie in blocks: of 10 KB each, two fifths of it may stay taken.
    """
    assert sum(path.read_bytes().count(0) for path in files) > freed * 0.9
    for path in files:
        data, block = path.read_bytes(), os.statvfs(path).f_bsize
        blocks = [data[start : start + block] for start in range(0, len(data), block)]
        taken = sum(any(one) for one in blocks)
        assert path.stat().st_blocks * 512 <= (taken + 1) * block, "one more, in which the file system lists extents"


def _write(folder: Path, found: dict[str, bytes]) -> None:
    for name, data in found.items():
        path = folder / "warc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture
def store(object_server: Seaweed, database: Postgres, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in {**object_server.environ, **database.environ}.items():
        monkeypatch.setenv(name, value)
    return Store(object_server)


@pytest.fixture(params=["s3", "postgres", pytest.param("both", marks=pytest.mark.long)])  # fleets have both, too
def crawl(request: pytest.FixtureRequest, tmp_path: Path, store: Store, database: Postgres) -> Iterator[Crawl]:
    yield from _crawled(request.param, tmp_path, store, database)


@pytest.fixture
def in_bucket(tmp_path: Path, store: Store, database: Postgres) -> Iterator[Crawl]:
    yield from _crawled("s3", tmp_path, store, database)


def _crawled(kind: str, folder: Path, store: Store, database: Postgres) -> Iterator[Crawl]:
    """Some cycles of a site that changes."""
    folder = folder / f"c{uuid4().hex[:10]}"
    prefix = f"crawls/{uuid4()}" if kind != "postgres" else ""
    crawl = Crawl(folder / "crawl", prefix, store, database if kind != "s3" else None)
    flags: list[str] = [*OPTIONS, *SMALL, "--stream", f"file://{folder}/pages.jsonl"]
    if prefix:
        flags += ["--archive", f"s3://{BUCKET}/{prefix}", "--s3-endpoint", store.server.endpoint]
    if crawl.database is not None:
        flags += ["--catalogue", database.url, "--set", f"catalogue.name={crawl.name}"]
    folder.mkdir()
    with changing_site() as seed:
        for cycle in range(CYCLES):
            run("crawl", seed, "--out", crawl.out, *flags, *(("--new-cycle",) if cycle else ()))
        yield crawl


def test_the_newest_captures_stay_wherever_archive_and_catalogue_are(crawl: Crawl, tmp_path: Path) -> None:
    """W5, W2, W3: as foretold; room is freed; audit, index and figures follow; done again it finds nothing."""
    before, room = crawl.captures, crawl.room
    assert before >= CYCLES * PAGES
    would = json.loads(run("retain", crawl.out, "--captures", "1", "--dry-run", "--json").stdout)["would"]
    assert (crawl.captures, crawl.room) == (before, room)
    told = json.loads(run("retain", crawl.out, "--captures", "1", "--json").stdout)
    assert told["finished"]
    assert told["captures"] == would["captures"] > PAGES
    assert crawl.captures == before - told["captures"]
    if crawl.prefix:
        assert room - crawl.room > would["bytes"] * 0.9
    else:
        check_holes(crawl.files, would["bytes"])
    crawl.check(tmp_path / "bucket")
    assert "nothing that need not be kept" in run("retain", crawl.out, "--captures", "1").stdout
    pages = run("export", crawl.out, "--to", tmp_path / "pages.jsonl")
    assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == PAGES, pages.stdout


def test_an_age_limit_spares_what_is_marked(crawl: Crawl, tmp_path: Path) -> None:
    """W5, W7: marks lie where the catalogue does; what a page stands on goes with its last visit."""
    lines = (crawl.out.parent / "pages.jsonl").read_text().splitlines()
    marked = lines[:: CYCLES + 1]
    (tmp_path / "done.jsonl").write_text("\n".join(marked))
    new = json.loads(run("indexed", crawl.out, tmp_path / "done.jsonl", "--json").stdout)
    assert new == {"new": len(marked), "marked": len(marked)}
    ids = "\n".join(json.loads(line)["id"] for line in marked)
    again = subprocess.run(
        nephila("indexed", crawl.out, "--json"), input=ids, capture_output=True, text=True, check=True
    )
    assert json.loads(again.stdout) == {"new": 0, "marked": len(marked)}
    assert (crawl.out / "indexed.sqlite").exists() is (crawl.database is None)
    wrong = run("indexed", crawl.out, tmp_path / "nowhere.txt", code=2)
    assert "cannot be read" in wrong.stderr
    told = json.loads(run("retain", crawl.out, "--captures", "0", "--older-than", "1s", "--json").stdout)
    assert told["captures"] > 0
    listed = "SELECT s.name || '#' || c.\"offset\" FROM captures c JOIN segments s ON s.id = c.segment"
    left = {key for (key,) in crawl.rows(listed)}
    assert {json.loads(line)["storage_key"] for line in marked} <= left
    crawl.check(tmp_path / "bucket")


@pytest.mark.parametrize("where", ["directory", "bucket"])
def test_what_goes_is_moved_to_a_directory_or_a_bucket(in_bucket: Crawl, tmp_path: Path, where: str) -> None:
    """W5, W2: every capture is in one of both; others' tools read it there."""
    crawl, prefix = in_bucket, f"old/{uuid4()}"
    target = f"s3://{BUCKET}/{prefix}" if where == "bucket" else str(tmp_path / "old" / "warc")
    everything = _ids(crawl.archive(tmp_path / "before"))
    moved = 0
    for captures in ("2", "1"):
        told = json.loads(run("retain", crawl.out, "--captures", captures, "--archive-to", target, "--json").stdout)
        assert told["moved"] == told["captures"] > 0
        moved += told["moved"]
    crawl.check(tmp_path / "bucket")
    if where == "bucket":
        _write(tmp_path / "old", crawl.store.objects(prefix))
    check_archives(tmp_path / "old")
    here, there = _ids(tmp_path / "bucket"), _ids(tmp_path / "old")
    assert len(there) == moved == len([line for line in index_lines(tmp_path / "old") if '"status"' in line])
    assert not here & there
    assert here | there == everything


def _ids(folder: Path) -> set[str]:
    return {
        record.rec_headers.get_header("WARC-Record-ID")
        for _, record, _ in records(folder)
        if record.rec_type in {"response", "revisit"}
    }


def test_a_catalogue_that_is_lost_is_built_anew_from_what_is_left(in_bucket: Crawl, tmp_path: Path) -> None:
    """W3, W5, W2: with the names that captures had, though they lie elsewhere in their objects; marks still hold."""
    crawl = in_bucket
    run("retain", crawl.out, "--captures", "1")
    places = 'SELECT s.name, c."offset", c.url, c.at FROM captures c JOIN segments s ON s.id = c.segment ORDER BY 1, 2'
    before = crawl.rows(places)
    for path in crawl.out.glob("catalogue.sqlite*"):
        path.unlink()
    run("flush", crawl.out)
    assert crawl.rows(places) == before
    assert "nothing that need not be kept" in run("retain", crawl.out, "--captures", "1").stdout
    crawl.check(tmp_path / "bucket")


def test_killed_anywhere_it_goes_on(in_bucket: Crawl, tmp_path: Path, say: Callable[[str], None]) -> None:
    """W5, F10: kill -9 whenever something was written; the end is the same, audited at every step; moved is once."""
    crawl, prefix = in_bucket, f"old/{uuid4()}"
    everything = _ids(crawl.archive(tmp_path / "before"))
    command = nephila("retain", crawl.out, "--captures", "1", "--archive-to", f"s3://{BUCKET}/{prefix}", "--json")

    def begin() -> subprocess.Popen[str]:
        return subprocess.Popen(leashed(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    server = crawl.store.server
    known, kills, process = server.written, 0, begin()
    deadline = time.monotonic() + 200
    while process.poll() is None:
        assert time.monotonic() < deadline
        if server.written == known:
            time.sleep(POLL_S)
            continue
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
        known = server.written
        found = json.loads(run("audit", crawl.out, "--json", code=None).stdout)
        assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
        process = begin()
    _, told = process.communicate()
    assert process.returncode == 0, told
    assert kills >= 3
    say(f"killed {kills} times")
    crawl.check(tmp_path / "bucket")
    _write(tmp_path / "old", crawl.store.objects(prefix))
    check_archives(tmp_path / "old")
    here, there = _ids(tmp_path / "bucket"), _ids(tmp_path / "old")
    assert not here & there
    assert here | there == everything
    names = {path.name for path in (tmp_path / "old" / "warc").iterdir()}
    assert {name.replace(".warc.gz", ".cdxj") for name in names if name.endswith(".warc.gz")} <= names


def test_places_where_nothing_can_be_moved_to_are_refused(in_bucket: Crawl) -> None:
    """C4, W5: the archive of the crawl itself, of another one, and what is no place at all; nothing is changed."""
    before = in_bucket.captures
    for target, words in (
        (f"s3://{BUCKET}/{in_bucket.prefix}", "lies in the archive of the crawl"),
        (f"s3://{BUCKET}/{in_bucket.prefix}/old", "lies in the archive of the crawl"),
        (str(in_bucket.out / "old"), "lies in the crawl directory"),
        ("s3://No_Bucket/x", "in --archive-to is not the name of a bucket"),
    ):
        result = run("retain", in_bucket.out, "--captures", "1", "--archive-to", target, code=2)
        assert words in " ".join(result.stderr.split()), result.stderr
    assert in_bucket.captures == before
