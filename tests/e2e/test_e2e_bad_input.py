"""What cannot work is told in one sentence, with the documented exit code, and leaves nothing half made behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lmdb
import pytest
from forked import run_forked
from mounts import in_mount_namespace
from namespace import run_alone
from served import ServedWeb, nephila, plain_web, run, served, stored_pages

Result = subprocess.CompletedProcess[str]

AGENT = ("--user-agent", "Nephila/1.0 (+https://example.org/bot)")
QUICK = ("--delay", "0", "--scope", "all", "--max-wait", "1", *AGENT)
PAGES = 60


def quietly(result: Result) -> None:
    """No traceback, and no talk of an unexpected fault."""
    assert "Traceback" not in result.stderr, result.stderr
    assert "unexpected" not in result.stderr, result.stderr
    assert result.returncode >= 0, f"died of signal {-result.returncode}"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """A small web, for what needs one."""
    spec, arguments = plain_web(41, hosts=5, pages=PAGES)
    with served(tmp_path_factory.mktemp("web"), spec, *arguments, "--base-delay-ms", "0") as web:
        yield web


@pytest.fixture(scope="module")
def crawl(web: ServedWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished crawl of it."""
    out = tmp_path_factory.mktemp("crawl") / "crawl"
    run("crawl", *web.seeds, "--out", out, *web.flags, *QUICK)
    return out


def copy_of(crawl: Path, folder: Path) -> Path:
    """A copy that may be spoilt."""
    copy = folder / "copy"
    subprocess.run(["cp", "-r", crawl, copy], check=True)
    return copy


# Commands that make no sense

NONSENSE: dict[str, tuple[list[str], int, list[str]]] = {
    "no seeds": (["crawl"], 2, ["nothing to crawl", "nephila crawl example.org"]),
    "no crawl to go on with": (["crawl", "--out", "new"], 2, ["no crawl in new", "no seed"]),
    "a malformed seed": (["crawl", "http://[bad", "--out", "new"], 2, ["no seed can be crawled", "http://[bad"]),
    "a seed without a host": (["crawl", "http://", "--out", "a/b/new"], 2, ["it names no host"]),
    "a key that leads elsewhere": (
        ["crawl", "http://a.test/", "--out", "new", "--warc-layout", "key", "--warc-key", "../{url_hash}.warc.gz"],
        2,
        ["leads out of the archive", "archive.key"],
    ),
    "a key with several processes": (
        [
            *("crawl", "http://a.test/", "--out", "new", "--warc-layout", "key"),
            "--warc-key",
            "{x}/y",
            "--processes",
            "2",
        ],
        2,
        ["does not end with .warc.gz"],
    ),
    "a key that nothing uses": (
        ["crawl", "http://a.test/", "--out", "new", "--warc-key", "{host}/{date}.warc.gz"],
        2,
        ["the layout is rolling", "--warc-layout key"],
    ),
    "no list": (["crawl", "--seeds", "gone.txt", "--out", "new"], 2, ["gone.txt", "No such file", "check the name"]),
    "a directory": (["crawl", "--seeds", "folder", "--out", "new"], 2, ["is a directory", "name a file"]),
    "a binary file": (["crawl", "--seeds", "binary", "--out", "new"], 2, ["binary file", "one URL or domain a line"]),
    "an empty list": (["crawl", "--seeds", "empty.txt", "--out", "new"], 2, ["there is none", "URL or domain a line"]),
    "no domains": (["crawl", "--domains", "empty.txt", "--out", "new"], 2, ["no seed can be crawled", "there is none"]),
    "a binary pipe": (["crawl", "--seeds", "-", "--out", "new"], 2, ["standard input is compressed", "gunzip"]),
    "a bad regex": (["crawl", "a.test", "--exclude", "(", "--out", "new"], 2, ['"("', "position 0"]),
    "an unknown option": (["crawl", "a.test", "--delya", "1", "--out", "new"], 2, ["'--delya'", "'--delay'"]),
    "an unknown command": (["crwal", "a.test"], 2, ["'crwal'", "'crawl'"]),
    "out of range": (["crawl", "a.test", "--max-depth", "999", "--out", "new"], 2, ["--max-depth", "at most 250"]),
    "no number": (["crawl", "a.test", "--timeout", "soon", "--out", "new"], 2, ["--timeout", "'soon'", "90s"]),
    "an unknown key": (
        ["crawl", "a.test", "--config", "key.toml", "--out", "new"],
        2,
        ["limits.max_depht", "key.toml line 5", "limits.max_depth?"],
    ),
    "a wrong value": (
        ["crawl", "a.test", "--config", "value.toml", "--out", "new"],
        2,
        ["fetch.timeout_s", "'soon'", "value.toml line 2"],
    ),
    "no TOML": (["crawl", "a.test", "--config", "broken.toml", "--out", "new"], 2, ["broken.toml", "line 1"]),
    "no configuration": (["crawl", "a.test", "--config", "gone.toml", "--out", "new"], 2, ["gone.toml", "--config"]),
    "a wrong assignment": (["crawl", "a.test", "--set", "fetch", "--out", "new"], 2, ["group.name=value"]),
    "no range": (["crawl", "a.test", "--allow-address", "10.0.0.0/99", "--out", "new"], 2, ["'10.0.0.0/99'", "/8"]),
    "no resolver": (["crawl", "a.test", "--resolver", "what?", "--out", "new"], 2, ["'what?'", "9.9.9.9"]),
    "no proxy": (["crawl", "a.test", "--proxy", "gopher://x", "--out", "new"], 2, ["'gopher://x'", "socks5://"]),
    "a file as parent": (
        ["crawl", "a.test", "--out", "text/new"],
        1,
        ["text/new", "Not a directory", "another directory"],
    ),
    "a file": (["crawl", "a.test", "--out", "text"], 2, ["'text' is a file"]),
    "a place without files": (["crawl", "a.test", "--out", "/proc/new"], 1, ["/proc/new", "choose another directory"]),
    "something else": (["crawl", "a.test", "--out", "folder"], 1, ["folder holds something else", "new directory"]),
    "status of nothing": (["status", "new"], 1, ["no crawl at new", "nephila crawl"]),
    "why of nothing": (["why", "new", "http://a.test/"], 1, ["no crawl at new"]),
    "pages of nothing": (["pages", "new"], 1, ["no crawl at new"]),
    "dead of nothing": (["dead", "new"], 1, ["no crawl at new"]),
    "status of no crawl": (["status", "folder"], 1, ["folder is not a crawl directory"]),
    "why of no crawl": (["why", "folder", "http://a.test/"], 1, ["folder is not a crawl directory"]),
    "pages of no crawl": (["pages", "folder"], 1, ["folder is not a crawl directory"]),
    "dead of no crawl": (["dead", "folder", "--retry-all"], 1, ["folder is not a crawl directory"]),
    "status of one that has not begun": (["status", "begun"], 1, ["has not begun yet", "nephila crawl SEEDS"]),
    "why of one that has not begun": (["why", "begun", "http://a.test/"], 1, ["has not begun yet"]),
    "pages of one that has not begun": (["pages", "begun"], 1, ["has not begun yet"]),
    "dead of one that has not begun": (["dead", "begun", "--retry-all"], 1, ["has not begun yet"]),
}
"""What is asked, the exit code, and what the answer must hold."""


