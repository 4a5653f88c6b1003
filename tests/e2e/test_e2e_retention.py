"""Retention through the command line: several cycles, what need not be kept goes or is moved, the audit agrees."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from leashed import leashed
from served import ServedWeb, crawl_json, nephila, plain_web, run, served
from waiting import wait_until
from warc_checks import archives, check_archives

AGENT = ("--user-agent", "Nephila/1.0 (+https://example.org/bot)")
PAGES = 30
CYCLES = 4


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    spec, arguments = plain_web(53, hosts=3, pages=PAGES)
    with served(tmp_path_factory.mktemp("web"), spec, *arguments, "--base-delay-ms", "0") as web:
        yield web


@pytest.fixture(scope="module")
def crawled(web: ServedWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some cycles of it, whose messages are in a file beside."""
    folder = tmp_path_factory.mktemp("crawl")
    out = folder / "crawl"
    stream = ("--stream", f"file://{folder}/pages.jsonl")
    for cycle in range(CYCLES):
        more = ("--new-cycle",) if cycle else ()
        crawl_json(web, out, "--delay", "0", *AGENT, *stream, *more)
        web.new_cycle()
    return out


@pytest.fixture
def out(crawled: Path, tmp_path: Path) -> Path:
    shutil.copytree(crawled, tmp_path / "crawl", ignore=shutil.ignore_patterns("lock.mdb"))
    return tmp_path / "crawl"


def captures(out: Path) -> int:
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM captures WHERE robots = 0").fetchone()[0])
    finally:
        connection.close()


def test_what_need_not_be_kept_is_told_taken_out_and_proven(out: Path) -> None:
    """W5, K1: as foretold; the audit accepts it, and nothing is left to do."""
    before = captures(out)
    would = json.loads(run("retain", out, "--captures", "1", "--dry-run", "--json").stdout)["would"]
    assert captures(out) == before
    assert "would take out" in run("retain", out, "--captures", "1", "--dry-run").stdout
    text = run("retain", out, "--captures", "1").stdout
    assert f"{would['captures']} captures" in text
    assert captures(out) == before - would["captures"] < before
    check_archives(out)
    audit = json.loads(run("audit", out, "--json").stdout)
    assert audit["taken_out"] == would["captures"]
    assert "nothing that need not be kept" in run("retain", out, "--captures", "1").stdout


def test_it_is_moved_into_archives_that_others_read(out: Path, tmp_path: Path) -> None:
    """W5: archived instead of deleted."""
    told = json.loads(run("retain", out, "--captures", "1", "--archive-to", tmp_path / "old" / "warc", "--json").stdout)
    assert told["moved"] == told["captures"] > 0
    assert told["finished"]
    check_archives(tmp_path / "old")
    assert len(archives(tmp_path / "old")) >= 1
    run("audit", out)


def test_an_age_limit_takes_what_nobody_has_marked(out: Path, crawled: Path) -> None:
    """W5, W7: marked by the messages of the stream, from a file or from standard input."""
    messages = (crawled.parent / "pages.jsonl").read_text().splitlines()
    marked = messages[::2]
    (out.parent / "done.jsonl").write_text("\n".join(marked))
    assert "were marked as indexed" in run("indexed", out, out.parent / "done.jsonl").stdout
    ids = "\n".join(json.loads(line)["id"] for line in marked)
    again = subprocess.run(nephila("indexed", out, "--json"), input=ids, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout) == {"new": 0, "marked": len(marked)}
    told = json.loads(run("retain", out, "--captures", "0", "--older-than", "1s", "--json").stdout)
    assert told["captures"] > 0
    keys = {json.loads(line)["storage_key"] for line in marked}
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    listed = "SELECT s.name || '#' || c.\"offset\" FROM captures c JOIN segments s ON s.id = c.segment"
    left = {row[0] for row in connection.execute(listed)}
    connection.close()
    assert keys <= left
    run("audit", out)


BAD: dict[str, tuple[list[str], list[str]]] = {
    "nothing to do": (["--captures", "0"], ["nothing that could go", "--older-than"]),
    "no number": (["--captures", "few"], ["--captures"]),
    "no age": (["--older-than", "long"], ["--older-than", "90s"]),
    "inside of the crawl": (["--archive-to", "crawl/warc/old"], ["lies in the crawl directory"]),
    "a file": (["--archive-to", "file"], ["is no directory"]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_told_and_nothing_is_changed(out: Path, name: str) -> None:
    """C4, W5: in a sentence."""
    arguments, words = BAD[name]
    (out.parent / "file").touch()
    before = captures(out)
    result = subprocess.run(
        nephila("retain", "crawl", *arguments), cwd=out.parent, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr
    assert captures(out) == before


def test_not_while_a_crawl_runs_there(web: ServedWeb, tmp_path: Path) -> None:
    """W5: it says so; what would go can be looked at."""
    out = tmp_path / "crawl"
    options = ("--delay", "5", "--scope", "all", "--max-wait", "60", *AGENT)
    crawl = subprocess.Popen(
        leashed(nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(
            lambda: any((out / "warc").glob("*.warc.gz")) and (out / "config.toml").exists(), "nothing is stored"
        )
        result = run("retain", out, "--captures", "1", code=None)
        assert result.returncode not in {0, None}
        assert "another crawl is running" in result.stderr
        run("retain", out, "--captures", "1", "--dry-run")
    finally:
        crawl.terminate()
        crawl.wait()


def test_an_archive_file_that_is_missing_is_told(out: Path) -> None:
    """W5, C4: in a sentence that names it; what is listed stays."""
    gone = archives(out)[0]
    gone.unlink()
    before = captures(out)
    result = run("retain", out, "--captures", "1", code=None)
    assert result.returncode not in {0, None}
    assert "Traceback" not in result.stderr
    assert gone.name in result.stderr
    assert captures(out) == before
