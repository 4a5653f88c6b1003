"""`nephila audit` on crawls over real sockets: finished, killed, in several processes, and on what is no crawl."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from export_site import FLAGS, full_site, serving
from served import ServedWeb, crawl_json, nephila, plain_web, run, served
from webs import DELAY_S, Crawled


def audit_json(out: Path, *arguments: str, code: int | None = 0) -> dict[str, Any]:
    """What `audit --json` prints."""
    document: dict[str, Any] = json.loads(run("audit", out, "--json", *arguments, code=code).stdout)
    return document


def test_a_crawl_of_the_standard_web_is_clean(crawled: Crawled) -> None:
    """K1, P5: every request that the servers saw is on record, and none is wrong."""
    found = audit_json(crawled.out)
    assert found["clean"]
    assert found["requests"] == crawled.audit.requests > 1500
    assert found["hosts"] == len(crawled.audit.hosts)
    assert found["trail"]["ended"]
    assert found["trail"]["unsealed_bytes"] == 0
    assert found["delays_ms"] == [round(DELAY_S * 1000)]


def test_it_tells_people_in_eighty_columns(crawled: Crawled) -> None:
    """K1, C4: the verdict first, then what was looked at, the head last."""
    text = run("audit", crawled.out).stdout
    first, *rest = text.splitlines()
    assert first.endswith(": clean")
    assert max(map(len, rest)) <= 80
    assert audit_json(crawled.out)["head"] in text


def test_a_changed_copy_is_refused_and_a_wrong_head_too(crawled: Crawled, tmp_path: Path) -> None:
    """K1: exit code 1, and the file is named; a head that was noted must be there."""
    head = audit_json(crawled.out)["head"]
    assert audit_json(crawled.out, "--expect", head)["clean"]
    assert audit_json(crawled.out, "--expect", "0" * 64, code=1)["trail"]["missing"] == ["0" * 64]
    copy = tmp_path / "copy"
    shutil.copytree(crawled.out, copy, ignore=shutil.ignore_patterns("frontier", "near", "duplicates", "aliases"))
    path = next((copy / "warc").glob("*.warc.gz"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    result = run("audit", copy, code=1)
    assert "TAMPERED" in result.stdout
    assert path.name in result.stdout


def test_one_host_is_shown_its_own(crawled: Crawled) -> None:
    """K1: `--host`."""
    host = max(crawled.audit.hosts, key=lambda name: crawled.audit.hosts[name].requests)
    found = audit_json(crawled.out, "--host", host)
    assert 0 < found["requests"] < crawled.audit.requests
    assert audit_json(crawled.out, "--host", "nobody.test")["requests"] == 0


def test_what_is_no_crawl_gets_one_sentence(tmp_path: Path) -> None:
    """K1, C4: exit code 2 for directories and heads that make no sense."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no")
    for argument in ("missing", "empty", "file"):
        result = run("audit", tmp_path / argument, code=2)
        assert "Traceback" not in result.stderr
        assert result.stderr
    assert "no head" in run("audit", tmp_path / "empty", "--expect", "abc", code=2).stderr


@pytest.mark.parametrize("nonsense", [b"", b"\0\xff\n", b"{}\n", b'{"n":0}\nx'])
def test_nonsense_in_the_directory_is_told_and_not_thrown(crawled: Crawled, tmp_path: Path, nonsense: bytes) -> None:
    """K1, Q5: whatever lies where chains, events and archives are."""
    copy = tmp_path / "copy"
    (copy / "warc").mkdir(parents=True)
    (copy / "events").mkdir()
    (copy / "chain").mkdir()
    shutil.copy(crawled.out / "nephila-crawl", copy)
    (copy / "warc" / "x.warc.gz").write_bytes(nonsense)
    (copy / "events" / "events-000001.jsonl").write_bytes(nonsense)
    (copy / "chain" / "w0.jsonl").write_bytes(nonsense)
    result = run("audit", copy, code=None)
    assert result.returncode in (0, 1)
    assert "Traceback" not in result.stderr


# Crawls that are disturbed


POLITE = ("--delay", "0.03", "--scope", "all", "--max-wait", "2")
"""For webs that are served with --base-delay-ms 30."""


