"""Whole crawls whose archive goes to a real S3 server: that goes away, and with crawlers that are killed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from gate import Gate, gate
from seaweed import BUCKET, READER, READER_SECRET, SECRET, Seaweed, free_ports
from served import crawl_json, nephila, plain_web, run, served, stored_pages
from warc_checks import check_books

from nephila.model.settings import S3Settings
from nephila.store import MARKER
from nephila.store.s3 import CredentialChain, S3ObjectStore

HOSTS, PAGES, KILLS = 12, 240, 4
SMALL = ("--set", "spool.segment_bytes=400KB", "--set", "spool.segment_age_s=1.5", "--set", "spool.retry_s=0.1")
POLITE = ("--delay", "0.03", "--scope", "all", "--max-wait", "20")


@pytest.fixture
def door(object_server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A door in front of the server; credentials are in the environment."""
    for name, value in object_server.environ.items():
        monkeypatch.setenv(name, value)
    with gate(object_server.ports[0]) as made:
        yield made


def wait_for_pages(out: Path) -> None:
    """Wait until a crawl has stored something: it has begun, and its store was there."""
    deadline = time.monotonic() + 120
    while not (out / "spool").is_dir() or not list((out / "spool").glob("*.warc.gz")):
        assert time.monotonic() < deadline, "the crawl does not begin"
        time.sleep(0.05)


def portless(urls: list[str]) -> list[str]:
    return [re.sub(r":\d+/", "/", url, count=1) for url in urls]


def to_s3(door: Gate, prefix: str) -> tuple[str, ...]:
    """The flags of a crawl whose archive goes there."""
    return ("--archive", f"s3://{BUCKET}/{prefix}", "--s3-endpoint", door.endpoint, *SMALL)


def download(server: Seaweed, prefix: str, out: Path) -> list[str]:
    """Bring what the bucket has under a prefix to where a local archive would be; its names."""
    chain = CredentialChain(server.environ, lambda: int(time.time() * 1000))
    store = S3ObjectStore(BUCKET, S3Settings(endpoint=server.endpoint), chain, lambda: int(time.time() * 1000))
    keys = store._keys(f"{prefix}/")
    (out / "warc").mkdir(exist_ok=True)
    names = []
    for key in keys:
        name = key.removeprefix(f"{prefix}/")
        if name != MARKER:
            (out / "warc" / name).parent.mkdir(parents=True, exist_ok=True)
            (out / "warc" / name).write_bytes(store.read(key, 0, 1 << 27))
            names.append(name)
    store._wire.abort()
    store._threads.shutdown()
    return names


def check_in_bucket(server: Seaweed, prefix: str, out: Path, wanted: set[str] | None = None) -> list[str]:
    """Every page stored once; archives in the bucket are valid; index and catalogue agree; the spool is empty."""
    names = download(server, prefix, out)
    stored = Counter(portless(stored_pages(out)))
    assert {url: count for url, count in stored.items() if count > 1} == {}
    if wanted is not None:
        assert set(stored) == wanted
    assert list((out / "spool").iterdir()) == []
    assert {name.removesuffix(".warc.gz") for name in names if name.endswith(".warc.gz")} == {
        name.removesuffix(".cdxj") for name in names if name.endswith(".cdxj")
    }
    check_books(out)
    return names


def audited(out: Path) -> dict[str, Any]:
    """What `audit` says of a crawl whose archive is in the bucket: it must be clean."""
    found: dict[str, Any] = json.loads(run("audit", out, "--json", code=None).stdout)
    assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
    return found


def test_a_crawl_by_key_into_a_bucket(tmp_path: Path, door: Gate, object_server: Seaweed) -> None:
    """W1, W2, K1: every answer is an object under its key, sealed; the spool is left without a folder."""
    spec, arguments = plain_web(33, hosts=3, pages=15)
    prefix, out = f"crawls/{uuid4()}", tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "30") as web:
        summary = crawl_json(web, out, *POLITE, *to_s3(door, prefix), "--warc-layout", "key", "--processes", "2")
        assert summary["pages"] == 15
        assert audited(out)["requests"] == web.audit().requests
        names = [name for name in check_in_bucket(object_server, prefix, out) if name.endswith(".warc.gz")]
        assert len(names) == web.audit().requests
        assert {name.count("/") for name in names} == {2}


