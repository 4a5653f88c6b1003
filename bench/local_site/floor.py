"""What the libraries take for a page when they are called in a loop: the least that a crawler built on them can take.

Nothing decides, counts, logs or schedules here; each stage is the library's call on the bytes that a page brings, and
the stages together are what cannot be saved without other libraries. Reading a page is there twice: by the libraries (a
tree, its anchors and text, URLs joined and hashed), and by the project's own extension, which took their place because
they are most of it; so there are two sums. Called by `compare`, in a process of its own.

    python floor.py KILOBYTES PORT ROUNDS CORE
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import can_ada
import lmdb
import turbohtml
import uvloop
from isal import isal_zlib
from xxhash import xxh3_128_digest

from nephila.parse import parse_html

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from local_site.pages import Plan, Site

PAGES = 200
GROUP = 100
"""Pages of one transaction."""
NEW_SHARE = 3
"""One link in so many is new."""
BATCH = 500
"""Rows of one batch of the catalogue."""
READING = ("tree", "anchors", "text", "join", "fingerprint")
"""Stages that the extension does in one."""
NATIVE = importlib.util.find_spec("nephila_native") is not None


def measure(kilobytes: int, port: int, rounds: int) -> dict[str, object]:
    """Microseconds of CPU a page by stage, the least of the rounds."""
    site = Site(Plan(20_000, kilobytes), "http", port)
    bodies = [site.body(number % 100, number // 100) for number in range(0, 20_000, 20_000 // PAGES)]
    packed = [isal_zlib.compress(body, 3, 31) for body in bodies]
    texts = [body.decode() for body in bodies]
    url = site.seeds[0]
    links = [re.findall(r'<a\b[^>]*? href="([^"#]+)"', text) for text in texts]
    base = can_ada.parse(url)
    joined = [[(base + link).href for link in found] for found in links]
    stages: dict[str, Callable[[], float]] = {
        "wire": lambda: _wire_us(site, rounds=1),
        "inflate": _each(packed, lambda body: isal_zlib.decompress(body, 31)),
        "tree": _each(texts, lambda text: turbohtml.parse(text, positions=False)),
        "anchors": lambda: _asked_us(
            texts, lambda page: [(a.attr("href"), a.text) for a in page.iter_elements(("a",))]
        ),
        "text": lambda: _asked_us(texts, lambda page: page.text),
        "join": _each(links, lambda found: [(base + link).href for link in found]),
        "fingerprint": _each(joined, lambda found: [xxh3_128_digest(link.encode()) for link in found]),
        "digests": _each(list(zip(bodies, packed, strict=True)), _digests),
        "queue": lambda: _lmdb_us(joined),
        "archive": lambda: _archive_us(packed, joined),
        "catalogue": lambda: _catalogue_us(joined),
    }
    if NATIVE:
        stages["extension"] = _each(bodies, lambda body: parse_html(body, url, "text/html", agent="x"))
    least = {name: min(stage() for _ in range(rounds)) for name, stage in stages.items()}
    extension = least.pop("extension", None)
    libraries = sum(least.values())
    return {
        "kilobytes": kilobytes,
        "bytes": sum(map(len, bodies)) // len(bodies),
        "links": round(sum(map(len, links)) / len(links), 1),
        "stages_us": {name: round(spent, 1) for name, spent in least.items()},
        "sum_us": round(libraries, 1),
        "extension_us": None if extension is None else round(extension, 1),
        "sum_with_extension_us": None
        if extension is None
        else round(libraries + extension - sum(least[name] for name in READING), 1),
    }


def _digests(page: tuple[bytes, bytes]) -> None:
    """Of what the page says, and of what was on the wire, as the archive has them."""
    body, wire = page
    hashlib.sha256(body).digest()
    hashlib.sha1(wire, usedforsecurity=False).digest()


def _asked_us(texts: list[str], ask: Callable[[turbohtml.Document], object]) -> float:
    """What a question to every page's tree takes; the trees are made beforehand."""
    return _each([turbohtml.parse(text, positions=False) for text in texts], ask)()


def _each(things: list[Any], act: Callable[[Any], object]) -> Callable[[], float]:
    def stage() -> float:
        began = time.process_time()
        for thing in things:
            act(thing)
        return (time.process_time() - began) / len(things) * 1e6

    return stage