def workers_of(process: subprocess.Popen[Any]) -> list[int]:
    """The process ids of a crawl's workers."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return [int(pid) for pid in children.split()]


def begin(web: ServedWeb, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a crawl and do not wait for it."""
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *POLITE, *options)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_pages(out: Path, process: subprocess.Popen[bytes], pages: int) -> None:
    deadline = time.monotonic() + 120
    while b"".join(path.read_bytes() for path in (out / "events").glob("*.jsonl")).count(b'"fetch_ok"') < pages:
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)


def test_a_running_crawl_and_a_killed_one_are_clean_and_so_is_what_comes_after(tmp_path: Path) -> None:
    """K1, P5, Q4: beside a crawl, after kill -9, and when it has gone on and ended."""
    spec, arguments = plain_web(31, hosts=12, pages=700)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        for pages in (60, 150):
            process = begin(web, out, "--delay", "0.1")
            try:
                wait_for_pages(out, process, pages)
                beside = audit_json(out)
            finally:
                process.kill()
                process.wait()
            killed = audit_json(out)
            assert beside["clean"]
            assert killed["clean"]
            assert not killed["trail"]["ended"]
        crawl_json(web, out, *POLITE, "--delay", "0.1")
        seen = web.audit()
    found = audit_json(out, "--expect", killed["head"])
    assert found["clean"]
    assert found["trail"]["ended"]
    assert set(seen.by_kind) <= {"repeat"}
    assert seen.requests - 2 * 12 <= found["requests"] <= seen.requests, "but for what was on the wire"


def test_several_processes_leave_one_trail(tmp_path: Path) -> None:
    """K1, P5, N3: chains of all workers under one head; a killed worker spoils nothing; a lost chain is missed."""
    spec, arguments = plain_web(32, hosts=12, pages=500)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "30") as web:
        process = begin(web, out, "--processes", "2")
        try:
            wait_for_pages(out, process, 100)
            os.kill(workers_of(process)[0], signal.SIGKILL)
            assert audit_json(out)["clean"]
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
        seen = web.audit()
    found = audit_json(out)
    assert found["clean"], found["trail"]["breaches"]
    assert found["trail"]["ended"]
    assert found["trail"]["unsealed_bytes"] == 0
    assert set(found["trail"]["heads"]) == {"w0", "w1", "w2"}
    assert set(seen.by_kind) <= {"repeat"}
    assert seen.requests - 12 <= found["requests"] <= seen.requests, "but for what was on the wire"
    shutil.copytree(out, tmp_path / "robbed", ignore=shutil.ignore_patterns("frontier", "near", "aliases"))
    robbed = tmp_path / "robbed"
    (robbed / "chain" / "w1.jsonl").unlink()
    for path in (robbed / "warc").glob("*-w1.*"):
        path.unlink()
    breaches = audit_json(robbed, code=1)["trail"]["breaches"]
    assert "chain/w1.jsonl" in {breach["file"] for breach in breaches}


def test_a_policy_that_lowers_the_delay_is_on_record(tmp_path: Path) -> None:
    """K1, R4, P2: gaps are held against the delay that was in force, and the policy is told."""
    spec, arguments = plain_web(33, hosts=2, pages=30)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "30") as web:
        slow = ("--scope", "all", "--max-wait", "2")
        crawl_json(web, out, "--delay", "0.3", "--max-pages", "4", *slow, code=3)
        for host in {url.split("/")[2].partition(":")[0] for url in web.web.seeds()}:
            run("policy", out, host, "--delay", "0.03")
        crawl_json(web, out, "--delay", "0.3", "--max-pages", "0", *slow)
    found = audit_json(out)
    assert found["clean"], found["findings"][:3]
    assert 30 in found["policies"].values()
    assert found["shortest_gap_ms"] < 300


def test_what_is_fetched_after_a_move_is_judged_by_rules_of_the_new_archive(tmp_path: Path) -> None:
    """K1, N2: robots.txt is asked for anew, since the archive that has it stays behind."""
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "frontier.gz"
    with serving(full_site()) as site:
        run("crawl", site.url, "--out", old, *FLAGS, "--max-pages", "2", code=3)
        run("frontier", "export", old, "--to", file)
        run("frontier", "import", file, "--into", new, "--trust-settings")
        run("crawl", "--out", new, "--max-pages", "0", "--quiet")
    assert audit_json(new)["requests"] > 2
