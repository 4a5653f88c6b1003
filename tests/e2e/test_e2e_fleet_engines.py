"""Engines of a fleet that restart all at once, that are slow, and that keep long queues for each other."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import postgres
import pytest
from fleet_engines import Engines, Fleet, Worker, portless
from gate import gate
from postgres import Postgres
from seaweed import Seaweed
from served import ServedWeb, run, served_articles
from valkey_servers import ValkeyCluster, ValkeySingle
from waiting import wait_until

from nephila.testing.web.truth import Expect

SHORT_QUEUES = """
[frontier]
spill_above = 24
spill_keep = 6
"""
"""A host has little more than its next pages in the engine."""


def web_of(hold: ExitStack, folder: Path, *, seed: int, hosts: int, pages: int, delay_s: float) -> ServedWeb:
    made = served_articles(folder / "web", seed, hosts=hosts, pages=pages, delay_s=delay_s, latency_ms=30)
    return hold.enter_context(made)


def check_all_is_stored_once(fleet: Fleet, kills: int = 0) -> None:
    stored = fleet.stored()
    wanted = {portless(url) for url in fleet.web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)}
    assert {url: count for url, count in stored.items() if count > 1} == {}
    assert set(stored) == wanted
    by_kind = fleet.web.audit().by_kind
    assert set(by_kind) <= ({"repeat"} if kills else set())


def rows_outside(fleet: Fleet) -> int:
    return int(fleet.engines.database.query("SELECT count(*) FROM spilled", f'"crawl_{fleet.crawl}"')[0][0])


def test_all_of_valkey_restarts_at_once_and_queues_lie_in_the_database(
    tmp_path: Path, object_server: Seaweed, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """N2, N3, N4, F8, F10, P5: all servers of the cluster are killed, the database, a worker; nothing is lost."""
    cluster = hold.enter_context(ValkeyCluster("--appendonly", "yes"))
    database, door = hold.enter_context(postgres.running()), hold.enter_context(gate(object_server.ports[0]))
    web = web_of(hold, tmp_path, seed=91, hosts=5, pages=500, delay_s=0.2)
    engines = Engines(cluster.names[:3], database, object_server, door)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.2, more=SHORT_QUEUES))
    fleet.seed()
    workers = [fleet.start(f"worker{number}") for number in range(2)]
    wait_until(lambda: fleet.pages > 20 and rows_outside(fleet) > 0, "nothing is kept outside")
    seen = fleet.status()["frontier"]
    assert seen["spilled"] > 0
    assert "kept in the database" in fleet.say("fleet", "status")
    for _ in range(2):
        for server in cluster.servers:
            server.stop(signal.SIGKILL)
        time.sleep(1.5)
        for server in cluster.servers:
            server.start()
        before = fleet.pages
        wait_until(lambda before=before: fleet.pages > before, "it does not go on")  # type: ignore[misc]
    database.crash()
    workers[0].kill()
    time.sleep(1)
    database.start()
    workers[0].begin()
    for worker in workers:
        worker.end(200)
        assert "Traceback" not in worker.told()
    check_all_is_stored_once(fleet, kills=1)
    left = fleet.status()["frontier"]
    assert (sum(left["queued"].values()), left["spilled"], left["chunks"], left["states"]["pending"]) == (0, 0, 0, 0)
    say(f"{seen['spilled']} URLs outside when the engine was first killed, {rows_outside(fleet)} chunks in all")


def test_a_fleet_that_has_lost_its_engine_is_rebuilt_onto_a_new_one(
    tmp_path: Path, database: Postgres, object_server: Seaweed, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """N8, N2, F10, P5, K2: from the archive in the store, by its old name; nothing that was stored is fetched again."""
    door = hold.enter_context(gate(object_server.ports[0]))
    web = web_of(hold, tmp_path, seed=93, hosts=6, pages=150, delay_s=0.4)
    lost = hold.enter_context(ValkeySingle())
    engines = Engines(lost.names, database, object_server, door)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.4))
    fleet.seed()
    first = fleet.start("first")
    wait_until(lambda: fleet.pages > 40, "nothing is fetched")
    first.process.send_signal(signal.SIGTERM)
    first.process.wait(60)
    before = fleet.stored()
    assert 40 < len(before) < 130
    fleet.say("purge", "elsewhere.test", "--reason", "they asked us")
    told = fleet.say("frontier", "rebuild", "--work", tmp_path / "work", code=1)
    assert told == ""
    lost.server.ask("FLUSHALL")
    lost.server.ask("FUNCTION", "FLUSH")
    fleet.say("fleet", "status", code=1)
    assert fleet.say("block") == "", "whoever comes by finds an empty crawl"
    told = run("seed", *web.seeds, "--config", fleet.settings, env=fleet.environ, code=2).stderr
    assert "which the engine has lost: the archive s3://" in told
    assert "frontier rebuild" in told
    elsewhere = {"AWS_EC2_METADATA_DISABLED": "true"}  # from a machine that reaches the engine alone
    run("seed", *web.seeds, "--config", fleet.settings, env=elsewhere)
    first.begin()
    assert first.process.wait(60) == 1
    assert "frontier rebuild" in first.told()
    rebuilt = json.loads(fleet.say("frontier", "rebuild", "--work", tmp_path / "work", "--json"))
    assert rebuilt["pages"] >= len(before)
    assert f"{len(web.seeds)} URLs that the crawl was given since it was lost" in rebuilt["lost"].pop()
    lost.server.ask("FLUSHALL")  # as if it had been cut off: it is begun again as it is
    assert json.loads(fleet.say("frontier", "rebuild", "--work", tmp_path / "work", "--json")) == rebuilt
    assert fleet.stored() == before, "the catalogue is there again"
    assert "elsewhere.test" in fleet.say("block"), "what was taken down stays blocked"
    fleet.start("second").end(120)
    check_all_is_stored_once(fleet)
    say(f"{len(before)} pages before, {rebuilt['queued']} URLs queued again, {len(fleet.stored())} pages in the end")


def memory_of(worker: Worker) -> int:
    """Anonymous memory of a worker, in bytes."""
    lines = Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


SMALL_BUFFERS = """
segment_bytes = "100KB"
segment_age_s = 0.5
max_bytes = "1MB"
"""


@pytest.mark.parametrize("slow", ["database", "store"])
def test_a_slow_engine_slows_the_fetching_and_fills_no_memory(
    tmp_path: Path, engines: Engines, hold: ExitStack, slow: str, say: Callable[[str], None]
) -> None:
    """N4, W2, F8: every packet to it takes long: fewer pages are fetched meanwhile, and nothing piles up."""
    database, before_database = engines.database, hold.enter_context(gate(engines.database.port))
    web = web_of(hold, tmp_path, seed=92, hosts=60, pages=9000, delay_s=0.05)
    fleet = hold.enter_context(
        Fleet(
            tmp_path / "fleet",
            engines,
            web,
            0.05,
            spool=SMALL_BUFFERS,
            database=database.url.replace(str(database.port), str(before_database.port)),
            catalogue="max_waiting = 200",
        )
    )
    fleet.seed()
    worker = fleet.start("worker", "--forever")
    wait_until(lambda: fleet.pages > 600, "nothing is fetched")
    quick, at_first = pages_a_second(fleet, 4), memory_of(worker)
    the_door = before_database if slow == "database" else engines.door
    the_door.delay_s = 2.0
    time.sleep(6)  # what was under way has come to an end
    slowed, most = pages_a_second(fleet, 8), at_first
    for _ in range(40):
        most = max(most, memory_of(worker))
        time.sleep(0.1)
    the_door.delay_s = 0.0
    wait_until(lambda: pages_a_second(fleet, 1) > quick / 3, "it does not recover")
    worker.process.send_signal(signal.SIGTERM)
    worker.process.wait(60)
    grew = f"memory {at_first / 1e6:.0f} MB, then {most / 1e6:.0f} MB"
    say(f"{quick:.0f} pages/s, with a slow {slow} {slowed:.1f}; {grew}")
    assert slowed < quick / 2
    assert most < at_first + 40e6


def pages_a_second(fleet: Fleet, seconds: float) -> float:
    before, began = fleet.pages, time.monotonic()
    time.sleep(seconds)
    return (fleet.pages - before) / (time.monotonic() - began)


def test_a_worker_ends_within_seconds_though_its_engine_does_not_answer(
    tmp_path: Path, database: Postgres, object_server: Seaweed, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """F10, N4: Ctrl-C; what it has stored lies in its spool, and the next start goes on from there."""
    valkey, door = ValkeySingle("--appendonly", "yes"), hold.enter_context(gate(object_server.ports[0]))
    hold.enter_context(valkey)
    web = web_of(hold, tmp_path, seed=93, hosts=8, pages=160, delay_s=0.2)
    engines = Engines(valkey.names, database, object_server, door)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.2))
    fleet.seed()
    worker = fleet.start("worker")
    wait_until(lambda: fleet.pages > 30, "nothing is fetched")
    os.kill(valkey.server.pid, signal.SIGSTOP)
    began = time.monotonic()
    worker.process.send_signal(signal.SIGINT)
    assert worker.process.wait(30) == 130, worker.told()
    took_s = time.monotonic() - began
    assert took_s < 12
    assert "is not waited for any more" in worker.told()
    assert "Traceback" not in worker.told()
    os.kill(valkey.server.pid, signal.SIGCONT)
    worker.begin()
    worker.end()
    check_all_is_stored_once(fleet, kills=1)
    say(f"ended {took_s:.1f} s after Ctrl-C")
