"""The engines of a fleet for tests, and its command line: workers that are started, killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

from gate import Gate
from leashed import leashed
from postgres import Postgres
from seaweed import BUCKET, Seaweed
from served import ServedWeb, nephila, run

from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.node.fleet.registry import Registry, Standing

SETTINGS = """
[fleet]
crawl = "{crawl}"
servers = {servers}
shards = {shards}
beat_s = 0.5
{fleet}

[catalogue]
url = "{database}"
retry_s = 0.05
retry_max_s = 0.5
{catalogue}

[archive]
url = "s3://{bucket}/{crawl}"
{archive}

[s3]
endpoint = "{endpoint}"

[spool]
{spool}
retry_s = 0.1
retry_max_s = 1.0

[fetch]
allow_addresses = ["{allowed}"]
{fetch}

[dns]
resolvers = ["{resolver}"]

[politeness]
delay_s = {delay_s}

[scope]
mode = "all"

[limits]
max_wait_s = 3
{more}
"""


def portless(url: str) -> str:
    return re.sub(r":\d+/", "/", url, count=1)


@dataclass
class Engines:
    """The servers of a fleet."""

    names: Sequence[str]
    """Of Valkey."""
    database: Postgres
    store: Seaweed
    door: Gate
    """In front of the store: shut, it is away."""


@dataclass
class Fleet:
    """One crawl on engines that run."""

    folder: Path
    engines: Engines
    web: ServedWeb
    delay_s: float
    fleet: str = ""
    more: str = ""
    archive: str = ""
    fetch: str = ""
    database: str = ""
    """Another way to it than straight."""
    catalogue: str = ""
    spool: str = 'segment_bytes = "400KB"\nsegment_age_s = 1.5'
    shards: int = 32
    """Fewer than a fleet has by default: a worker that is idle asks each of them several times a second."""
    crawl: str = field(default_factory=lambda: f"t{uuid4().hex[:12]}")
    started: list[Worker] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nobody is left running, whatever a test came to."""
        for worker in self.started:
            worker.kill()

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(
            SETTINGS.format(
                crawl=self.crawl,
                servers=json.dumps(list(self.engines.names)),
                shards=self.shards,
                fleet=self.fleet,
                database=self.database or self.engines.database.url,
                catalogue=self.catalogue,
                spool=self.spool,
                bucket=BUCKET,
                endpoint=self.engines.door.endpoint,
                allowed=self.web.told["allow_address"],
                resolver=self.web.told["resolver"],
                delay_s=self.delay_s,
                more=self.more,
                archive=self.archive,
                fetch=self.fetch,
            )
        )

    @property
    def settings(self) -> Path:
        return self.folder / "fleet.toml"

    @property
    def environ(self) -> dict[str, str]:
        return {**self.engines.store.environ, **self.engines.database.environ}

    def say(self, *arguments: str | Path, code: int | None = 0, timeout: float = 120) -> str:
        """Run one command of the program; what it prints."""
        return run(*arguments, "--config", self.settings, code=code, timeout=timeout, env=self.environ).stdout

    def seed(self) -> dict[str, Any]:
        """Give it the web's seeds."""
        answer: dict[str, Any] = json.loads(self.say("seed", *self.web.seeds, "--json"))
        return answer

    def command(self, name: str, *more: str) -> list[str]:
        folder = self.folder / name
        return nephila("worker", "--config", self.settings, "--dir", folder, "--name", name, "--json", *more)

    def start(self, name: str, *more: str) -> Worker:
        """Start a worker, in its own directory."""
        self.started.append(Worker(self, name, more))
        return self.started[-1]

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.say("fleet", "status", "--json"))
        return answer

    @contextlib.contextmanager
    def served(self, *more: str) -> Iterator[Callable[..., Any]]:
        """The control API of the fleet; asked by method, path and body."""
        command = nephila("serve", "--config", self.settings, "--out", self.folder / "desk", "--port", "0", *more)
        log = self.folder / f"serve{'-'.join(more)}.log"
        with log.open("wb") as told:
            process = subprocess.Popen(leashed(command), stdout=told, stderr=told, env={**os.environ, **self.environ})
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"API: (\S+)", log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            address = urlsplit(found[1])

            def ask(
                method: str,
                path: str,
                body: object = None,
                *,
                code: int | None = 200,
                raw: bool = False,
                headers: Mapping[str, str] | None = None,
            ) -> Any:
                line = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
                given = {"Content-Type": "application/json"} if body is not None else {}
                sent = None if body is None else json.dumps(body)
                line.request(method, address.path + path, sent, {**given, **(headers or {})})
                answer = line.getresponse()
                text = answer.read()
                line.close()
                assert code is None or answer.status in {code, 201}, (answer.status, text)
                return text.decode() if raw else json.loads(text)

            ask.url = found[1].removesuffix("/api/v1")  # type: ignore[attr-defined] # for a browser
            yield ask
        finally:
            process.terminate()
            process.wait(20)

    def workers(self) -> list[Standing]:
        """Who is on the register, asked without the command line."""

        async def ask() -> list[Standing]:
            state = await ValkeyState.open(servers_of(self.engines.names, {}))
            try:
                return list((await Registry(state, self.crawl).roll()).workers)
            finally:
                await state.close()

        return asyncio.run(ask())

    @property
    def pages(self) -> int:
        """Stored by those who are there now."""
        return sum(one.figures.pages for one in self.workers())

    # What came of it

    def stored(self, region: str = "") -> Counter[str]:
        """Every page in the catalogue, of the crawl or of a region, and how often it was stored."""
        rows = self.engines.database.query(
            "SELECT url FROM captures WHERE robots = false AND status BETWEEN 200 AND 299 AND truncated = ''",
            f'"crawl_{self.crawl}{region}"',
        )
        return Counter(portless(url) for (url,) in rows)


@dataclass
class Worker:
    """A worker as a process."""

    of: Fleet
    name: str
    more: Sequence[str] = ()
    kills: int = 0

    def __post_init__(self) -> None:
        self.begin()

    @property
    def log(self) -> Path:
        return self.of.folder / f"{self.name}.log"

    @property
    def printed(self) -> Path:
        return self.of.folder / f"{self.name}.json"

    def begin(self) -> None:
        """Start the process."""
        environ: Mapping[str, str] = {**os.environ, **self.of.environ}
        with self.log.open("ab") as log, self.printed.open("wb") as printed:
            self.process = subprocess.Popen(
                leashed(self.of.command(self.name, *self.more)), stdout=printed, stderr=log, env=environ
            )

    def kill(self) -> None:
        """End it as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def kill_and_begin(self) -> None:
        """End it so, and start it again on the same directory."""
        self.kill()
        self.begin()

    def end(self, timeout: float = 180, *, code: int = 0) -> dict[str, Any]:
        """Wait for it to end by itself; what it says of itself."""
        try:
            ended = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            raise AssertionError(f"{self.name} does not end\n{self.told()}") from None
        assert ended == code, f"{self.name}: exit {ended}\n{self.told()}"
        summary: dict[str, Any] = json.loads(self.printed.read_text())
        return summary

    def told(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]
