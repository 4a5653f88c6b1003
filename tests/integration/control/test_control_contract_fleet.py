"""The API of a fleet held against the same description as that of a crawl directory, on real engines (schemathesis)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import postgres
import pytest
from control import InProcess, controlled_by
from described import description_of, each_mode, each_operation, hold_to_description
from schemathesis import GenerationMode
from seaweed import BUCKET, Seaweed
from valkey_servers import ValkeySingle

from nephila.config import load
from nephila.node.fleet.desk import desk_of_fleet

EXAMPLES = 5
CRAWL = f"t{uuid4().hex[:12]}"
ARCHIVE = f"s3://{BUCKET}/{CRAWL}"
SEEDS = [f"http://host{number}.site{number % 7}.test/page-{number}" for number in range(40)]
SETTINGS = """
[fleet]
crawl = "{crawl}"
servers = ["redis://{valkey}"]
shards = 16

[catalogue]
url = "{database}"

[archive]
url = "s3://{bucket}/{crawl}"

[s3]
endpoint = "{endpoint}"

[robots]
obey = false

[scope]
mode = "all"
"""


@pytest.fixture(scope="module")
def served(object_server: Seaweed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("fleet")
    with ValkeySingle("--appendonly", "yes") as valkey, postgres.running() as database:
        file = folder / "fleet.toml"
        file.write_text(
            SETTINGS.format(
                crawl=CRAWL,
                valkey=valkey.names[0],
                database=database.url,
                bucket=BUCKET,
                endpoint=object_server.endpoint,
            )
        )
        with patch.dict(os.environ, {**object_server.environ, **database.environ}):
            configured = load(file=file, environ=os.environ)
            with controlled_by(desk_of_fleet(configured, folder / "desk")) as api:
                prepare(api)
                yield api


def prepare(api: InProcess) -> None:
    """Something to list: queued, lent and fetched, given up, paused, blocked."""
    assert api.ask("POST", "/api/v1/seeds", {"urls": SEEDS}).json()["added"] == len(SEEDS)
    lent = api.ask("POST", "/api/v1/tasks/lease", {"worker_id": "w", "batch_size": 6}).json()["tasks"]
    assert len(lent) >= 3
    found = {"http_status": 200, "content_type": "text/html", "content_hash": "00" * 32, "storage_path": "s3://x/y"}
    assert api.ask("POST", f"/api/v1/tasks/{lent[0]['task_id']}/result", found).status == 200
    gone = {"error": "gone", "http_status": 410}
    assert api.ask("POST", f"/api/v1/tasks/{lent[1]['task_id']}/fail", gone).status == 200
    assert api.ask("POST", "/api/v1/domains/site3.test/pause", {}).status == 200
    assert api.ask("POST", "/api/v1/blocklist", {"pattern": "site4.test", "reason": "they asked us"}).status == 201


@pytest.fixture(scope="module")
def description(served: InProcess) -> Any:
    return description_of(served)


def test_there_is_something_to_tell(served: InProcess) -> None:
    """C1: lists, letters, stories and figures of a fleet's crawl."""
    ask = served.ask
    assert ask("GET", "/api/v1/domains").json()["total"] == 7
    assert ask("GET", "/api/v1/dead-letters").json()["total"] == 1
    assert ask("GET", "/api/v1/policies").json()["total"] == 1
    assert ask("GET", "/api/v1/pages").json()["pages"][0]["storage_key"].startswith("s3://x/y")
    told = ask("GET", "/api/v1/status").json()
    assert (told["paused"], told["blocks"], told["running"]) == (1, 1, False)
    assert ask("GET", "/readyz").json() == {"status": "ok"}


def test_a_worker_outside_cannot_name_the_archive_of_the_fleet(served: InProcess) -> None:
    """C1, W2: a 4xx, also for a file of a region below it; a bucket whose name begins alike is another's."""
    seeds = {"urls": ["http://kept.kept1.test/"], "priority": "immediate"}
    assert served.ask("POST", "/api/v1/seeds", seeds).json()["added"] == 1
    (task,) = served.ask("POST", "/api/v1/tasks/lease", {"worker_id": "w", "batch_size": 1}).json()["tasks"]

    def report(place: str) -> int:
        found = {"http_status": 200, "content_type": "text/html", "storage_path": place}
        return served.ask("POST", f"/api/v1/tasks/{task['task_id']}/result", found).status

    for place in (f"{ARCHIVE}/any", ARCHIVE, f"{ARCHIVE}/eu/any", "x-20260101000000-00000-w7.warc.gz"):
        assert report(place) == 422
    assert report(f"{ARCHIVE}s/any") == 200


@pytest.mark.parametrize(
    "asked",
    [
        *("pages?host=%00", "traps?host=%00", "policies?after=%00", "blocklist?after=%00", "domains?search=%00"),
        *("domains/site0.test?after=%00", "why?url=%00", "pages?host=%F0%9F%A6%80", "why?url=http://a.test/%2500"),
    ],
)
def test_characters_that_an_engine_does_not_keep_are_no_reason_to_break(served: InProcess, asked: str) -> None:
    """C1, N2: PostgreSQL takes no NUL; who asks for one is told that there is nothing."""
    assert served.ask("GET", f"/api/v1/{asked}").status == 200


def test_words_that_an_engine_does_not_keep_are_taken(served: InProcess) -> None:
    """C1, N2: in reasons and in what workers report."""
    assert served.ask("POST", "/api/v1/blocklist", {"pattern": "odd.test", "reason": "a\0b"}).status == 201
    assert served.ask("DELETE", "/api/v1/blocklist?pattern=odd.test").status == 200
    seeds = {"urls": ["http://odd.odd1.test/", "http://odd.odd2.test/"], "priority": "immediate"}
    assert served.ask("POST", "/api/v1/seeds", seeds).json()["added"] == 2
    lent = served.ask("POST", "/api/v1/tasks/lease", {"worker_id": "w", "batch_size": 2}).json()["tasks"]
    found = {"http_status": 200, "content_type": "\0", "storage_path": "x", "worker_id": "\0", "extracted_urls": ["\0"]}
    assert served.ask("POST", f"/api/v1/tasks/{lent[0]['task_id']}/result", found).status == 200
    failed = {"error": "a\0b", "worker_id": "\0"}
    assert served.ask("POST", f"/api/v1/tasks/{lent[1]['task_id']}/fail", failed).status == 200


@each_operation
@each_mode
def test_no_answer_departs_from_the_description(description: Any, method: str, path: str, mode: GenerationMode) -> None:
    """C1, N2: no server error; no status, type or shape that is not described; what does not fit is refused."""
    hold_to_description(description, method, path, mode, EXAMPLES)
