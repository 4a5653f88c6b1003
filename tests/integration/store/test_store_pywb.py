"""Replay by pywb, from our WARC files and our index, over a real socket.

pywb pins old packages, so it has an environment of its own: `.venv-pywb` in the project's root, made here from
`requirements/pywb.txt` when it is missing or out of date. Where that cannot be done the test fails: a replay that was
not tried proves nothing.
"""

import hashlib
import http.client
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import StoredCrawl

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "requirements" / "pywb.txt"
ENVIRONMENT = ROOT / ".venv-pywb"
START_LIMIT_S = 60.0
INSTALL_LIMIT_S = 900.0

_CONFIGURATION = """
collections:
  crawl:
    index_paths: {directory}/
    archive_paths: {directory}/
"""


@pytest.fixture(scope="session")
def pywb() -> Path:
    """The folder of pywb's commands."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    marker = ENVIRONMENT / "requirements.sha256"
    if not marker.exists() or marker.read_text() != wanted:
        sys.stderr.write(f"\nmaking {ENVIRONMENT.name} for pywb, once\n")
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        python = ENVIRONMENT / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(REQUIREMENTS)]
        for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S)
            assert done.returncode == 0, f"pywb's environment cannot be made: {done.stderr[-2000:]}"
        marker.write_text(wanted)
    return ENVIRONMENT / "bin"


@dataclass(frozen=True)
class Wayback:
    """A running pywb with one collection."""

    port: int

    def get(self, url: str, timestamp: str = "20260101000000") -> tuple[int, bytes, dict[str, str]]:
        """The page as pywb replays it without rewriting: status, body, headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", f"/crawl/{timestamp}id_/{url}", headers={"Accept-Encoding": "identity"})
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, body, {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()


@pytest.fixture(scope="module")
def wayback(pywb: Path, stored_crawl: StoredCrawl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wayback]:
    home = tmp_path_factory.mktemp("pywb")
    (home / "config.yaml").write_text(_CONFIGURATION.format(directory=stored_crawl.directory))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = home / "wayback.log"
    with log.open("wb") as output:
        command = [str(pywb / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, cwd=home, stdout=output, stderr=output)
    try:
        _wait_until_it_listens(process, port, log)
        yield Wayback(port)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    step_s = 0.1
    for _ in range(int(START_LIMIT_S / step_s)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(timeout=step_s)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"pywb did not start:\n{log.read_text()[-2000:]}")


def test_pages_are_replayed_byte_for_byte(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """W1: what the fetcher decoded is what a reader of the archive sees, whatever coding it came in."""
    replayed = 0
    for (capture, _), row in zip(stored_crawl.written, stored_crawl.rows, strict=True):
        fetched = capture.fetched
        if row.kind != "response" or fetched.truncated or fetched.header("content-encoding") == "zstd":
            continue  # pywb hands a cut body out as far as it likes, and Zstandard as it is stored
        status, body, headers = wayback.get(fetched.url)
        assert (status, fetched.url) == (fetched.status, fetched.url)
        assert body == fetched.body, fetched.url
        assert headers["memento-datetime"] == "Thu, 01 Jan 2026 00:00:00 GMT"
        replayed += 1
    assert replayed >= 12


def test_a_revisit_is_replayed_with_the_body_of_its_original(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """D2: the second copy is found through WARC-Refers-To, though its URL is another."""
    copy = stored_crawl.written[-2][0].fetched
    assert stored_crawl.rows[-2].kind == "revisit"
    status, body, _ = wayback.get(copy.url)
    assert (status, body) == (200, copy.body)


def test_a_page_that_had_not_changed_is_replayed_with_its_body(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """H3: a reader who asks for the time of the 304 gets the page, not the 304."""
    unchanged = stored_crawl.written[-1][0]
    assert unchanged.not_modified
    page = stored_crawl.written[0][0].fetched
    assert unchanged.fetched.url == page.url
    status, body, headers = wayback.get(page.url, "20260101000100")
    assert (status, body) == (200, page.body)
    assert headers["memento-datetime"] == "Thu, 01 Jan 2026 00:00:00 GMT"


def test_the_robots_txt_in_force_is_replayed(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """P1, K1: what robots.txt said at that time can be looked up under its origin."""
    [rules] = [capture.rules for capture, _ in stored_crawl.written if capture.rules is not None]
    assert wayback.get("https://spiders.example:8443/robots.txt")[:2] == (200, rules)


def test_what_was_never_captured_is_not_found(wayback: Wayback) -> None:
    """W1: the index names captures only."""
    assert wayback.get("https://spiders.example/never")[0] == 404
