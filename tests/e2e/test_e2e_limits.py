"""Limits of the machine: files, memory, a disk without inodes or that turns read-only, a directory that vanishes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from killing import children_of
from mounts import on_a_failing_disk, on_a_small_disk
from served import ServedWeb, nephila, plain_web, run, served, stored_pages
from warc_checks import check_books

PAGES, HOSTS = 150, 6
OPTIONS = ("--scope", "all", "--max-wait", "1", "--json", "--quiet")

Blow = Callable[[subprocess.Popen[str], Path], None]


@dataclass(frozen=True)
class Ended:
    """How a crawl ended that something befell."""

    code: int
    out: str
    err: str


@contextmanager
def small_web(folder: Path, delay_ms: int = 0) -> Iterator[ServedWeb]:
    spec, arguments = plain_web(81, hosts=HOSTS, pages=PAGES)
    with served(folder / "web", spec, *arguments, "--base-delay-ms", str(delay_ms)) as web:
        yield web


def crawled(web: ServedWeb, out: Path, *options: str, blow: Blow | None = None, **limits: int) -> Ended:
    """Crawl under limits of the process; `blow` is struck when the first pages are stored."""

    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *OPTIONS, *options)
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit,  # noqa: PLW1509 - the tests have no other thread
    )
    try:
        if blow is not None:
            deadline = time.monotonic() + 120
            while sum(path.stat().st_size for path in (out / "warc").glob("*.warc.gz")) < 10_000:
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline, "it does not begin to crawl"
                time.sleep(0.01)
            blow(process, out)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    return Ended(process.returncode, output, errors)


def check_sentence(ended: Ended, *words: str) -> None:
    """It ended with exit code 1 and a sentence that holds these words, and with no traceback."""
    assert ended.code == 1, ended
    assert "Traceback" not in ended.err
    assert "unexpected" not in ended.err
    assert all(word in ended.err for word in words), ended.err


def check_whole(web: ServedWeb, out: Path, delay_s: float) -> None:
    """The same command without the limit goes on where it was, and in the end every page is stored once."""
    options = (*OPTIONS, "--delay", str(delay_s), "--processes", "2")
    summary = json.loads(run("crawl", *web.seeds, "--out", out, *web.flags, *options).stdout)
    assert (summary["total_pages"], summary["stopped_by"]) == (PAGES, "done")
    assert len(stored_pages(out)) == len(set(stored_pages(out))) == PAGES
    assert {str(kind) for kind in web.audit().by_kind} <= {"repeat"}
    check_books(out)


@pytest.mark.parametrize(("files", "processes"), [(64, "1"), (128, "2")])
def test_few_files_mean_fewer_exchanges_and_a_word_about_it(tmp_path: Path, files: int, processes: str) -> None:
    """H1, C4: the crawl says that it lowers its concurrency, and works."""
    with small_web(tmp_path) as web:
        ended = crawled(web, tmp_path / "crawl", "--delay", "0", "--processes", processes, NOFILE=files)
    assert ended.code == 0, ended.err
    assert "exchanges at once instead of 256" in ended.err
    summary = json.loads(ended.out)
    assert (summary["pages"], summary["errors"]) == (PAGES, {})
    check_books(tmp_path / "crawl")


@pytest.mark.parametrize("files", [5, 12, 31, 47])
def test_too_few_files_to_begin_with_is_one_sentence(tmp_path: Path, files: int) -> None:
    """C4, H1: however few they are, and before anything is made."""
    with small_web(tmp_path) as web:
        ended = crawled(web, tmp_path / "crawl", "--delay", "0", NOFILE=files)
    check_sentence(ended, f"may open {files} files", "ulimit -n")
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize(("limit", "value", "word"), [("DATA", 40 << 20, "41 MB"), ("AS", 2 << 30, "address space")])
def test_too_little_memory_to_begin_with_is_one_sentence(tmp_path: Path, limit: str, value: int, word: str) -> None:
    """C4, Q3: before anything is made."""
    with small_web(tmp_path) as web:
        ended = crawled(web, tmp_path / "crawl", "--delay", "0", **{limit: value})
    check_sentence(ended, word, "ulimit")
    assert not (tmp_path / "crawl").exists()


def no_more_memory(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_DATA, (1 << 20, 1 << 20))


def test_memory_that_runs_out_ends_the_crawl_in_a_sentence(tmp_path: Path) -> None:
    """C4, F10, Q4: no traceback, no hanging, no page taken for broken; the next run has them all."""
    out = tmp_path / "crawl"
    with small_web(tmp_path, 50) as web:
        ended = crawled(
            web, out, "--delay", "0.05", "--processes", "1", blow=lambda process, _: no_more_memory(process.pid)
        )
        check_sentence(ended, "not enough memory", "start the same command again")
        check_whole(web, out, 0.05)


def test_a_worker_without_memory_is_replaced_or_ends_the_crawl(tmp_path: Path, say: Callable[[str], None]) -> None:
    """C4, F10, N3: never an endless row of restarts."""
    out = tmp_path / "crawl"

    def starve(process: subprocess.Popen[str], _: Path) -> None:
        no_more_memory(children_of(process.pid)[0])

    with small_web(tmp_path, 50) as web:
        ended = crawled(web, out, "--delay", "0.05", "--processes", "2", blow=starve)
        assert "Traceback" not in ended.err
        say(f"exit code {ended.code}: {ended.err.strip()!r}")
        if ended.code:
            check_sentence(ended, "not enough memory")
        else:
            assert "nothing is lost by it" in ended.err
        check_whole(web, out, 0.05)


def test_a_crawl_whose_workers_die_again_and_again_ends(tmp_path: Path) -> None:
    """F10, N3: workers that can never live are not started for ever."""
    out = tmp_path / "crawl"

    def starve(process: subprocess.Popen[str], _: Path) -> None:
        deadline = time.monotonic() + 40
        while process.poll() is None:
            assert time.monotonic() < deadline, "workers are started for ever"
            for pid in children_of(process.pid):
                try:
                    os.kill(pid, signal.SIGKILL)  # as the kernel does with whoever takes too much memory
                except ProcessLookupError:
                    continue  # it has died already
            time.sleep(0.05)

    with small_web(tmp_path, 200) as web:
        ended = crawled(web, out, "--delay", "0.2", "--processes", "2", blow=starve)
        check_sentence(ended, "died 5 times", "SIGKILL")
        check_whole(web, out, 0.2)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_directory_that_is_removed_ends_the_crawl_at_once(tmp_path: Path, processes: str) -> None:
    """F10, W2, C4: files that nobody can find are no place to store pages in."""
    out = tmp_path / "crawl"

    def remove(_: subprocess.Popen[str], out: Path) -> None:
        shutil.rmtree(out)

    with small_web(tmp_path, 200) as web:
        ended = crawled(web, out, "--delay", "0.2", "--processes", processes, blow=remove)
        check_sentence(ended, "was removed or replaced")
        asked = web.audit().requests
    assert asked < PAGES  # it would have gone on to the end


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_directory_that_is_moved_ends_the_crawl_and_is_no_tampering(tmp_path: Path, processes: str) -> None:
    """F10, K1, C4: nothing is made in its place; where it is now, the crawl goes on."""
    out, moved = tmp_path / "crawl", tmp_path / "moved"

    def move(_: subprocess.Popen[str], out: Path) -> None:
        out.rename(moved)

    with small_web(tmp_path, 200) as web:
        ended = crawled(web, out, "--delay", "0.2", "--processes", processes, blow=move)
        check_sentence(ended, "was moved")
        assert "make room" not in ended.err
        assert json.loads(ended.out)["stopped_by"] == "gone"
        assert not out.exists()
        run("audit", moved)
        run("crawl", "--out", moved, *web.flags, "--max-wait", "1")
        run("audit", moved)
        assert len(stored_pages(moved)) == PAGES


@pytest.mark.parametrize("inodes", [24, *(pytest.param(count, marks=pytest.mark.long) for count in (8, 16, 30))])
def test_a_disk_without_inodes_stops_the_crawl_and_costs_nothing(tmp_path: Path, inodes: int) -> None:
    """W2, F10, C4: as a full disk does; room for bytes is of no use where no file can be made."""
    out = tmp_path / "disk" / "crawl"
    with small_web(tmp_path) as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *OPTIONS, "--delay", "0")
        small = [*command, "--set", "archive.max_bytes=100000"]
        full, roomy = on_a_small_disk(tmp_path, f"1g,nr_inodes={inodes}", [small], roomy=[command])
        check_sentence(Ended(full.code, full.out, full.err), "pace left")
        assert roomy.code == 0, roomy.err
        check_whole(web, out, 0)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_files_that_may_grow_no_more_stop_the_crawl_and_cost_nothing(tmp_path: Path, processes: str) -> None:
    """W2, F10, C4: a limit on the size of files refuses writes to each of them, as a quota does."""
    out = tmp_path / "crawl"

    def refuse(process: subprocess.Popen[str], _: Path) -> None:
        for pid in (process.pid, *children_of(process.pid)):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 10, 1 << 10))

    with small_web(tmp_path, 50) as web:
        ended = crawled(web, out, "--delay", "0.05", "--processes", processes, blow=refuse)
        check_sentence(ended, "File too large")
        check_whole(web, out, 0.05)


@pytest.mark.long
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_disk_that_fails_in_mid_crawl_stops_it_and_costs_nothing(tmp_path: Path, processes: str) -> None:
    """W2, F10, C4: from one moment on every write is refused, as when a kernel turns a bad disk read-only."""
    out = tmp_path / "disk" / "crawl"
    with small_web(tmp_path, 50) as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *OPTIONS, "--delay", "0.05")
        failed = on_a_failing_disk(tmp_path, [*command, "--processes", processes])
        check_sentence(Ended(failed.code, failed.out, failed.err))
        check_whole(web, out, 0.05)
