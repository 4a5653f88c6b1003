"""W3: what a row costs in the catalogue, on SQLite and on PostgreSQL in one run.

Rows are those of a broad crawl: a page each, 997 domains, a robots.txt for one in a hundred, an error for one in
twenty. They are written in batches of 500 (a second of a busy worker) and of 5,000 (a segment that has arrived), into
an empty catalogue, as one worker does and as four do at once; then a tenth of them once more, as after a crash. Client
and server are told apart: processor time of this process, and of all processes of the server, which runs with its data
synced to disk, as an operator would have it. Wall time beside it, on a machine that may have other work.

    nephila bench catalogue [--json] [--quick] [--rows N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from postgres import Postgres, running

from nephila.interfaces.catalogue import CaptureRow, ErrorRow, WholeCatalogue
from nephila.model.record import SegmentId
from nephila.store import SqliteCatalogue
from nephila.store.postgres import PostgresCatalogue
from nephila.testing.contracts.catalogue import sample_error, sample_row

ROWS, QUICK = 100_000, 10_000
BATCHES = (500, 5_000)
WORKERS = 4
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds a row."""

    engine: str
    batch: int
    workers: int
    client_us: float
    server_us: float
    wall_us: float
    again_us: float
    """Wall time of a row that is there already."""


def rows_of(worker: int, count: int) -> list[CaptureRow]:
    """What a worker has fetched."""
    draw = random.Random(worker)
    segment = SegmentId(f"nephila-20260101000000-00000-w{worker}.warc.gz")
    made = []
    for number in range(count):
        robots = number % 100 == 0
        made.append(
            replace(
                sample_row(number),
                url=f"https://www.site-{number % 997}.example/articles/{number}/{draw.getrandbits(64):x}",
                fingerprint=draw.randbytes(16),
                content_hash=draw.randbytes(32),
                host=f"www.site-{number % 997}.example",
                domain=f"site-{number % 997}.example",
                segment=segment,
                robots=robots,
                robots_txt="User-agent: *\nDisallow: /private/\n" * 20 if robots else "",
            )
        )
    return made


def errors_of(rows: list[CaptureRow]) -> list[ErrorRow]:
    """One in twenty."""
    return [replace(sample_error(row.offset // 1_000), fingerprint=row.fingerprint) for row in rows[::20]]


def server_cpu_s(server: Postgres | None) -> float:
    """Of all processes of a server, those that have ended included: they are its children."""
    if server is None or server.process is None:
        return 0.0
    spent = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        pid, parent = int(entry.name), int(fields[1])
        if pid == server.process.pid:
            spent += sum(int(field) for field in fields[11:15])
        elif parent == server.process.pid:
            spent += int(fields[11]) + int(fields[12])
    return spent / TICKS


def measure(
    engine: str, open_one: Callable[[], WholeCatalogue], server: Postgres | None, rows: int, batch: int, workers: int
) -> Cost:
    work = [rows_of(worker, rows // workers) for worker in range(workers)]
    catalogues = [open_one() for _ in work]

    def write(one: tuple[WholeCatalogue, list[CaptureRow]]) -> None:
        catalogue, mine = one
        for start in range(0, len(mine), batch):
            piece = mine[start : start + batch]
            catalogue.record(piece, errors_of(piece))

    count = sum(map(len, work))
    began, client, there = time.perf_counter(), time.process_time(), server_cpu_s(server)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(write, zip(catalogues, work, strict=True)))
    wall, client, there = time.perf_counter() - began, time.process_time() - client, server_cpu_s(server) - there
    assert catalogues[0].capture_count() == count
    again = [mine[: max(batch, len(mine) // 10)] for mine in work]
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(write, zip(catalogues, again, strict=True)))
    repeated = (time.perf_counter() - began) / sum(map(len, again))
    assert catalogues[0].capture_count() == count, "rows were counted twice"
    for catalogue in catalogues:
        catalogue.close()
    return Cost(
        engine,
        batch,
        workers,
        *(round(value / count * 1e6, 1) for value in (client, there, wall)),
        round(repeated * 1e6, 1),
    )


def on_sqlite(rows: int) -> list[Cost]:
    costs = []
    for batch in BATCHES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "catalogue.sqlite"
            costs.append(measure("sqlite", lambda path=path: SqliteCatalogue(path), None, rows, batch, 1))  # type: ignore[misc]  # bound at once
    return costs


def on_postgres(rows: int) -> list[Cost]:
    costs: list[Cost] = []
    with running(18, "-cfsync=on", "-cshared_buffers=256MB") as server:
        for batch, workers in ((BATCHES[0], 1), (BATCHES[1], 1), (BATCHES[0], WORKERS)):

            def open_one(name: str = f"bench-{len(costs)}") -> PostgresCatalogue:
                return PostgresCatalogue(server.settings, name, server.environ)

            costs.append(measure("postgresql 18", open_one, server, rows, batch, workers))
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(prog="nephila bench catalogue", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="other than 100,000")
    parser.add_argument("--quick", action="store_true", help="end within 45 seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    rows = chosen.rows or (QUICK if chosen.quick else ROWS)
    costs = [*on_sqlite(rows), *on_postgres(rows)]
    if chosen.json:
        print(
            json.dumps(
                {"rows": rows, "costs": [{name: getattr(cost, name) for name in cost.__slots__} for cost in costs]}
            )
        )
        return
    print(f"{rows:,} rows; microseconds a row")
    print(f"{'engine':15}{'batch':>7}{'workers':>9}{'client':>9}{'server':>9}{'wall':>9}{'again':>9}")
    for cost in costs:
        print(
            f"{cost.engine:15}{cost.batch:7,}{cost.workers:9}{cost.client_us:9}{cost.server_us:9}{cost.wall_us:9}"
            f"{cost.again_us:9}"
        )


if __name__ == "__main__":
    main()
