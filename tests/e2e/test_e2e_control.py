"""A crawl operated over HTTP, by real sockets: inside it (`crawl --serve`) and beside it (`serve`)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from served import ServedWeb, nephila, plain_web, run, served, stored_pages

ANY = "0.0.0.0"  # noqa: S104 - with tokens, or refused
UNHURRIED = ("--delay", "0.1", "--scope", "domain", "--forever", "--quiet")


def ask(url: str, body: object = None, method: str = "", headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """One request; status, and what came back."""
    data = None if body is None else json.dumps(body).encode()
    sent = {**({"Content-Type": "application/json"} if data is not None else {}), **(headers or {})}
    method = method or ("GET" if data is None else "POST")
    request = urllib.request.Request(url, data, sent, method=method)  # noqa: S310 - of our own server
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            text = answer.read()
            return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text.decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def until(holds: Callable[[], bool], what: str, within_s: float = 90) -> float:
    """Look again and again until something holds; how long that took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < within_s, f"in vain: {what}"
        time.sleep(0.05)
    return time.monotonic() - began


@contextmanager
def running(log: Path, *arguments: str | Path, code: int = 130, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """A command that serves, stopped in the end by a signal; where it answers."""
    with log.open("wb") as stream:
        process = subprocess.Popen(nephila(*arguments), stdout=stream, stderr=stream, env=env)
    try:
        until(lambda: b"API: " in log.read_bytes() or process.poll() is not None, "that it answers")
        found = re.search(r"API: (http\S+)/api/v1", log.read_text())
        assert found is not None, log.read_text()
        yield found[1]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            ended = process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert ended == code, log.read_text()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    spec, arguments = plain_web(31, hosts=6, pages=1200)
    with served(tmp_path_factory.mktemp("web"), spec, *arguments, "--base-delay-ms", "0") as found:
        yield found


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, web: ServedWeb) -> Path:
    """A crawl that has ended."""
    out = tmp_path_factory.mktemp("ended") / "crawl"
    run("crawl", web.seeds[0], "--out", out, *web.flags, "--max-pages", "2", "--quiet", code=3)
    return out


def seeds(web: ServedWeb) -> list[str]:
    """The home pages of all its hosts."""
    return [f"http://site{number}.test:{web.told['port']}/" for number in range(6)]


def host_of(url: str) -> str:
    return url.split("/")[2].partition(":")[0]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_running_crawl_obeys_at_once(tmp_path: Path, web: ServedWeb, processes: str) -> None:
    """C1, R4, T7, S1: seeds are crawled, a pause stops a host within a second, a block holds, all of it is logged."""
    first, second, third = seeds(web)[:3]
    options = (*web.flags, *UNHURRIED, "--serve", "0", "--processes", processes)
    with running(tmp_path / "log", "crawl", first, "--out", tmp_path / "crawl", *options) as url:
        api = f"{url}/api/v1"

        def fetched(host: str) -> int:
            status, told = ask(f"{api}/domains/{host}")
            return sum(one["fetched"] for one in told["hosts"]) if status == 200 else 0

        until(lambda: fetched(host_of(first)) > 2, "the first pages")
        status, told = ask(f"{api}/seeds", {"urls": [second, third, second], "priority": "immediate"})
        assert (status, told["added"], told["duplicates"], told["refused"]) == (200, 2, 1, [])
        until(lambda: fetched(host_of(second)) > 2 and fetched(host_of(third)) > 2, "the pages of the new seeds", 10)

        assert ask(f"{api}/domains/{host_of(second)}/pause", {})[1]["paused"]
        time.sleep(1)  # within a second
        before = fetched(host_of(second))
        assert ask(f"{api}/blocklist", {"pattern": host_of(third), "reason": "they asked"})[0] == 201
        time.sleep(1)
        blocked = fetched(host_of(third))
        going = fetched(host_of(first))
        until(lambda: fetched(host_of(first)) > going + 5, "the others go on")
        assert fetched(host_of(second)) == before
        assert fetched(host_of(third)) == blocked
        assert ask(f"{api}/seeds", {"urls": [f"{third}x"]})[1]["refused"][0]["reason"] == "blocked"

        ask(f"{api}/domains/{host_of(second)}/resume", {})
        assert until(lambda: fetched(host_of(second)) > before, "it goes on") < 10
        told = ask(f"{api}/status")[1]
        assert told["running"]
        assert told["pages_crawled_today"] == told["pages_this_month"] > 0
        assert told["active_workers"] == int(processes)
        assert told["crawl_rate"] > 0
        metrics = ask(f"{url}/metrics")[1]
        assert "nephila_politeness_violations_total 0\n" in metrics
        assert "nephila_up 1\n" in metrics
        what = [one["what"] for one in ask(f"{api}/changes")[1]["changes"]]
        assert what == ["resume", "seeds", "block", "pause", "seeds"]
        series = ask(f"{api}/series")[1]
        assert sum(step["pages"] for step in series["steps"]) > 0
        assert all(step["span_s"] == series["step_s"] for step in series["steps"][:-1])
        coarse = ask(f"{api}/series?resolution=coarse")[1]
        assert 1 <= coarse["steps"][-1]["span_s"] < coarse["step_s"]