def test_a_crawl_into_a_bucket(tmp_path: Path, door: Gate, object_server: Seaweed) -> None:
    """W2, W1, K1, W6: archives and indexes are in the bucket, valid, sealed, can be exported; nothing is secret."""
    spec, arguments = plain_web(31, hosts=HOSTS, pages=PAGES)
    prefix, out = f"crawls/{uuid4()}", tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "30") as web:
        summary = crawl_json(web, out, *POLITE, *to_s3(door, prefix))
        assert summary["pages"] == PAGES
        assert summary["spool"]["segments"] == 0
        found = audited(out)
        assert found["requests"] == web.audit().requests
        assert (found["trail"]["ended"], found["trail"]["unsealed_bytes"]) == (True, 0)
        run("export", out, "--to", tmp_path / "pages.jsonl")
        pages = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
        assert len({page["url"] for page in pages if page["text"]}) == len(pages) == PAGES
        names = check_in_bucket(object_server, prefix, out)
        assert len([name for name in names if name.endswith(".warc.gz")]) > 1
        status = run("status", out).stdout
        assert f"s3://{BUCKET}/{prefix}; spool: nothing waits" in " ".join(status.split())
        told = (out / "config.toml").read_text() + run("config", "show").stdout + status
        files = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
        assert SECRET not in told
        assert SECRET.encode() not in files
        again = crawl_json(web, out, *POLITE)
        assert again["responses"] == 0
        other = run("crawl", web.seeds[0], "--out", tmp_path / "other", *web.flags, *to_s3(door, prefix), code=1)
        assert "holds the archive of another crawl" in other.stderr
        assert not (tmp_path / "other").exists()
        moved = run("crawl", "--out", out, "--archive", f"s3://{BUCKET}/elsewhere", code=2)
        assert "leave archive.url as it was" in moved.stderr


def test_a_store_that_goes_away_in_the_middle(
    tmp_path: Path, door: Gate, object_server: Seaweed, say: Callable[[str], None]
) -> None:
    """W2: some seconds without S3, while pages are fetched: they are spooled, and flushed when it is back."""
    spec, arguments = plain_web(32, hosts=HOSTS, pages=PAGES)
    prefix, out = f"crawls/{uuid4()}", tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        options = ("--delay", "0.1", "--scope", "all", "--max-wait", "20", *to_s3(door, prefix))
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options, "--json")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_pages(out)
        time.sleep(0.5)
        door.shut()
        time.sleep(4)
        waiting = " ".join(run("status", out).stdout.split())
        door.open()
        printed, warnings = process.communicate(timeout=120)
        assert process.returncode == 0, warnings
        summary = json.loads(printed)
    assert re.search(r"spool: \d+ segments?, ", waiting), waiting
    assert "does not answer" in warnings
    assert "takes uploads again" in warnings
    assert summary["pages"] == PAGES
    check_in_bucket(object_server, prefix, out)
    found = re.search("spool: [^(]*?oldest [0-9]+ s", waiting)
    say(f"while it was away, {found[0] if found else waiting}")


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_and_restarted_everything_is_in_the_bucket_once(
    tmp_path: Path, door: Gate, object_server: Seaweed, processes: int, say: Callable[[str], None]
) -> None:
    """W2, F10, Q4: killed at random moments, some of them in the middle of uploads, and restarted each time."""
    spec, arguments = plain_web(33, hosts=HOSTS, pages=PAGES)
    draw = random.Random(processes)
    prefix, out = f"crawls/{uuid4()}", tmp_path / "killed"
    options = ("--delay", "0.2", "--scope", "all", "--max-wait", "20", "--processes", str(processes))
    options += (*to_s3(door, prefix), "--set", "spool.segment_age_s=0.5")
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "200") as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)
        stood = []
        for _ in range(KILLS):
            before = web.audit().requests
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and web.audit().requests < before + HOSTS:
                time.sleep(0.05)
            time.sleep(draw.uniform(0.1, 0.9))
            assert process.poll() is None, "it ended before it could be killed"
            process.kill()
            process.wait()
            stood.append((web.audit().requests, len(list((out / "spool").glob("*.warc.gz")))))
        summary = json.loads(run(*command[3:], "--json").stdout)
        audit = web.audit()
    assert summary["stopped_by"] == "done"
    assert summary["total_pages"] == PAGES
    assert set(audit.by_kind) <= {"repeat"}
    check_in_bucket(object_server, prefix, out)
    assert audited(out)["trail"]["ended"]
    again = audit.requests - PAGES - HOSTS
    say(f"killed at (requests, segments in the spool) {stood}; {again} asked for again, {door.passed} connections")