def files_of_nonsense(folder: Path) -> dict[str, bytes]:
    """Make the files that the commands above name; what there is then."""
    (folder / "folder").mkdir()
    (folder / "begun").mkdir()
    contents = {
        "folder/note.txt": b"not yours",
        "binary": bytes(range(256)),
        "text": b"text",
        "empty.txt": b"# nothing yet\n\n",
        "key.toml": b"[fetch]\ntimeout_s = 5\n\n[limits]\nmax_depht = 3\n",
        "value.toml": b'[fetch]\ntimeout_s = "soon"\n',
        "broken.toml": b"[fetch\n",
        "begun/nephila-crawl": b"nephila crawl directory, format 1\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return contents


@pytest.fixture(scope="module")
def nonsense(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """Every command of the table, each run once; and nothing is left behind by any of them."""
    folder = tmp_path_factory.mktemp("nonsense")
    there = files_of_nonsense(folder)
    packed = tmp_path_factory.mktemp("packed") / "list.gz"
    packed.write_bytes(b"\x1f\x8b\x08\x00")
    answers = run_forked([arguments for arguments, _, _ in NONSENSE.values()], cwd=folder, stdin=packed)
    left = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert left == there
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"folder", "begun"}
    return dict(zip(NONSENSE, answers, strict=True)).__getitem__


@pytest.mark.parametrize("name", NONSENSE)
def test_what_makes_no_sense_is_told_and_leaves_nothing_behind(nonsense: Callable[[str], Result], name: str) -> None:
    """C4, S1, S2: what is wrong, what to do, exit code 2 for usage and 1 for failure."""
    _, code, phrases = NONSENSE[name]
    result = nonsense(name)
    quietly(result)
    assert result.returncode == code, result.stderr
    for phrase in phrases:
        assert phrase in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) <= 5, result.stderr