class _Client(asyncio.Protocol):
    """Counts bytes, the least that can be done with an answer."""

    def __init__(self, requests: list[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._left = 0
        self._started = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        if not self._started:
            self._started = True
            head, _, body = data.partition(b"\r\n\r\n")
            self._left = int(head.rpartition(b"Content-Length: ")[2]) - len(body)
        else:
            self._left -= len(data)
        if self._left <= 0:
            self._next()

    def _next(self) -> None:
        self._started = False
        if self._requests:
            self._transport.write(self._requests.pop())  # type: ignore[attr-defined]  # a socket's transport
        else:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)


def _wire_us(site: Site, rounds: int) -> float:
    """A request and its answer over a kept connection, on uvloop."""

    async def fetch() -> float:
        loop = asyncio.get_running_loop()
        hosts = [seed.removeprefix("http://").strip("/").split(":") for seed in site.seeds[:50]]
        began = time.process_time()
        waiting = []
        for number, (address, port) in enumerate(hosts):
            head = "GET {} HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: gzip\r\nUser-Agent: floor\r\n\r\n"
            requests = [head.format(site.path(page), address).encode() for page in range(number % 3, 20)]
            waiting.append(done := loop.create_future())
            await loop.create_connection(partial(_Client, requests, done), address, int(port))
        asked = sum(20 - number % 3 for number in range(len(hosts)))
        await asyncio.gather(*waiting)
        return (time.process_time() - began) / asked * 1e6

    uvloop.run(fetch())  # so that the server has its pages ready
    return min(uvloop.run(fetch()) for _ in range(rounds))


def _lmdb_us(pages: list[list[str]]) -> float:
    """All links looked up, the new ones written with their place in a queue, the page's own state; synced in groups."""
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, lmdb.open(folder, map_size=1 << 30) as environment:
        keys = [[draw.randbytes(21) for _ in page] for page in pages]
        began = time.process_time()
        for first in range(0, len(keys), GROUP):
            with environment.begin(write=True) as transaction:
                cursor = transaction.cursor()
                for page in keys[first : first + GROUP]:
                    cursor.getmulti(page)
                    new = page[::NEW_SHARE]
                    cursor.putmulti([(key, b"0123456789a") for key in new])
                    cursor.put(page[0] + b"queue", bytes(60 * len(new)))
                    cursor.put(page[0] + b"state", bytes(60))
        return (time.process_time() - began) / len(keys) * 1e6


def _archive_us(packed: list[bytes], joined: list[list[str]]) -> float:
    """A response as it came, checksummed; request and metadata compressed; one write; synced in groups."""
    with tempfile.TemporaryFile() as file:
        began = time.process_time()
        for number, (body, links) in enumerate(zip(packed, joined, strict=True)):
            fields = isal_zlib.compress("".join(f"outlink: {link}\r\n" for link in links).encode() + bytes(800), 1, 31)
            isal_zlib.crc32(body)
            file.write(b"".join((bytes(600), body, fields)))
            if number % GROUP == GROUP - 1:
                file.flush()
                os.fdatasync(file.fileno())
        return (time.process_time() - began) / len(packed) * 1e6


def _catalogue_us(joined: list[list[str]]) -> float:
    """A row a page, with one index, in batches."""
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "rows.sqlite")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE page (id BLOB PRIMARY KEY, url, host, status, at, segment, place, length, text)")
        rows = [
            (xxh3_128_digest(f"{links[0]}{n}".encode()), links[0], "h", 200, n, "s", n, 9, n)
            for n, links in enumerate(joined)
        ]
        began = time.process_time()
        for first in range(0, len(rows), BATCH):
            with database:
                database.executemany("INSERT INTO page VALUES (?,?,?,?,?,?,?,?,?)", rows[first : first + BATCH])
        spent = time.process_time() - began
        database.close()
        return spent / len(rows) * 1e6


def main() -> None:
    """Measure one size and print JSON."""
    kilobytes, port, rounds, core = (int(word) for word in sys.argv[1:5])
    if core >= 0:
        os.sched_setaffinity(0, {core})
    print(json.dumps(measure(kilobytes, port, rounds)))


if __name__ == "__main__":
    main()