def test_what_a_dead_worker_left_is_uploaded_by_its_supervisor(
    tmp_path: Path, door: Gate, object_server: Seaweed, say: Callable[[str], None]
) -> None:
    """W2, F3: kill -9 of one worker of two, segments of it in the spool, the store away for a while."""
    spec, arguments = plain_web(36, hosts=HOSTS, pages=PAGES)
    prefix, out = f"crawls/{uuid4()}", tmp_path / "crawl"
    options = ("--delay", "0.2", "--scope", "all", "--max-wait", "20", "--processes", "2", *to_s3(door, prefix))
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "200") as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options, "--json")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_for_pages(out)
            time.sleep(0.5)
            door.shut()
            time.sleep(1)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
            os.kill(int(children[0]), signal.SIGKILL)
            time.sleep(1)
            door.open()
            printed, warnings = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 0, warnings
        audit = web.audit()
    assert json.loads(printed)["total_pages"] == PAGES
    assert "nothing is lost by it" in warnings
    assert set(audit.by_kind) <= {"repeat"}
    check_in_bucket(object_server, prefix, out)
    assert audited(out)["trail"]["ended"]
    say(f"{audit.requests - PAGES - HOSTS} asked for again")


def test_what_is_left_in_the_spool_is_brought_by_flush(tmp_path: Path, door: Gate, object_server: Seaweed) -> None:
    """W2: a crawl whose store stays away ends after --max-wait with exit code 1; `flush` uploads the rest."""
    spec, arguments = plain_web(34, hosts=4, pages=40)
    prefix, out = f"crawls/{uuid4()}", tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        options = ("--delay", "0.1", "--scope", "all", "--max-wait", "2", *to_s3(door, prefix))
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options, "--json")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_pages(out)
        door.shut()
        printed, errors = process.communicate(timeout=60)
        assert process.returncode == 1, errors
        summary = json.loads(printed)
        assert summary["stopped_by"] == "unsent"
        assert summary["spool"]["segments"] > 0
        assert "not all of the archive has arrived in its store" in errors
        assert "Traceback" not in errors
        failed = run("flush", out, "--max-wait", "1", code=1)
        assert "does not answer" in failed.stderr
        door.open()
        waiting = audited(out)
        assert waiting["requests"] == web.audit().requests, "what waits in the spool counts as what has arrived does"
        done = run("flush", out)
        assert "All of the archive is in s3://" in done.stdout
        assert web.audit().by_kind == {}, "nothing was fetched twice"
    check_in_bucket(object_server, prefix, out)
    assert len(stored_pages(out)) == 40


@pytest.mark.parametrize(
    ("environ", "flags", "words"),
    [
        ({"AWS_ACCESS_KEY_ID": "nobody"}, (), "does not know the access key"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, (), "does not accept the secret key"),
        ({"AWS_ACCESS_KEY_ID": ""}, (), "there are no credentials"),
        ({"AWS_ACCESS_KEY_ID": READER, "AWS_SECRET_ACCESS_KEY": READER_SECRET}, (), "does not allow that the bucket"),
        ({}, ("--archive", "s3://no-such-bucket/x"), "there is no bucket 'no-such-bucket'"),
        ({}, ("--s3-endpoint", "http://127.0.0.1:CLOSED"), "does not answer: connection refused"),
    ],
)
def test_a_store_that_cannot_be_used_is_told_before_anything_is_fetched(
    tmp_path: Path, door: Gate, environ: dict[str, str], flags: tuple[str, ...], words: str
) -> None:
    """W2: one sentence and what to do, exit code 1, and no directory is left behind."""
    spec, arguments = plain_web(35, hosts=2, pages=4)
    [closed] = free_ports(1)
    given = [flag.replace("CLOSED", str(closed)) for flag in flags]
    with served(tmp_path / "web", spec, *arguments) as web:
        options = (*to_s3(door, f"probe/{uuid4()}"), *given)
        result = run("crawl", web.seeds[0], "--out", tmp_path / "crawl", *web.flags, *options, code=1, env=environ)
        assert web.audit().requests == 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert SECRET not in result.stdout + result.stderr
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize(
    "url", ["s3://", "http://bucket/x", "s3://key:secret@bucket/x", "s3://Bad_Bucket!/x", "bucket"]
)
def test_an_archive_url_that_makes_no_sense_is_a_usage_error(tmp_path: Path, url: str) -> None:
    """W2: told before a directory is made, credentials in it are not repeated."""
    result = run("crawl", "http://127.0.0.1:9/", "--out", tmp_path / "crawl", "--archive", url, code=2)
    assert "archive.url" in result.stderr
    assert "key:secret" not in result.stderr
    assert not (tmp_path / "crawl").exists()