def test_a_separate_server_reaches_a_crawl_that_runs(tmp_path: Path, web: ServedWeb) -> None:
    """C1, S1, R4: seeds are crawled within seconds, links of a widened scope too; a pause holds; the status is its."""
    first, second = seeds(web)[3:5]
    out = tmp_path / "crawl"
    with running(tmp_path / "log", "crawl", first, "--out", out, *web.flags, *UNHURRIED, "--serve", "0") as inside:
        until(lambda: ask(f"{inside}/api/v1/status")[1]["pages"] > 2, "the first pages")
        with running(tmp_path / "beside", "serve", "--out", out, "--port", "0", code=0) as beside:
            api = f"{beside}/api/v1"
            assert ask(f"{api}/seeds", {"urls": [second]})[1]["added"] == 1

            def pages() -> int:
                status, told = ask(f"{api}/domains/{host_of(second)}")
                return told["domain"]["pages"] if status == 200 else 0

            until(lambda: pages() > 3, "pages of the new seed, and of its links", 20)
            ask(f"{api}/domains/{host_of(second)}/pause", {})
            time.sleep(1)
            before = pages()
            time.sleep(1)
            assert pages() == before
            told = ask(f"{api}/status")[1]
            assert told["running"]
            until(lambda: ask(f"{api}/status")[1]["crawl_rate"] > 0, "the rate of the other process", 20)
            story = ask(f"{api}/why?url={quote(second)}")[1]
            assert story["found"]


class _Hook(BaseHTTPRequestHandler):
    """Takes what alerts post."""

    def do_POST(self) -> None:
        self.server.seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Any]:
    server = HTTPServer(("127.0.0.1", 0), _Hook)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_worker_outside_shares_a_running_crawl_that_tells_its_alerts(
    tmp_path: Path, web: ServedWeb, hook: Any
) -> None:
    """C1, F3, P1, O2: it leases allowed URLs of hosts that nobody else asks; alerts reach console, API and webhook."""
    seed = seeds(web)[5]
    options = (*web.flags, "--delay", "0.3", "--forever", "--quiet", "--serve", "0", "--alerts")
    thresholds = ("max_latency_s=0.000001", "least_answers=1", "min_dns_hit_share=0")
    wrong = [word for threshold in thresholds for word in ("--set", f"alerts.{threshold}")]
    posted = ("--set", f"alerts.webhook=http://127.0.0.1:{hook.server_port}/")
    with running(tmp_path / "log", "crawl", seed, "--out", tmp_path / "crawl", *options, *wrong, *posted) as url:
        api = f"{url}/api/v1"
        until(lambda: ask(f"{api}/status")[1]["pages"] > 1, "the first pages")
        tasks: list[Any] = []

        def leased() -> bool:
            code, told = ask(f"{api}/tasks/lease", {"worker_id": "w1", "lease_duration_sec": 30})
            assert code == 200, told
            tasks.extend(told["tasks"])
            return bool(tasks)

        until(leased, "a task")
        pages = ask(f"{api}/status")[1]["pages"]
        time.sleep(1)
        assert ask(f"{api}/status")[1]["pages"] - pages <= 1  # its only host is the worker's
        result = {"http_status": 200, "storage_path": "file:/x", "content_hash": "00" * 32, "extracted_urls": []}
        assert ask(f"{api}/tasks/{tasks[0]['task_id']}/result", result)[0] == 200
        until(lambda: ask(f"{api}/status")[1]["pages"] > pages + 3, "the crawl goes on with the host")
        until(lambda: bool(hook.seen), "the alert is posted")
        assert hook.seen[0]["firing"][0]["name"] == "latency"
        assert [one["name"] for one in ask(f"{api}/alerts")[1]["alerts"]] == ["latency"]
        assert 'nephila_alert{alert="latency"} 1\n' in ask(f"{url}/metrics")[1]
    assert "Warning: latency: an answer takes" in (tmp_path / "log").read_text()