def test_one_malformed_seed_among_good_ones_is_reported_and_the_crawl_goes_on(web: ServedWeb, tmp_path: Path) -> None:
    """S1: how many were refused, which, and why."""
    (tmp_path / "list.txt").write_text(f"{web.seeds[0]}\nhttp://[bad\nmailto:a@b.test\n")
    options = ("--seeds", tmp_path / "list.txt", "--out", tmp_path / "crawl", *web.flags, *QUICK)
    result = run("crawl", *options)
    assert "1 added, 0 already known, 2 refused" in result.stdout
    assert "http://[bad (file list.txt:2)" in result.stdout
    assert len(stored_pages(tmp_path / "crawl")) == PAGES


# Directories that cannot be used


def spoil_marker(crawl: Path) -> str:
    (crawl / "nephila-crawl").write_text("nephila crawl directory, format 9\n")
    return "another version of nephila"


def spoil_frontier(crawl: Path) -> str:
    environment = lmdb.open(str(crawl / "frontier"), max_dbs=32)
    meta = environment.open_db(b"meta")
    with environment.begin(write=True) as writing:
        writing.put(b"format", b"nephila-frontier-99", db=meta)
    environment.close()
    return "'nephila-frontier-99'"


def spoil_catalogue(crawl: Path) -> str:
    connection = sqlite3.connect(crawl / "catalogue.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return "schema version 99"


@pytest.mark.parametrize("spoil", [spoil_marker, spoil_frontier, spoil_catalogue])
def test_a_crawl_of_another_version_is_left_as_it_is(crawl: Path, tmp_path: Path, spoil: Callable[[Path], str]) -> None:
    """C4: told by crawl and by status, with what to do."""
    copy = copy_of(crawl, tmp_path)
    phrase = spoil(copy)
    before = sorted(path.name for path in (copy / "warc").iterdir())
    for result in run_forked([["crawl", "--out", copy], ["status", copy]], cwd=tmp_path):
        quietly(result)
        assert result.returncode == 1
        assert phrase in result.stderr
        assert len(result.stderr.splitlines()[-1].strip()) > 10, "there is a hint"
    assert sorted(path.name for path in (copy / "warc").iterdir()) == before


def test_a_catalogue_that_was_moved_away_is_built_anew_from_the_archive(crawl: Path, tmp_path: Path) -> None:
    """W3: as the hint of the error says."""
    copy = copy_of(crawl, tmp_path)
    pages = sorted(stored_pages(copy))
    index = {path: path.read_text() for path in (copy / "warc").glob("*.cdxj")}
    (copy / "catalogue.sqlite").unlink()
    run("crawl", "--out", copy)
    assert sorted(stored_pages(copy)) == pages
    assert len(pages) == PAGES
    assert {path: path.read_text() for path in index} == index


def test_a_directory_in_use_is_refused_and_can_be_looked_at(web: ServedWeb, tmp_path: Path) -> None:
    """C4, F9: one crawl at a time; status, pages, why and dead beside it."""
    out = tmp_path / "crawl"
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *QUICK, "--delay", "3", "--max-wait", "10")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: b"robots_fetched" in events(out))
        looks = (["status", out, "--json"], ["why", out, web.seeds[0], "--json"], ["pages", out], ["dead", out])
        second, *answers = run_forked([command[3:], *looks], cwd=tmp_path)
        assert process.poll() is None
        quietly(second)
        assert (second.returncode, *(answer.returncode for answer in answers)) == (1, 0, 0, 0, 0)
        assert "another crawl is running" in second.stderr
        assert json.loads(answers[0].stdout)["running"]
        assert json.loads(answers[1].stdout)["state"] in {"queued", "in_progress", "stored_pending", "completed"}
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)


def events(out: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (out / "events").glob("*.jsonl"))


def test_a_read_only_disk_is_told_and_a_crawl_on_it_can_be_looked_at(crawl: Path, tmp_path: Path) -> None:
    """C4: as root too, whom no permission binds."""
    empty, seed = tmp_path / "disk", "http://127.0.0.1:9/"
    empty.mkdir()
    mount = 'mount -t tmpfs -o ro none "$1"; shift; exec "$@"'
    result = in_mount_namespace(mount, empty, *nephila("crawl", seed, "--out", empty / "new"))
    quietly(result)
    assert result.returncode == 1
    assert "Read-only file system" in result.stderr
    bind = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; shift; exec "$@"'
    result = in_mount_namespace(bind, crawl, *nephila("crawl", "--out", crawl))
    quietly(result)
    assert result.returncode == 1
    assert "Read-only file system" in result.stderr
    result = in_mount_namespace(bind, crawl, *nephila("status", crawl, "--json"))
    assert json.loads(result.stdout)["pages"] == PAGES
    result = in_mount_namespace(bind, crawl, *nephila("aliases", crawl, "--json"))
    assert (result.returncode, json.loads(result.stdout)["count"]) == (0, 0), result.stderr


