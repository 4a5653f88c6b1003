"""pywb and py-wacz, which read our archives as everybody's tools do.

They pin old packages, so they have an environment of their own: `.venv-pywb` in the project's root, made here from
`requirements/pywb.txt` when it is missing or out of date. Where that cannot be done the test fails: a replay that was
not tried proves nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements" / "pywb.txt"
ENVIRONMENT = ROOT / ".venv-pywb"
START_LIMIT_S = 60.0
INSTALL_LIMIT_S = 900.0

_CONFIGURATION = """
collections:
  crawl:
    index_paths: {indexes}/
    archive_paths: {archives}/
"""


def commands() -> Path:
    """The folder of their commands."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    marker = ENVIRONMENT / "requirements.sha256"
    with ENVIRONMENT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of the tests may want it
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


@contextmanager
def replaying(home: Path, archives: Path, indexes: Path) -> Iterator[Wayback]:
    """A pywb on these folders, over a real socket; `home` is where it works."""
    (home / "config.yaml").write_text(_CONFIGURATION.format(archives=archives, indexes=indexes))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = home / "wayback.log"
    with log.open("wb") as output:
        command = [str(commands() / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
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
    raise AssertionError(f"pywb did not start:\n{log.read_text()[-2000:]}")
