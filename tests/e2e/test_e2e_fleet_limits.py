"""The limits of a crawl that several workers share, on real engines."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import postgres
from fleet_engines import Engines, Fleet
from gate import gate
from seaweed import Seaweed
from served import plain_web, served
from valkey_servers import ValkeySingle

MAX_PAGES, HOSTS = 60, 8
LIMIT = 3
"""The exit code of what was stopped by a limit."""


def test_workers_share_the_limit_of_pages(tmp_path: Path, object_server: Seaweed) -> None:
    """S3, N1: two workers together store what a crawl may and what they had begun; a third nothing."""
    spec, arguments = plain_web(85, hosts=HOSTS, pages=240)
    with ExitStack() as hold:
        database = hold.enter_context(postgres.running())
        valkey = hold.enter_context(ValkeySingle("--appendonly", "yes"))
        door = hold.enter_context(gate(object_server.ports[0]))
        web = hold.enter_context(served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "200"))
        engines = Engines(valkey.names, database, object_server, door)
        fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.2, more=f"max_pages = {MAX_PAGES}"))
        fleet.seed()
        workers = [fleet.start(name) for name in ("first", "second")]
        summaries = [worker.end(code=LIMIT) for worker in workers]
        late = fleet.start("third").end(code=LIMIT)
        stored = sum(fleet.stored().values())
    assert {one["stopped_by"] for one in (*summaries, late)} == {"max_pages"}
    assert late["pages"] == 0
    assert MAX_PAGES <= stored <= MAX_PAGES + HOSTS + len(workers)
