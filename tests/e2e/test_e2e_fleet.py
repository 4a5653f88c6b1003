"""A crawl by several workers on real engines: Valkey, PostgreSQL and an S3 server, all of which may fail."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import postgres
import pytest
import redis
from fleet_engines import Engines, Fleet, Worker, portless
from gate import gate
from postgres import PASSWORD
from seaweed import SECRET, Seaweed
from served import ServedWeb, run, served_articles
from valkey_servers import ValkeyCluster, ValkeyServer
from waiting import wait_until

from nephila.testing.web import AuditReport
from nephila.testing.web.truth import Expect

LATENCY_MS = 80
ON_THE_WIRE = 8
"""Requests that a worker may have sent and not stored when it dies: it asks its part of the hosts beside each other."""
SHORT_LEASES = """
[frontier]
lease_s = 15
"""
SHORT_FETCHES = "timeout_s = 12"
"""A lease that nobody renews ends soon; it must outlast a fetch all the same."""
KEPT_BACK = ("--forever", "--set", "spool.segment_bytes=50MB", "--set", "spool.segment_age_s=600")
"""A worker that uploads nothing as long as nobody asks it to."""
SILENT_S = 5
URLS_IN_LEASE = 8

STREAM = """
[stream]
url = "redis://{}"
name = "told"
"""


def told_by(engines: Engines) -> dict[str, str]:
    """What others were told: URLs by the ids of their messages."""
    host, _, port = engines.names[0].rpartition(":")
    with redis.Redis(host, int(port)) as client:
        messages = [json.loads(entry[b"message"]) for _, entry in client.xrange("told")]
    return {message["id"]: message["url"] for message in messages}


def web_of(hold: ExitStack, folder: Path, pages: int, delay_s: float, *, seed: int, hosts: int = 24) -> ServedWeb:
    made = served_articles(folder / "web", seed, hosts=hosts, pages=pages, delay_s=delay_s, latency_ms=LATENCY_MS)
    return hold.enter_context(made)


def wanted(web: ServedWeb) -> set[str]:
    return {portless(url) for url in web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)}


def check_all_is_stored_once(fleet: Fleet, audit: AuditReport, kills: int) -> int:
    """Every page once; what was on the wire at a kill is asked for again, and nothing else is wrong; how often."""
    stored = fleet.stored()
    assert {url: count for url, count in stored.items() if count > 1} == {}
    assert set(stored) == wanted(fleet.web), fleet.status()["frontier"]
    assert set(audit.by_kind) <= {"repeat"}
    again = sum(audit.by_kind.values())
    assert again <= kills * ON_THE_WIRE
    return again


def check_nothing_is_left(fleet: Fleet, *workers: Worker) -> None:
    """Spools are empty, everybody has left, nobody has crashed, no page is pending."""
    for worker in workers:
        assert list((fleet.folder / worker.name / "spool").iterdir()) == []
        assert "Traceback" not in worker.told()
    status = fleet.status()
    assert status["workers"] == []
    assert status["frontier"]["states"]["pending"] == 0


def refused(fleet: Fleet, *arguments: str) -> str:
    """What a command says that makes no sense."""
    told = run(*arguments, "--config", fleet.settings, code=2, env=fleet.environ).stderr
    return " ".join(told.split())


def test_a_worker_joins_is_seen_and_drained(tmp_path: Path, engines: Engines, hold: ExitStack) -> None:
    """N1, N2, N3, N7, S1, W2, W3: seeds, two workers, one is sent home, the other ends the crawl; nothing is secret."""
    web = web_of(hold, tmp_path, 160, 0.7, seed=71, hosts=8)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.7))
    assert fleet.seed()["added"] == 1
    assert fleet.seed() == {"added": 0, "known": 1, "refused": {}, "examples": []}
    home, stays = fleet.start("home", "--forever"), fleet.start("stays")
    wait_until(lambda: len(fleet.workers()) == 2, "the workers are not seen")
    assert "leaves when" in fleet.say("fleet", "drain", "home")
    assert home.end()["stopped_by"] == "drained"
    assert "told to leave" in home.told()
    seen = fleet.say("fleet", "status")
    assert "stays" in seen
    assert "home" not in seen
    assert stays.end()["stopped_by"] == "done"
    check_all_is_stored_once(fleet, web.audit(), 0)
    check_nothing_is_left(fleet, home, stays)
    (shown,) = json.loads(fleet.say("pages", "--limit", "1", "--json"))["pages"]
    told = json.loads(fleet.say("why", shown["url"], "--json"))
    assert (told["state"], len(told["captures"]), told["robots"]["allowed"]) == ("completed", 1, True)
    assert json.loads(fleet.say("why", "http://never.test/", "--json", code=1))["state"] == "unknown"
    assert json.loads(fleet.say("dead", "--json"))["count"] == 0
    assert "no worker is called 'nobody'" in refused(fleet, "fleet", "drain", "nobody")
    other = ("--dir", str(tmp_path / "other"), "--set", "urls.sort_query=false")
    assert "was begun with urls.sort_query = true, and these settings say false" in refused(fleet, "worker", *other)
    assert fleet.start("late").end()["responses"] == 0, "nothing is fetched again"
    files = b"".join(path.read_bytes() for path in fleet.folder.rglob("*") if path.is_file())
    for secret in (SECRET, PASSWORD):
        assert secret.encode() not in files


def test_a_fleet_is_operated_over_http(tmp_path: Path, engines: Engines, hold: ExitStack) -> None:
    """C1, C2, R4, T7, S1: seeds, blocks and policies of the control API hold for a worker that it never speaks to."""
    web = web_of(hold, tmp_path, 80, 0.05, seed=72, hosts=8)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.05))
    api = hold.enter_context(fleet.served())
    host = urlsplit(web.seeds[0]).hostname or ""
    blocked = next(one for one in sorted({urlsplit(url).hostname or "" for url in wanted(web)}) if one != host)
    assert api("POST", "/seeds", {"urls": web.seeds})["added"] == 1
    assert api("POST", "/seeds", {"urls": web.seeds})["duplicates"] == 1
    assert api("POST", "/blocklist", {"pattern": blocked, "reason": "they asked us"})["pattern"] == blocked
    assert api("PUT", f"/policies/{host}", {"crawl_depth": 9})["crawl_depth"] == 9
    assert api("GET", "/status")["frontier_size"] >= 1
    fleet.start("worker").end()
    assert fleet.workers() == []
    stored = fleet.stored()
    assert {urlsplit(url).hostname for url in wanted(web)} - {urlsplit(url).hostname for url in stored} == {blocked}
    assert web.audit().by_kind == {}
    wait_until(lambda: api("GET", "/status")["pages"] == len(stored), "the counters are not followed")
    assert api("GET", f"/why?url={quote(web.seeds[0], safe='')}")["data"]["state"] == "completed"
    changes = (fleet.folder / "desk" / "changes.jsonl").read_text().splitlines()
    assert len(changes) >= 3, "what people change is on record"


def stored_by_now(fleet: Fleet, *group: str) -> int:
    """What a group has stored, as the status tells; nothing where its first worker has not begun."""
    found = re.search(r"([\d,]+) stored", fleet.say("fleet", "status", *group, code=None))
    return int(found[1].replace(",", "")) if found else 0


def test_a_group_asks_its_own_domains_and_nobody_else_does(tmp_path: Path, engines: Engines, hold: ExitStack) -> None:
    """N6, N7, W2: links are handed over both ways, each page is stored by its own group; a SIGTERM leaves no spool."""
    web = web_of(hold, tmp_path, 120, 0.1, seed=73, hosts=10)
    pinned = {"site1.test", "site2.test", "site3.test"}
    regions = f'regions = ["eu={",".join(sorted(pinned))}"]'
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.1, regions))
    fleet.seed()
    # Neither ends by itself: how long one has nothing to do depends on when the other hands links over.
    here, there = fleet.start("here", "--forever"), fleet.start("there", "--group", "eu", "--forever")
    everything = wanted(web)
    mine = {url for url in everything if urlsplit(url).hostname in pinned}
    wait_until(lambda: stored_by_now(fleet, "--group", "eu") == len(mine), "not all of it is fetched")
    wait_until(lambda: stored_by_now(fleet) == len(everything - mine), "not all of the rest is fetched")
    for worker in (here, there):
        worker.process.terminate()
    assert [worker.process.wait(60) for worker in (here, there)] == [130, 130]
    ours, theirs = fleet.stored(), fleet.stored("-eu")
    assert set(theirs) == mine
    assert set(ours) == everything - mine
    assert {*ours.values(), *theirs.values()} == {1}
    assert list((fleet.folder / "there" / "spool").iterdir()) == []
    assert web.audit().by_kind == {}


def test_a_fleet_begins_a_new_cycle_while_workers_run_and_while_none_does(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """F2, N6: by a command, once however often it is said; status tells it, a worker that starts goes on with it."""
    web = web_of(hold, tmp_path, 60, 0.05, seed=79, hosts=6)
    regions = 'regions = ["eu=site1.test"]'
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.05, regions))
    none = run("fleet", "cycle", "--config", fleet.settings, code=1, env=fleet.environ).stderr
    assert "there is no crawl called" in " ".join(none.split())
    fleet.seed()
    ours = {url for url in wanted(web) if urlsplit(url).hostname != "site1.test"}

    def cycle(*more: str) -> tuple[int, bool]:
        told = json.loads(fleet.say("fleet", "cycle", "--json", *more))
        return told["cycle"], told["begun"]

    fleet.start("first").end()
    web.new_cycle()
    assert [cycle(), cycle()] == [(2, True), (2, False)], "nobody works, and nothing is done yet"
    assert "what ended before is being queued" in fleet.say("fleet", "status")
    ended = fleet.start("first").end()
    assert ended["stopped_by"] == "done"
    assert ended["pages"] == len(ours)
    assert f"2: {len(ours)} pages so far" in fleet.say("fleet", "status")
    stays = fleet.start("stays", "--forever")
    wait_until(lambda: len(fleet.workers()) == 1, "the worker is not seen")
    web.new_cycle()
    assert cycle() == (3, True)
    wait_until(lambda: f"3: {len(ours)} pages so far" in fleet.say("fleet", "status"), "it is not gone on with")
    web.new_cycle()
    wait_until(lambda: cycle() == (4, True), "one that is over is not followed by another")
    wait_until(lambda: f"4: {len(ours)} pages so far" in fleet.say("fleet", "status"), "it is not gone on with")
    assert json.loads(fleet.say("fleet", "status", "--json", "--group", "eu"))["frontier"]["cycle"] == 1
    assert "no region" in refused(fleet, "fleet", "cycle", "--group", "jp")
    stays.process.terminate()
    assert stays.process.wait(60) == 130
    assert web.audit().by_kind == {}


def test_workers_are_killed_and_start_again(
    tmp_path: Path, engines: Engines, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """N3, F3, F10, P2, P5, W7: killed at random, the same directory: none lost, none twice, none hurried, all told."""
    draw, kills = random.Random(5), 6
    web = web_of(hold, tmp_path, 480, 0.3, seed=65)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.3, more=STREAM.format(engines.names[0])))
    fleet.seed()
    workers = [fleet.start(f"worker{number}") for number in range(3)]
    wait_until(lambda: fleet.pages > 0, "nothing is fetched")
    for _ in range(kills):
        time.sleep(draw.uniform(0.2, 1.5))
        draw.choice(workers).kill_and_begin()
    pages = [worker.end(120)["pages"] for worker in workers]
    again = check_all_is_stored_once(fleet, web.audit(), kills)
    check_nothing_is_left(fleet, *workers)
    told = told_by(engines)
    assert {portless(url) for url in told.values()} == wanted(web)
    say(f"{kills} kills, {pages} pages by the last lives of three workers, {again} asked for again")


def test_a_worker_that_is_lost_with_its_disk_costs_its_pages_a_second_fetch(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """N3, W2: what was pending in a spool that is gone is fetched again; should it come back, it is not uploaded.

    So is what was not settled yet: of each host the pages of a lease.
    """
    web = web_of(hold, tmp_path, 120, 0.15, seed=66, hosts=12)
    silent = f"silent_s = {SILENT_S}"
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.15, silent, SHORT_LEASES, fetch=SHORT_FETCHES))
    fleet.seed()
    lost = fleet.start("lost", *KEPT_BACK)
    folder, kept = fleet.folder / "lost", tmp_path / "kept"
    wait_until(lambda: fleet.pages >= 40, "nothing is fetched")
    lost.kill()
    pending = fleet.status()["frontier"]["states"]["pending"]
    assert pending >= 40
    shutil.copytree(folder, kept)
    shutil.rmtree(folder)
    finder = fleet.start("finder", "--max-wait", "8")

    def one_is_heard_of() -> bool:
        silences = {one.member.name: one.silent_ms for one in fleet.workers()}
        return silences["lost"] > SILENT_S * 1000 and silences.get("finder", 1000) < 1000

    wait_until(one_is_heard_of, "nobody comes")
    assert "is alive" in refused(fleet, "fleet", "forget", "finder")
    fleet.say("fleet", "forget", "lost")
    wait_until(lambda: "a worker is lost" in finder.told(), "it is not noticed")
    finder.end(120)
    audit = web.audit()
    assert set(audit.by_kind) == {"repeat"}
    assert 0 < sum(audit.by_kind.values()) <= pending + 12 * URLS_IN_LEASE
    stored = fleet.stored()
    assert set(stored.values()) == {1}
    assert set(stored) == wanted(web)
    shutil.copytree(kept, folder)
    fleet.start("lost").end()
    assert list((folder / "spool").iterdir()) == []
    assert any((folder / "given-up").iterdir())
    assert fleet.stored() == stored, "never stored twice"


def test_a_worker_that_the_store_refuses_is_not_waited_for(tmp_path: Path, engines: Engines, hold: ExitStack) -> None:
    """N3, K2, W5: it leaves the register; one that was killed before it had fetched anything is taken off by hand."""
    web = web_of(hold, tmp_path, 20, 0.15, seed=68, hosts=2)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.15, "silent_s = 2"))
    fleet.seed()
    wrong = {**fleet.environ, "AWS_SECRET_ACCESS_KEY": "wrong"}
    for _ in range(2):
        run("worker", "--config", fleet.settings, "--dir", fleet.folder / "refused", code=1, env=wrong)
        assert fleet.workers() == []
    engines.door.hold()
    ghost = fleet.start("ghost")
    wait_until(lambda: len(fleet.workers()) == 1, "it does not come")
    ghost.kill()
    engines.door.let_go()
    wait_until(lambda: fleet.workers()[0].silent_ms > 2000, "it is heard")
    assert "ghost is off the register" in fleet.say("fleet", "forget", "ghost")
    assert fleet.workers() == []
    fleet.say("retain", "--captures", "1")
    fleet.start("other").end()
    assert set(fleet.stored()) == wanted(web)


def test_a_worker_that_goes_on_after_it_was_given_up_loses_no_page(
    tmp_path: Path, engines: Engines, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """N3, N4, W2: a machine that slept; what it still settles before it learns of that is fetched again, too.

    It learns of that while it has pages left to do, and alone on the crawl it does not end before they are done.
    """
    web = web_of(hold, tmp_path, 300, 0.6, seed=67, hosts=12)
    fleet = hold.enter_context(
        Fleet(tmp_path / "fleet", engines, web, 0.6, "silent_s = 2\nlost_s = 10", SHORT_LEASES, fetch=SHORT_FETCHES)
    )
    fleet.seed()
    asleep = fleet.start("asleep")
    wait_until(lambda: fleet.pages >= 30, "nothing is fetched")
    os.kill(asleep.process.pid, signal.SIGSTOP)
    other = fleet.start("other", "--forever")
    wait_until(lambda: {one.member.name: one.silent_ms for one in fleet.workers()}["asleep"] > 2000, "it is heard")
    wait_until(lambda: len(fleet.workers()) == 2, "nobody comes")
    fleet.say("fleet", "forget", "asleep")
    wait_until(lambda: all(one.member.name == "other" for one in fleet.workers()), "it is not given up")
    fleet.say("fleet", "drain", "other")
    other.end()
    before = fleet.status()["frontier"]["states"]["completed"]
    assert before < len(wanted(web)), "nothing is left to be done"
    os.kill(asleep.process.pid, signal.SIGCONT)
    assert asleep.process.wait(60) == 1
    assert "this worker was taken for lost" in asleep.told()
    say(f"settled and lost after it woke: {fleet.status()['frontier']['states']['pending']} page(s)")
    asleep.more = ("--max-wait", "8")
    asleep.begin()
    asleep.end(120)
    stored = fleet.stored()
    assert set(stored.values()) == {1}
    assert set(stored) == wanted(web)
    check_nothing_is_left(fleet, asleep, other)


def fail_over(cluster: ValkeyCluster, draw: random.Random) -> float:
    """Kill a primary, wait until its replica has taken over, bring it back as a replica; how long nobody served."""
    struck = draw.choice([one for one in cluster.servers if one.info("replication")["role"] == "master"])
    others = [one for one in cluster.servers if one is not struck]
    before = time.monotonic()
    struck.stop(signal.SIGKILL)
    wait_until(
        lambda: sum(one.info("replication")["role"] == "master" for one in others) == 3, "no replica has taken over"
    )
    away_s = time.monotonic() - before
    struck.start()
    wait_until(lambda: all(follows(one) for one in cluster.servers), "the old primary does not follow")
    return away_s


def follows(server: ValkeyServer) -> bool:
    """Whether a server is a primary with a replica, or a replica that has all: only then may another primary die."""
    told = server.info("replication")
    if told["role"] == "master":
        return told["connected_slaves"] == "1"
    return told["master_link_status"] == "up"


@dataclass(frozen=True)
class Ordeal:
    """What a fleet is put through."""

    seed: int
    pages: int
    kills: int
    fail_overs: int
    without_store_s: float


@pytest.mark.parametrize(
    "ordeal",
    [Ordeal(1, 900, 4, 1, 5), pytest.param(Ordeal(2, 2400, 12, 2, 30), marks=pytest.mark.long)],
    ids=lambda one: f"{one.kills} kills",
)
def test_everything_fails_and_nothing_is_lost(
    tmp_path: Path, object_server: Seaweed, hold: ExitStack, ordeal: Ordeal, say: Callable[[str], None]
) -> None:
    """N1, N2, N3, N4, W2, W3, P2, P5: four workers on a cluster; kills, fail-overs, a restart, a time without S3."""
    draw, delay_s = random.Random(ordeal.seed), 0.4
    cluster = hold.enter_context(ValkeyCluster("--appendonly", "yes"))
    database, door = hold.enter_context(postgres.running()), hold.enter_context(gate(object_server.ports[0]))
    web = web_of(hold, tmp_path, ordeal.pages, delay_s, seed=80 + ordeal.seed)
    engines = Engines(cluster.names[:3], database, object_server, door)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, delay_s, "wait_replicas = 1", shards=256))
    fleet.seed()
    began = time.monotonic()
    workers = [fleet.start(f"worker{number}") for number in range(4)]
    left = ordeal.kills

    def deal(blows: int) -> None:
        nonlocal left
        left -= blows
        for _ in range(blows):
            time.sleep(draw.uniform(0.2, 1.5))
            draw.choice(workers).kill_and_begin()

    wait_until(lambda: fleet.pages > 10, "nothing is fetched")
    deal(ordeal.kills // 4)
    away = [fail_over(cluster, draw) for _ in range(ordeal.fail_overs)]
    deal(ordeal.kills // 4)
    database.crash()
    time.sleep(2)
    database.start()
    deal(ordeal.kills // 4)
    door.shut()
    time.sleep(ordeal.without_store_s)
    deal(left)
    door.open()
    ended = [worker.end(300)["stopped_by"] for worker in workers]
    again = check_all_is_stored_once(fleet, web.audit(), ordeal.kills)
    check_nothing_is_left(fleet, *workers)
    told = ", ".join(f"{one:.1f} s" for one in away)
    say(
        f"{ordeal.pages} pages, {ordeal.kills} kills, fail-overs after {told}, {again} asked for again, "
        f"{time.monotonic() - began:.0f} s"
    )
    assert set(ended) == {"done"}