def test_beyond_loopback_nothing_is_readable_without_a_token(tmp_path: Path, ended: Path) -> None:
    """C2: bound to all addresses with tokens, every path but a probe's wants one; a reader changes nothing."""
    writer, reader = "writer-0123456789abcdef", "reader-0123456789abcdef"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann write {writer}\nbob read {reader}\n")
    tokens.chmod(0o600)
    options = ("--host", ANY, "--port", "0", "--token-file", tokens)
    with running(tmp_path / "log", "serve", "--out", ended, *options, code=0) as bound:
        url = bound.replace(ANY, "127.0.0.1")
        description = ask(f"{url}/api/v1/openapi.json", headers={"Authorization": f"Bearer {reader}"})[1]
        for path, methods in description["paths"].items():
            for method in methods:
                target = url + path.replace("{domain}", "a.test").replace("{task_id}", "1")
                body = {} if method in {"post", "put"} else None
                status, told = ask(target, body, method.upper())
                if path == "/healthz":
                    assert status == 200
                    continue
                assert (status, told["type"]) == (401, "urn:nephila:problem:unauthenticated"), path
        bob, ann = ({"Authorization": f"Bearer {one}"} for one in (reader, writer))
        assert ask(f"{url}/api/v1/status", headers=bob)[0] == 200
        assert ask(f"{url}/api/v1/domains/a.test/pause", {}, headers=bob)[0] == 403
        assert ask(f"{url}/api/v1/domains/a.test/pause", {}, headers=ann)[0] == 200
        assert ask(f"{url}/api/v1/changes", headers=bob)[1]["changes"][0]["who"] == "ann"
    assert writer not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--host", ANY), "token"),
        (("--port", "99999"), "99999"),
        (("--token-file", "/nonexistent"), "cannot be read"),
    ],
)
def test_a_server_that_makes_no_sense_does_not_start(ended: Path, arguments: tuple[str, ...], told: str) -> None:
    """C2, C4: one sentence, exit code 2."""
    result = run("serve", "--out", ended, *arguments, code=2)
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_a_directory_without_a_crawl_is_not_served(tmp_path: Path) -> None:
    """C4: told in a sentence; --token-file without --serve is told, too."""
    assert "no crawl" in run("serve", "--out", tmp_path / "none", "--port", "0", code=None).stderr
    assert "--serve" in run("crawl", "https://a.test", "--token-file", tmp_path / "x", code=2).stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_running_crawl_carries_out_takedowns(tmp_path: Path, web: ServedWeb, processes: str) -> None:
    """C1, K2: ordered over the API and by the command; blocked at once, taken out while it goes on, and proven."""
    first, second = seeds(web)[:2]
    out = tmp_path / "crawl"
    options = (*web.flags, *UNHURRIED, "--serve", "0", "--processes", processes)
    with running(tmp_path / "log", "crawl", first, second, "--out", out, *options) as url:
        api = f"{url}/api/v1"

        def pages() -> int:
            return int(ask(f"{api}/status")[1]["captures"])

        until(lambda: len(ask(f"{api}/pages?host={host_of(second)}")[1]["pages"]) > 5, "pages of both")
        status, told = ask(f"{api}/takedowns", {"domains": [host_of(second)], "reason": "they asked us"})
        assert (status, told["state"]) == (202, "pending")
        until(lambda: ask(f"{api}/takedowns/{told['id']}")[1]["state"] == "done", "that it is carried out", 60)
        done = ask(f"{api}/takedowns/{told['id']}")[1]
        assert done["captures"] > 5
        assert ask(f"{api}/pages?host={host_of(second)}")[1]["pages"] == []
        lines = [line for path in (out / "events").iterdir() for line in path.read_text().splitlines()]
        told = {json.loads(line).get("url", "") for line in lines if f'"host":"{host_of(second)}"' in line}
        assert told
        assert {url for url in told if not url.endswith(("/", "*"))} == set(), "masked in the logs of all processes"
        page = ask(f"{api}/pages?host={host_of(first)}")[1]["pages"][0]["url"]
        text = run("purge", out, page, "--reason", "they asked us, too", code=0)
        assert "receipts are in the chain" in str(text)
        before = pages()
        until(lambda: pages() > before + 5, "that the crawl goes on")
    run("audit", out, code=0)
    assert [one for one in stored_pages(out) if host_of(one) == host_of(second) or one == page] == []
