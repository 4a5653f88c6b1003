"""The control API of a fleet on real engines: Valkey, PostgreSQL and S3 answer what a crawl directory does."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fleet_engines import Engines, Fleet
from served import ServedWeb, run, served_articles
from waiting import wait_until

LATENCY_MS = 30
LEASE_S = 4
"""URLs that are leased when an order is given are still asked for: eight, a fifth of a second and an answer apart."""


def web_of(hold: ExitStack, folder: Path, pages: int, delay_s: float, *, seed: int, hosts: int) -> ServedWeb:
    made = served_articles(folder / "web", seed, hosts=hosts, pages=pages, delay_s=delay_s, latency_ms=LATENCY_MS)
    return hold.enter_context(made)


def metrics(text: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    }


def test_figures_of_all_workers_are_shown_and_no_total_falls_when_one_dies(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """C1, C3, O1, O2: status, workers, charts, metrics, events; a worker is killed, another leaves."""
    web = web_of(hold, tmp_path, 500, 0.2, seed=81, hosts=16)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.2, "silent_s = 3"))
    api = hold.enter_context(fleet.served())
    assert api("GET", "/status")["running"] is False
    assert api("GET", "/workers") == {"workers": [], "outside": 0}
    assert api("POST", "/seeds", {"urls": web.seeds})["added"] == 1
    first, second = fleet.start("first", "--forever"), fleet.start("second", "--forever")
    wait_until(lambda: api("GET", "/status")["active_workers"] == 2, "they are not seen")
    wait_until(lambda: api("GET", "/status")["pages_crawled_today"] > 30, "nothing is counted")
    told = api("GET", "/status")
    assert told["running"]
    assert told["directory"] == fleet.crawl
    assert told["latency_s"]["p50"] is not None
    assert told["crawl_rate"] > 0
    workers = api("GET", "/workers")["workers"]
    assert [one["name"] for one in workers] == ["first", "second"]
    assert all(one["memory_bytes"] > 0 for one in workers)
    assert {one["state"] for one in workers} <= {"working", "idle"}
    text = api("GET", "/metrics", raw=True)
    before = metrics(text)
    assert before["nephila_up"] == 1
    assert before['nephila_workers{kind="process"}'] == 2
    assert before["nephila_pages_total"] > 0
    assert before['nephila_worker_up{worker="first"}'] == 1
    assert before["nephila_fetch_duration_seconds_count"] > 0
    second.kill()
    seen = [before["nephila_pages_total"]]

    def fallen() -> bool:
        now = metrics(api("GET", "/metrics", raw=True))
        seen.append(now["nephila_pages_total"])
        return now['nephila_workers{kind="process"}'] == 1

    wait_until(fallen, "it is not missed")
    fleet.say("fleet", "drain", "first")
    first.end()
    wait_until(lambda: not api("GET", "/status")["running"], "they are gone")
    seen.append(metrics(api("GET", "/metrics", raw=True))["nephila_pages_total"])
    assert seen == sorted(seen)
    assert seen[-1] > 0
    assert [one["state"] for one in api("GET", "/workers")["workers"]] == ["silent"]
    check_charts(api, int(seen[-1]))
    check_events(api, {"first", "second"})


def check_charts(api: Callable[..., Any], pages: int) -> None:
    """What was counted stands in the steps, by whomever."""
    steps = api("GET", "/series")["steps"]
    assert sum(step["pages"] for step in steps) == pages == api("GET", "/status")["pages_crawled_today"]
    assert max(step["in_flight"] for step in steps) >= 1
    assert max(sum(step["frontier"].values()) for step in steps) > 0
    assert sum(step["responses"] for step in api("GET", "/series?resolution=coarse")["steps"]) >= pages
    assert api("GET", "/alerts")["rules"]


def check_events(api: Callable[..., Any], workers: set[str]) -> None:
    """They come from all workers, and can be gone on with after any."""
    stream = api("GET", "/events?backlog=1000&follow=false", raw=True)
    kinds = set(re.findall(r"^event: (\w+)$", stream, re.MULTILINE))
    assert {"crawl_start", "fetch_ok", "robots_fetched"} <= kinds
    names = {json.loads(line)["worker"] for line in re.findall(r"^data: (\{.*\})$", stream, re.MULTILINE)}
    assert names == workers
    last = re.findall(r"^id: (\S+)$", stream, re.MULTILINE)[-3]
    rest = api("GET", "/events?follow=false", raw=True, headers={"Last-Event-ID": last})
    assert len(re.findall(r"^id: ", rest, re.MULTILINE)) <= 3


def test_domains_hosts_and_stories_are_told_and_what_is_paused_rests(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """C1, C3, R4, T7, T8: lists with search and sort, a domain in detail, why; the same words as on a directory."""
    web = web_of(hold, tmp_path, 300, 0.2, seed=82, hosts=10)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.2))
    api = hold.enter_context(fleet.served())
    api("POST", "/seeds", {"urls": web.seeds})
    worker = fleet.start("worker", "--forever")
    wait_until(lambda: api("GET", "/status")["pages"] > 40, "nothing is fetched")
    wait_until(lambda: api("GET", "/domains")["total"] == 10, "not all domains are listed")
    listed = api("GET", "/domains?sort=pages&order=desc&limit=3")
    assert len(listed["domains"]) == 3
    assert listed["complete"]
    pages = [one["pages"] for one in listed["domains"]]
    assert pages[0] > 0
    assert api("GET", "/domains?search=site3.")["total"] == 1
    name = listed["domains"][0]["domain"]
    found = api("GET", f"/domains/{name}")
    assert (found["domain"]["domain"], found["hosts"][0]["host"]) == (name, name)
    assert found["hosts"][0]["fetched"] > 0
    assert "never met" in api("GET", "/domains/never.test", code=404)["detail"]
    assert api("POST", f"/domains/{name}/pause", {})["paused"]
    time.sleep(LEASE_S)
    asked = web.audit().hosts[name].requests
    assert next(one for one in api("GET", f"/domains?search={name}")["domains"] if one["domain"] == name)["paused"]
    time.sleep(2)
    assert web.audit().hosts[name].requests == asked, "it is asked although it is paused"
    assert json.loads(fleet.say("policy", name, "--json"))["policy"]["paused"]
    fleet.say("policy", name, "--resume")
    wait_until(lambda: web.audit().hosts[name].requests > asked, "it does not go on")
    url = api("GET", "/pages?limit=1")["pages"][0]["url"]
    told = api("GET", f"/why?url={quote(url, safe='')}")
    assert told["data"]["state"] in {"completed", "stored_pending"}
    assert told["data"]["captures"][0]["status"] == 200
    assert told["data"]["robots"]["allowed"]
    words = {line["label"]: line["text"] for line in told["lines"]}
    assert words["verdict"].startswith("fetched and stored")
    check_commands(fleet, name)
    worker.process.terminate()
    worker.process.wait(60)


def check_commands(fleet: Fleet, name: str) -> None:
    """Blocks, why, status and traps on the command line, as on a directory."""
    web = fleet.web
    fleet.say("block", name, "--reason", "they asked us")
    assert json.loads(fleet.say("block", "--json"))["blocks"][0]["pattern"] == name
    time.sleep(LEASE_S)
    asked = web.audit().hosts[name].requests
    time.sleep(1.5)
    assert web.audit().hosts[name].requests == asked, "it is asked although it is blocked"
    told = json.loads(fleet.say("why", f"http://{name}/never-met", "--json", code=1))
    assert told["would_be_refused"]["reason"] == "blocked"
    assert "is no longer blocked" in fleet.say("block", name, "--remove")
    status = json.loads(fleet.say("status", "--json"))
    assert (status["running"], status["directory"]) == (True, fleet.crawl)
    assert status["pages"] > 40
    assert "running" in fleet.say("status")
    assert json.loads(fleet.say("traps", "--json"))["traps"] == []
    assert json.loads(fleet.say("aliases", "--json")) == {"aliases": [], "count": 0}
    assert (
        "is no such rule" in run("aliases", "--undo", "x", "--config", fleet.settings, code=2, env=fleet.environ).stderr
    )


def test_work_is_lent_over_http_and_what_comes_back_is_listed(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """C1, F3, P1, P2, W3: leases for programs of others, beside a worker; results, failures, late ones are refused."""
    web = web_of(hold, tmp_path, 400, 0.4, seed=83, hosts=10)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.4))
    api = hold.enter_context(fleet.served())
    api("POST", "/seeds", {"urls": web.seeds})
    order = {"worker_id": "go-1", "batch_size": 5, "lease_duration_sec": 60}
    lent = api("POST", "/tasks/lease", order)
    assert (lent["tasks"], lent["waiting_for_robots"]) == ([], 1)
    assert api("GET", "/status")["active_workers"] == 1
    fleet.start("worker", "--forever")
    tasks: list[dict[str, Any]] = []

    def take() -> bool:
        tasks.extend(api("POST", "/tasks/lease", order)["tasks"])
        return len(tasks) >= 1

    wait_until(take, "nothing is lent")
    task = tasks[0]
    assert urlsplit(task["url"]).hostname == task["domain"]
    assert api("POST", f"/tasks/{task['task_id']}/heartbeat", {})["timeout_at"] > time.time() * 1000
    digest = hashlib.sha256(b"x").hexdigest()
    found = {
        "http_status": 200,
        "content_type": "text/html",
        "content_hash": digest,
        "storage_path": "s3://elsewhere/one",
        "extracted_urls": [f"http://{task['domain']}/from-outside", "mailto:x"],
        "worker_id": "go-1",
        "length": 1,
    }
    answer = api("POST", f"/tasks/{task['task_id']}/result", found)
    assert (answer["status"], answer["new_urls_enqueued"], answer["refused"]) == ("completed", 1, 1)
    late = api("POST", f"/tasks/{task['task_id']}/result", found, code=409)
    assert "no longer" in late["detail"]
    (page,) = api("GET", f"/pages?url={quote(task['url'], safe='')}")["pages"]
    assert (page["status"], page["storage_key"].split("#")[0]) == (200, "s3://elsewhere/one")
    assert api("GET", f"/why?url={quote(task['url'], safe='')}")["data"]["state"] == "completed"
    if len(tasks) > 1:
        failed = api("POST", f"/tasks/{tasks[1]['task_id']}/fail", {"error": "timeout"})
        assert failed["will_retry"]
    assert api("POST", "/tasks/999999999999/fail", {"error": "timeout"}, code=409)["status"] == 409


def test_a_block_holds_in_all_regions_and_a_policy_in_its_own(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """C1, N6, R4, T7: from whichever group it is served, and from the command line."""
    web = web_of(hold, tmp_path, 40, 0.1, seed=84, hosts=4)
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, 0.1, 'regions = ["eu=site1.test"]'))
    api = hold.enter_context(fleet.served())
    api("POST", "/blocklist", {"pattern": "site2.test", "reason": "they asked us"})
    assert "the group eu only" in api("POST", "/domains/site1.test/pause", {}, code=422)["detail"]
    fleet.say("policy", "site1.test", "--pause")
    assert json.loads(fleet.say("policy", "site1.test", "--json"))["policy"]["paused"]
    with fleet.served("--group", "eu") as there:
        assert there("GET", "/blocklist")["total"] == 1
        assert there("GET", "/policies")["policies"][0]["domain"] == "site1.test"
        assert there("DELETE", "/blocklist?pattern=site2.test")["pattern"] == "site2.test"
    assert api("GET", "/blocklist")["total"] == 0