def test_a_directory_that_was_left_half_made_is_begun_anew(web: ServedWeb, tmp_path: Path) -> None:
    """C4: killed, or out of room, between its parts and its marker."""
    out = tmp_path / "crawl"
    (out / "warc").mkdir(parents=True)
    (out / "nephila-crawl.new").write_text("neph")
    run("crawl", *web.seeds, "--out", out, *web.flags, *QUICK, "--max-pages", "3", code=3)


# A machine that gives little


@pytest.mark.parametrize("layout", ["domain-hour", "key"])
def test_too_few_descriptors_make_the_crawl_smaller_and_that_is_said(
    web: ServedWeb, tmp_path: Path, layout: str
) -> None:
    """H1: concurrency is sized from the limit; in every layout."""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    options = ("--out", tmp_path / "crawl", *web.flags, *QUICK, "--warc-layout", layout)
    result = run("crawl", *web.seeds, *options, preexec_fn=few)
    assert "16 exchanges at once instead of 256" in result.stderr
    assert "ulimit -n" in result.stderr
    assert len(stored_pages(tmp_path / "crawl")) == PAGES


SILENCE = {
    "no network": (["http://93.184.216.34/", "--timeout", "2"], "refused or unreachable"),
    "dead resolver": (["http://a.test/", "--resolver", "127.0.0.1:9", "--set", "dns.timeout_s=0.2"], "looked up"),
    "dead proxy": (["http://93.184.216.34/", "--proxy", "http://127.0.0.1:9"], "the proxy failed"),
    "private address": (["http://127.0.0.1:9/"], "not public"),
}


@pytest.fixture(scope="module")
def silence(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Result, Result]]:
    """A crawl of each kind, and the same command again, all at the same time, in networks that have only loopback."""
    folder = tmp_path_factory.mktemp("silence")

    def ask(name: str) -> tuple[Result, Result]:
        options, _ = SILENCE[name]
        command = ["-m", "nephila", "crawl", *options, "--out", folder / name, "--max-wait", "1", *AGENT]
        return run_alone(command), run_alone(command)

    with ThreadPoolExecutor(len(SILENCE)) as pool:
        return dict(zip(SILENCE, pool.map(ask, SILENCE), strict=True)).__getitem__


@pytest.mark.parametrize("name", SILENCE)
def test_where_nobody_answers_the_crawl_has_failed_and_says_why(
    silence: Callable[[str], tuple[Result, Result]], name: str
) -> None:
    """C4, H4, H5: exit code 1, the reason, and what goes on; given again at once it has not succeeded either."""
    _, phrase = SILENCE[name]
    result, again = silence(name)
    advice = "--new-cycle asks once more" if name == "private address" else "the same command goes on"
    for one in (result, again):
        quietly(one)
        assert one.returncode == 1, one.stderr
        assert advice in " ".join(one.stderr.split())
    assert "no server answered" in result.stderr
    assert phrase in result.stderr


# Streams


@pytest.mark.parametrize("source", ["fifo", "stdin"])
def test_ctrl_c_is_heard_while_seeds_are_waited_for(web: ServedWeb, tmp_path: Path, source: str) -> None:
    """F10, S1: nobody writes into the pipe; what came before is crawled already."""
    fifo, out = tmp_path / "fifo", tmp_path / "crawl"
    os.mkfifo(fifo)
    name = str(fifo) if source == "fifo" else "-"
    command = nephila("crawl", "--seeds", name, "--out", out, *web.flags, *QUICK, "--max-depth", "0")
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, f"{web.seeds[0]}\n".encode())
    try:
        process = subprocess.Popen(command, stdin=writer, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: b"fetch_ok" in events(out))
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=5)
    finally:
        os.close(writer)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "Fatal" not in errors
    assert "Interrupted" in said


OUTPUTS = {"head": '"$@" | true', "closed": '"$@" >&-', "full": '"$@" >/dev/full'}


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("crawl", "head"),
        ("crawl", "closed"),
        ("crawl", "full"),
        ("pages", "head"),
        ("pages", "full"),
        ("status", "closed"),
    ],
)
def test_an_output_that_nobody_takes_is_no_fault(
    crawl: Path, web: ServedWeb, tmp_path: Path, command: str, output: str
) -> None:
    """C4: a reader who has left, a stream that is closed, a disk that is full."""
    if command == "crawl":
        arguments = nephila("crawl", *web.seeds, "--out", tmp_path / "crawl", *web.flags, *QUICK, "--max-pages", "5")
    else:
        arguments = nephila(command, crawl)
    result = subprocess.run(
        ["sh", "-c", OUTPUTS[output], "sh", *arguments], capture_output=True, text=True, check=False
    )
    quietly(result)
    assert result.returncode < 128, result.stderr
    if command == "crawl":
        assert len(stored_pages(tmp_path / "crawl")) == 5
    elif output == "full":
        assert result.returncode == 1
        assert "the output cannot be written: No space left on device" in result.stderr
