"""Each endpoint of the API over a crawl that has ended, in process."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from click.testing import CliRunner
from control import InProcess, controlled
from simulation import Simulated

from nephila.cli.main import cli
from nephila.control.access import Role, Token, digest_of, read_tokens
from nephila.control.app import ENDPOINTS, PREFIXES
from nephila.control.bounds import Bounds
from nephila.frontier.embedded import LmdbFrontier
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import EngineAwayError, StorageError
from nephila.model.policy import Block
from nephila.node.audit import audit
from nephila.node.desk import Desk
from nephila.node.inspect import open_view
from nephila.node.logbook import Alert, Figures, Present, Process
from nephila.urls import origin_of

API = "/api/v1"


def stored(finished: Simulated) -> str:
    """Some page that was stored."""
    return next(iter(open_view(finished.out).pages(status=200, limit=1))).url


def test_status_agrees_with_the_command(api: InProcess, finished: Simulated) -> None:
    """C1: the figures of the frontier and of the catalogue, and nothing that runs."""
    told, known = api.ask("GET", f"{API}/status").json(), open_view(finished.out).status()
    assert (told["pages"], told["captures"], told["bytes"]) == (known.pages, known.captures, known.bytes)
    assert told["frontier"] == dict(known.queued)
    assert told["frontier_size"] == sum(known.queued.values()) + sum(known.waiting_for_a_time.values())
    assert (told["running"], told["crawl_rate"], told["in_flight"]) == (False, 0.0, 0)
    assert told["dead_letters"] == known.urls["dead"] > 0


def test_seeds_are_added_known_or_refused_with_a_reason(api: InProcess, finished: Simulated) -> None:
    """C1, S1, T7: each URL is told of; a blocked one is refused; the scope grows by what a seed stands for."""
    blocked = {"pattern": "bad.test", "reason": "they asked us"}
    assert api.ask("POST", f"{API}/blocklist", blocked).status == 201
    urls = ["https://new.test/a", "https://new.test/a#x", stored(finished), "http://bad.test/", "foo bar", "ftp://x.y/"]
    told = api.ask("POST", f"{API}/seeds", {"urls": urls, "priority": "immediate"}).json()
    assert (told["added"], told["duplicates"]) == (1, 2)
    assert [one["reason"] for one in told["refused"]] == ["malformed", "scheme", "blocked"]
    story = api.ask("GET", f"{API}/why?url=https://new.test/a").json()
    assert (story["data"]["state"], story["data"]["level"]) == ("queued", "immediate")


@pytest.mark.parametrize(("priority", "level"), [(100, "high"), (30, "medium"), (0, "low"), ("low", "low")])
def test_a_priority_is_a_name_or_points(api: InProcess, priority: object, level: str) -> None:
    """C1: immediate, high, medium, low, or 0 to 100 by the weights of the crawl."""
    assert api.ask("POST", f"{API}/seeds", {"urls": ["https://new.test/"], "priority": priority}).json()["added"] == 1
    assert api.ask("GET", f"{API}/why?url=https://new.test/").json()["data"]["level"] == level


def test_a_page_is_fetched_once_more_when_somebody_says_so(api: InProcess, finished: Simulated) -> None:
    """C1, R2: known URLs are queued at once, whatever was planned; unknown ones are told."""
    url = stored(finished)
    told = api.ask("POST", f"{API}/recrawl", {"urls": [url, "https://never.test/"]}).json()
    assert told == {"queued": 1, "unknown": ["https://never.test/"], "refused": []}
    story = api.ask("GET", f"{API}/why?url={quote(url)}").json()["data"]
    assert (story["state"], story["level"]) == ("queued", "immediate")
    assert story["captures"]
    assert api.ask("POST", f"{API}/recrawl", {"urls": [url], "priority": "low"}).json()["queued"] == 1


def test_two_orders_for_one_domain_at_once_are_both_carried_out(api: InProcess) -> None:
    """C1, R4: each changes a part of the policy; whichever comes second keeps what the first has changed."""
    orders = [(f"{API}/domains/two.test/pause", {}), (f"{API}/feedback", {"domain": "two.test", "quality": 2.0})]
    for _ in range(5):
        assert api.ask("DELETE", f"{API}/policies/two.test").status == 200
        with ThreadPoolExecutor(len(orders)) as clients:
            answers = list(clients.map(lambda order: api.ask("POST", *order), orders))
        assert [answer.status for answer in answers] == [200, 200]
        told = api.ask("GET", f"{API}/policies/two.test").json()
        assert (told["paused"], told["quality"]) == (True, 2.0)
        done = [one for one in api.ask("GET", f"{API}/changes?limit=10").json()["changes"] if one["state"] == "done"]
        assert done[0]["before"] == done[1]["after"]


def test_a_policy_is_set_shown_listed_and_taken_back(api: InProcess) -> None:
    """C1, R4: all fields; what a GET shows may be PUT again; contradictions and nonsense are refused."""
    wanted = {
        "max_qps": 0.5,
        "crawl_depth": 3,
        "tier": "news",
        "recrawl_interval_hours": 6,
        "user_agent": "MyBot/1.0 (+https://example.org/bot)",
        "hours": [[22, 6]],
        "quality": 2.0,
        "render": "always",
    }
    told = api.ask("PUT", f"{API}/policies/www.site1.test", wanted).json()
    assert (told["domain"], told["delay_s"], told["max_qps"]) == ("site1.test", 2.0, 0.5)
    again = {name: value for name, value in told.items() if name != "domain"}
    assert api.ask("PUT", f"{API}/policies/site1.test", again).json() == told
    assert api.ask("GET", f"{API}/policies").json() == {"policies": [told], "total": 1, "next": ""}
    for wrong in ({"max_qps": 1, "delay_s": 5}, {"hours": [[3, 3]]}, {"tier": "best"}, {"render": True}):
        answer = api.ask("PUT", f"{API}/policies/site1.test", wrong)
        assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
        assert api.ask("GET", f"{API}/policies/site1.test").json() == told
    assert api.ask("DELETE", f"{API}/policies/site1.test").json()["tier"] == "normal"
    assert api.ask("GET", f"{API}/policies").json()["total"] == 0


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-6])
def test_a_rate_that_no_delay_stands_for_is_refused(api: InProcess, rate: float) -> None:
    """C1, R4: one over five quintillionths is no number, and ended the crawl with its next claim."""
    assert api.ask("PUT", f"{API}/policies/site1.test", {"max_qps": rate}).status == 422
    assert api.ask("GET", f"{API}/policies").json()["total"] == 0


@pytest.mark.parametrize(
    "order", [{"delay_s": 86_400}, {"max_qps": 1 / 86_400}, {"delay_s": 0.0004}, {"delay_s": 5e-324}]
)
def test_the_longest_and_the_shortest_delay_may_be_sent_back_as_they_are_shown(
    api: InProcess, order: dict[str, float]
) -> None:
    """C1: what a GET shows may be PUT again."""
    told = api.ask("PUT", f"{API}/policies/site1.test", order)
    assert told.status == 200
    again = {name: value for name, value in told.json().items() if name != "domain"}
    assert api.ask("PUT", f"{API}/policies/site1.test", again).json() == told.json()


def test_a_block_that_was_kept_as_it_was_written_can_be_taken_back(api: InProcess) -> None:
    """C1, T7: one that an earlier version took, and that could never match."""
    api.run(api.desk.frontier.block(Block("http://A.test:80/x", "x", 1)))
    assert api.ask("DELETE", f"{API}/blocklist?pattern={quote('http://A.test:80/x', safe='')}").status == 200
    assert api.ask("GET", f"{API}/blocklist").json()["total"] == 0


@pytest.mark.parametrize("digits", [19, 21, 300, 5000])
def test_a_number_that_is_too_long_names_nothing(api: InProcess, digits: int) -> None:
    """C1: neither a task nor a takedown, however long it is: not found, and no bug."""
    number = "9" * digits
    assert api.ask("GET", f"{API}/takedowns/{number}").status == 404
    assert api.ask("POST", f"{API}/tasks/{number}/heartbeat", {}).status == 404
    assert api.ask("POST", f"{API}/takedowns", {"domains": ["gone.test"], "reason": "x"}).status == 202
    assert api.ask("GET", f"{API}/takedowns/{number}").status == 404


def test_pause_and_feedback_leave_the_rest_of_a_policy(api: InProcess) -> None:
    """C1, R4, F5: a pause keeps the pace that was set; quality as well."""
    api.ask("PUT", f"{API}/policies/site1.test", {"delay_s": 3})
    assert api.ask("POST", f"{API}/domains/site1.test/pause", {}).json()["paused"] is True
    assert api.ask("GET", f"{API}/domains/site1.test").json()["domain"]["paused"] is True
    assert api.ask("POST", f"{API}/feedback", {"domain": "site1.test", "quality": 3}).json()["quality"] == 3
    told = api.ask("POST", f"{API}/domains/site1.test/resume", {}).json()
    assert (told["paused"], told["delay_s"], told["quality"]) == (False, 3.0, 3.0)


def test_blocks_are_added_listed_and_taken_back(api: InProcess) -> None:
    """C1, T7: with their reason, page by page, also under the old name."""
    for name in ("a.test", "b.test", "https://c.test/private"):
        assert api.ask("POST", f"{API}/blocklist", {"pattern": name, "reason": "x"}).status == 201
    page = api.ask("GET", f"{API}/blacklist?limit=2").json()
    assert ([one["pattern"] for one in page["blocks"]], page["total"]) == (["a.test", "b.test"], 3)
    rest = api.ask("GET", f"{API}/blocklist?after={page['next']}").json()
    assert [one["pattern"] for one in rest["blocks"]] == ["https://c.test/private"]
    assert api.ask("DELETE", f"{API}/blocklist?pattern=a.test").json()["reason"] == "x"
    assert api.ask("DELETE", f"{API}/blocklist?pattern=a.test").status == 404
    assert api.ask("POST", f"{API}/blocklist", {"pattern": "a b", "reason": "x"}).status == 422


@pytest.mark.parametrize(
    ("method", "path", "body", "hint"),
    [
        ("POST", "seeds", {"seeds": ["a.test"]}, "it takes urls"),
        ("POST", "blocklist", {"pattern": "a.test"}, "it takes pattern (needed), reason (needed)"),
        ("GET", "blocklist?limt=2", None, "it takes limit, after"),
        ("POST", "domains/site1.test/pause", {"for": 5}, "it takes nothing"),
    ],
)
def test_a_name_that_is_wrong_is_answered_with_those_there_are(
    api: InProcess, method: str, path: str, body: dict[str, Any] | None, hint: str
) -> None:
    """C1: bad input gets a 4xx that says what is wrong, and what would be right."""
    answer = api.ask(method, f"{API}/{path}", body)
    assert answer.status == 422
    assert answer.json()["hint"].startswith(hint)


def test_domains_are_searched_sorted_and_paged(api: InProcess) -> None:
    """C1, C3: all of them once, in any order; one in detail, with its hosts."""
    first = api.ask("GET", f"{API}/domains?sort=pages&order=desc&limit=5").json()
    assert first["complete"]
    pages = [one["pages"] for one in first["domains"]]
    assert pages == sorted(pages, reverse=True)
    names: list[str] = []
    while len(names) < first["total"]:
        page = api.ask("GET", f"{API}/domains?sort=domain&order=asc&limit=5&offset={len(names)}").json()["domains"]
        names += [one["domain"] for one in page]
    assert names == sorted(set(names))
    found = api.ask("GET", f"{API}/domains?search=SITE1").json()["domains"]
    assert found
    assert all("site1" in one["domain"] for one in found)
    detail = api.ask("GET", f"{API}/domains/{names[0]}").json()
    assert detail["hosts"]
    assert sum(host["queued"] for host in detail["hosts"]) == detail["domain"]["queued"]
    assert api.ask("GET", f"{API}/domains/never.test").status == 404


def test_dead_letters_are_listed_page_by_page_and_put_back(api: InProcess, finished: Simulated) -> None:
    """C1, F9: some, or all; what is none is told."""
    total = api.ask("GET", f"{API}/dead-letters").json()["total"]
    found: list[str] = []
    after = ""
    while True:
        page = api.ask("GET", f"{API}/dead-letters?limit=2&after={after}").json()
        found += [one["url"] for one in page["dead_letters"]]
        after = page["next"]
        if not after:
            break
    assert len(found) == len(set(found)) == total > 2
    order = {"urls": [found[0], stored(finished)]}
    assert api.ask("POST", f"{API}/dead-letters/retry", order).json() == {"revived": 1, "not_dead": [stored(finished)]}
    assert api.ask("POST", f"{API}/dead-letters/retry", {"all": True}).json()["revived"] == total - 1
    assert api.ask("POST", f"{API}/dead-letters/retry", {}).status == 422


def test_pages_and_why_tell_of_a_url(api: InProcess, finished: Simulated) -> None:
    """C1, T8: its captures, its story; the newest pages of a host."""
    url = stored(finished)
    (page, *_) = api.ask("GET", f"{API}/pages?url={quote(url)}").json()["pages"]
    assert (page["url"], page["status"]) == (url, 200)
    host = url.split("/")[2].partition(":")[0]
    assert url in [one["url"] for one in api.ask("GET", f"{API}/pages?host={host}&limit=1000").json()["pages"]]
    story = api.ask("GET", f"{API}/why?url={quote(url)}").json()
    assert story["found"]
    assert story["data"]["captures"][0]["storage_key"].replace(":", "#") == page["storage_key"]
    assert api.ask("GET", f"{API}/why?url=").status == 422
    shouted = api.ask("GET", f"{API}/pages?host={host.upper()}:8080&limit=1000").json()["pages"]
    assert url in [one["url"] for one in shouted], "in whatever spelling"
    assert api.ask("GET", f"{API}/pages?url={quote(url)}&host={host}").status == 422


def test_events_are_streamed_and_gone_on_with(api: InProcess) -> None:
    """C1, O1: lines as they are in the files, chosen by kind; Last-Event-ID goes on after one."""
    answer = api.ask("GET", f"{API}/events?follow=false&backlog=5&kinds=fetch_ok,crawl_end")
    assert answer.headers["content-type"].startswith("text/event-stream")
    parts = [part for part in answer.body.decode().split("\n\n") if part.startswith("id:")]
    assert parts
    for part in parts:
        number, kind, data = (line.partition(": ")[2] for line in part.splitlines())
        assert json.loads(data)["event"] == kind in {"fetch_ok", "crawl_end"}
    first = parts[0].splitlines()[0].partition(": ")[2]
    going_on = api.ask("GET", f"{API}/events?kinds=crawl_end", headers={"last-event-id": first}).body.decode()
    assert going_on.count("event: crawl_end") == 1
    assert first not in going_on
    assert number
    assert api.ask("GET", f"{API}/events?kinds=nonsense").status == 422


def test_every_change_is_logged_with_who_when_and_what(api: InProcess, out: Path) -> None:
    """C1, K1: before and after; in the directory, one JSON object a line, secrets masked."""
    api.ask("PUT", f"{API}/policies/site1.test", {"delay_s": 3})
    api.ask("PUT", f"{API}/policies/site1.test", {"delay_s": 4})
    api.ask("POST", f"{API}/seeds", {"urls": ["https://new.test/?token=geheim12345"]})
    api.ask("PUT", f"{API}/policies/site1.test", {"delay_s": -4})
    changes = api.ask("GET", f"{API}/changes").json()["changes"]
    assert [one["what"] for one in changes] == ["seeds", "policy", "policy"]
    assert (changes[1]["before"]["delay_s"], changes[1]["after"]["delay_s"]) == (3.0, 4.0)
    assert changes[1]["who"] == "loopback"
    lines = (out / "changes.jsonl").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines if "of" in json.loads(line)] == ["policy", "policy", "seeds"]
    assert "geheim" not in lines[-1]


def test_workers_outside_lease_report_and_fail(api: InProcess, finished: Simulated) -> None:
    """C1, F3: one URL a host; a result is taken once, its links are admitted; a failure is tried again."""
    pages = [page.url for page in open_view(finished.out).pages(status=200, limit=1000)]
    assert api.ask("POST", f"{API}/recrawl", {"urls": pages}).json()["queued"] == len(pages)
    order = {"worker_id": "go-1", "batch_size": 50, "lease_duration_sec": 60}
    tasks = api.ask("POST", f"{API}/tasks/lease", order).json()["tasks"]
    urls = {task["url"]: task["task_id"] for task in tasks}
    home = tasks[0]["url"]
    assert home in pages
    hosts = [url.split("/")[2] for url in urls]
    assert len(hosts) == len(set(hosts))
    assert api.ask("POST", f"{API}/tasks/{urls[home]}/heartbeat", {}).json()["timeout_at"] > tasks[0]["timeout_at"]
    result = {
        "http_status": 200,
        "content_type": "text/html",
        "content_hash": "ab" * 32,
        "storage_path": "s3://bucket/page-1",
        "extracted_urls": [home, f"{origin_of(home)}/brand-new-1", "mailto:x@y.z"],
    }
    told = api.ask("POST", f"{API}/tasks/{urls[home]}/result", result).json()
    assert told == {"status": "completed", "new_urls_enqueued": 1, "duplicates_skipped": 1, "refused": 1}
    assert api.ask("POST", f"{API}/tasks/{urls[home]}/result", result).status == 409
    assert (
        api.ask("GET", f"{API}/pages?url={quote(home)}")
        .json()["pages"][0]["storage_key"]
        .startswith("s3://bucket/page-1#")
    )
    failing = tasks[1]["task_id"]
    told = api.ask("POST", f"{API}/tasks/{failing}/fail", {"error": "timeout", "worker_id": "go-1"}).json()
    assert told == {"will_retry": True, "retry_count": 1}
    last = api.ask("POST", f"{API}/tasks/{tasks[2]['task_id']}/fail", {"error": "gone", "http_status": 410}).json()
    assert last == {"will_retry": False, "retry_count": 0}
    assert api.ask("GET", f"{API}/why?url={quote(tasks[1]['url'])}").json()["data"]["state"] == "delayed"
    assert api.ask("GET", f"{API}/why?url={quote(tasks[2]['url'])}").json()["data"]["state"] == "dead_letter"
    assert api.ask("GET", f"{API}/status").json()["active_workers"] == 1


def test_links_that_a_worker_outside_found_beyond_those_that_are_taken_are_explained(out: Path) -> None:
    """C1, T8, X1: counted as refused, and `why` names the page."""
    with controlled(out) as api:
        pages = [page.url for page in open_view(out).pages(status=200, limit=1000)]
        api.ask("POST", f"{API}/recrawl", {"urls": pages})
        task = api.ask("POST", f"{API}/tasks/lease", {"worker_id": "go-1", "batch_size": 1}).json()["tasks"][0]
        found = [f"{origin_of(task['url'])}/found-outside-{number}" for number in range(502)]
        result = {
            "http_status": 200,
            "content_hash": "ab" * 32,
            "storage_path": "x",
            "extracted_urls": [*found, found[0]],
        }
        told = api.ask("POST", f"{API}/tasks/{task['task_id']}/result", result).json()
        assert (told["new_urls_enqueued"], told["refused"]) == (500, 2)
        why = api.ask("GET", f"{API}/why?url={quote(found[501])}").json()["data"]
    assert (why["state"], why["reason"], why["via"]) == ("refused", "links_per_page", task["url"])
    assert why["detail"] == "503 links were given of the page, 500 are taken"


@pytest.mark.parametrize("place", ["s3://bucket/page-1", "../catalogue.sqlite"])
def test_what_a_worker_outside_keeps_is_taken_down_by_name(out: Path, place: str) -> None:
    """C1, K2: it lies in no file of ours, whatever it is called: its row goes, and the record says where it is kept."""
    with controlled(out) as api:
        pages = [page.url for page in open_view(out).pages(status=200, limit=1000)]
        api.ask("POST", f"{API}/recrawl", {"urls": pages})
        task = api.ask("POST", f"{API}/tasks/lease", {"worker_id": "go-1", "batch_size": 1}).json()["tasks"][0]
        result = {"http_status": 200, "content_hash": "ab" * 32, "storage_path": place}
        assert api.ask("POST", f"{API}/tasks/{task['task_id']}/result", result).status == 200
        assert api.ask("POST", f"{API}/takedowns", {"urls": [task["url"]], "reason": "they asked"}).status == 202
    before = sorted(path.name for path in out.iterdir())
    carried_out = CliRunner().invoke(cli, ["purge", str(out)])
    assert carried_out.exit_code == 0, carried_out.exception
    assert f"{place}#{task['task_id']} is kept by a worker outside: delete it there" in " ".join(
        carried_out.stdout.split()
    )
    assert sorted(path.name for path in out.iterdir()) == before
    assert audit(out).is_clean
    with controlled(out) as api:
        (done,) = api.ask("GET", f"{API}/takedowns").json()["takedowns"]
        assert (done["state"], done["outside"]) == ("done", [f"{place}#{task['task_id']}"])
        assert done["captures"] >= 1
        assert api.ask("GET", f"{API}/pages?url={quote(task['url'])}").json()["pages"] == []


def test_what_was_taken_down_is_not_taken_from_a_worker_outside_any_more(out: Path) -> None:
    """C1, K2, T7: he had leased it before; he is told to throw it away, and nothing of it is listed anew."""
    result = {"http_status": 200, "content_hash": "ab" * 32, "storage_path": "s3://bucket/page-1"}
    with controlled(out) as api:
        pages = [page.url for page in open_view(out).pages(status=200, limit=1000)]
        api.ask("POST", f"{API}/recrawl", {"urls": pages})
        one, other = api.ask("POST", f"{API}/tasks/lease", {"worker_id": "go-1", "batch_size": 2}).json()["tasks"]
        assert api.ask("POST", f"{API}/takedowns", {"urls": [one["url"]], "reason": "they asked"}).status == 202
        blocked = {"pattern": other["domain"], "reason": "they asked"}
        assert api.ask("POST", f"{API}/blocklist", blocked).status == 201
    assert CliRunner().invoke(cli, ["purge", str(out)]).exit_code == 0
    with controlled(out) as api:
        for task, report, body in ((one, "result", result), (other, "fail", {"error": "timeout"})):
            for way, sent in (("heartbeat", {}), (report, body)):
                told = api.ask("POST", f"{API}/tasks/{task['task_id']}/{way}", sent)
                assert (told.status, "they asked" in told.json()["detail"]) == (409, True), way
            assert (
                "no longer, leased" in api.ask("POST", f"{API}/tasks/{task['task_id']}/{report}", body).json()["detail"]
            )
        assert api.ask("GET", f"{API}/pages?url={quote(one['url'])}").json()["pages"] == []
        api.ask("DELETE", f"{API}/blocklist?pattern={other['domain']}")
        assert api.ask("GET", f"{API}/why?url={quote(other['url'])}").json()["data"]["state"] == "queued"


def test_a_worker_outside_cannot_say_that_it_keeps_something_in_a_file_of_ours(out: Path) -> None:
    """C1, F3: a 4xx that changes nothing: a page of ours that waits for that file stays, and the lease holds."""
    segment = first_segment(out)
    with controlled(out) as api:
        pages = [page.url for page in open_view(out).pages(status=200, limit=1000)]
        api.ask("POST", f"{API}/recrawl", {"urls": pages})
        task = api.ask("POST", f"{API}/tasks/lease", {"worker_id": "go-1", "batch_size": 1}).json()["tasks"][0]
        own = [segment, f"folder/{segment}", f"./{segment}", f"a.test:8080/{segment}", "any.warc.zst"]
        own += [str(out / "warc" / "x"), f"file://{out}/elsewhere/../warc/{segment}", f"file:{out}/y"]
        for place in own:
            result = {"http_status": 200, "content_hash": "ab" * 32, "storage_path": place}
            told = api.ask("POST", f"{API}/tasks/{task['task_id']}/result", result)
            assert (told.status, "the crawl's own archive" in told.json()["detail"]) == (422, True), place
        assert api.ask("GET", f"{API}/why?url={quote(task['url'])}").json()["data"]["state"] == "in_progress"
        result = {"http_status": 200, "content_hash": "ab" * 32, "storage_path": f"s3://theirs/{segment}"}
        assert api.ask("POST", f"{API}/tasks/{task['task_id']}/result", result).status == 200


def first_segment(out: Path) -> str:
    return min(path.relative_to(out / "warc").as_posix() for path in (out / "warc").rglob("*.warc.*"))


def test_a_leased_url_is_an_allowed_one(api: InProcess, finished: Simulated) -> None:
    """C1, P1: what robots.txt forbids is settled, not lent; no robots.txt is lent at all."""
    view = open_view(finished.out)
    forbidden = [
        url
        for url in sorted(event.url for event in finished.recorder.events if event.kind == "robots_disallow")
        if view.why(url).data["state"] == "dropped"
    ]
    assert forbidden
    assert api.ask("POST", f"{API}/recrawl", {"urls": forbidden}).json()["queued"] == len(set(forbidden))
    for _ in range(3):
        tasks = api.ask("POST", f"{API}/tasks/lease", {"worker_id": "w"}).json()["tasks"]
        assert not {task["url"] for task in tasks} & {*forbidden}
        assert not any(task["url"].endswith("/robots.txt") for task in tasks)


def test_a_task_of_nobody_is_refused(api: InProcess) -> None:
    """C1: what was never lent is not found or not his; a crawl's own leases are nobody's to settle."""
    for number in ("1", "999999", "0"):
        assert api.ask("POST", f"{API}/tasks/{number}/fail", {"error": "timeout"}).status == 409
    for name in ("x", "-1", "9" * 30):
        assert api.ask("POST", f"{API}/tasks/{name}/heartbeat", {}).status == 404


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_same_answers_under_every_prefix(api: InProcess, prefix: str) -> None:
    """C1: /api/v1, /api/v1/crawler and /crawler."""
    assert api.ask("GET", f"{prefix}/status").status == 200
    assert api.ask("GET", f"{prefix}/blacklist").status == 200


def test_metrics_name_no_host_and_agree_with_the_status(api: InProcess) -> None:
    """O2: the text format; bounded labels."""
    text = api.ask("GET", "/metrics").body.decode()
    status = api.ask("GET", f"{API}/status").json()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(values["nephila_stored_pages"]) == status["pages"]
    assert int(values['nephila_frontier_urls{state="dead"}']) == status["dead_letters"]
    assert ".test" not in text
    assert len(values) < 300
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or float(line.rsplit(" ", 1)[1]) >= 0


def test_a_crawl_that_was_killed_has_nothing_under_way_and_no_alert(api: InProcess, out: Path) -> None:
    """O2, C1: it could not write down that it ended; whoever is called at night is called by one that runs."""
    alert = Alert("file_descriptors", 1, 0.95, 0.9, "19,000 of 20,000 files are open")
    process = Process(9.5, 1 << 30, 19_000, 20_000, 5, 9)
    told = Present(
        at=1, running=True, started_at=1, in_flight=98, process=process, busy_hosts={"a.test": 9}, alerts=[alert]
    )
    (out / "figures.json").write_bytes(msgspec.json.encode(Figures(told)))
    text = api.ask("GET", "/metrics").body.decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    for name in ("up", "requests_in_flight", 'alert{alert="file_descriptors"}', "busy_responses_from_one_host"):
        assert values[f"nephila_{name}"] == "0", name
    assert (values["process_open_fds"], values["process_cpu_seconds_total"]) == ("0", "9.5")
    assert api.ask("GET", f"{API}/alerts").json()["alerts"] == []
    status = api.ask("GET", f"{API}/status").json()
    assert (status["running"], status["alerts"], status["in_flight"]) == (False, 0, 0)


def test_metrics_of_a_crawl_whose_engine_is_away_are_no_bug(api: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """O2, N4: who scrapes is told that it cannot be done now, and why."""

    async def away(_: Desk) -> FrontierSnapshot:
        raise EngineAwayError("Valkey does not answer", "see that it runs")

    monkeypatch.setattr(Desk, "counters", away)
    told = api.ask("GET", "/metrics")
    assert (told.status, told.json()["detail"], told.json()["hint"]) == (
        503,
        "Valkey does not answer",
        "see that it runs",
    )


def test_health_is_told(api: InProcess) -> None:
    """C1: alive and ready."""
    assert api.ask("GET", "/healthz").json() == api.ask("GET", "/readyz").json() == {"status": "ok"}


def test_a_probe_needs_no_token_to_learn_that_it_answers(out: Path) -> None:
    """C2, N3: who looks after containers bears none; everything else stays shut, and the description says so."""
    token = "x" * 32
    with controlled(out, tokens=(Token("me", Role.READ, digest_of(token)),)) as api:
        assert api.ask("GET", "/healthz").json() == {"status": "ok"}
        for path in ("/readyz", "/metrics", f"{API}/status", f"{API}/openapi.json"):
            assert api.ask("GET", path).status == 401
        headers = {"authorization": f"Bearer {token}"}
        described = api.ask("GET", f"{API}/openapi.json", headers=headers).json()
        assert described["paths"]["/healthz"]["get"]["security"] == []
        assert "security" not in described["paths"]["/readyz"]["get"]


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (b"{", {"content-type": "application/json"}, 400),
        (b"\xff\xfe", {"content-type": "application/json"}, 400),
        (b'{"urls": ' + b"[" * 100_000, {"content-type": "application/json"}, 422),
        (b'{"urls": ["https://a.test/"]}', {"content-type": "text/plain"}, 415),
        (b'{"urls": ["https://a.test/"]}', {}, 415),
        (b"{}", {"content-type": "application/json"}, 422),
        (b'{"urls": [], "x": 1}', {"content-type": "application/json"}, 422),
        (b" " * 1_000_001, {"content-type": "application/json"}, 413),
    ],
)
def test_a_body_that_makes_no_sense_is_a_problem(
    api: InProcess, raw: bytes, headers: dict[str, str], status: int
) -> None:
    """C1, Q5: a 4xx with a problem that says what is wrong; nothing is changed."""
    answer = api.ask("POST", f"{API}/seeds", headers=headers, raw=raw)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    told = answer.json()
    assert told["status"] == status
    assert told["type"].startswith("urn:nephila:problem:")
    assert told["detail"]
    assert api.ask("GET", f"{API}/changes").json() == {"changes": []}


@pytest.mark.parametrize("target", [f"{API}/status", "/nothing", f"{API}/why", "/metrics"])
def test_no_answer_may_be_framed_sniffed_or_kept(api: InProcess, target: str) -> None:
    """C2: clickjacking, content sniffing and caches are closed, for errors too; no other site is ever permitted."""
    headers = api.ask("GET", target).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
    assert headers["cache-control"] == "no-store"
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_bug_of_ours_is_named_and_told_without_its_insides(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1, Q5: the client gets a problem, whoever runs it a sentence; the server goes on."""

    async def broken(_desk: Desk) -> None:
        raise ValueError("secret insides")

    told: list[str] = []
    with controlled(out, complain=told.append) as api:
        monkeypatch.setattr(Desk, "status", broken)
        with pytest.raises(ValueError, match="insides"):  # what the server above the application sees
            api.ask("GET", f"{API}/status")
        assert "ValueError: secret insides" in told[0]
        assert api.ask("GET", "/healthz").status == 200


def test_who_tries_tokens_is_not_heard_for_long(out: Path) -> None:
    """C1, C2: wrong ones are bounded for each address; whoever has the right one is answered all the same."""
    tokens = read_tokens(None, {"NEPHILA_API_TOKEN": "right-" + "x" * 20})
    with controlled(out, tokens=tokens, bounds=Bounds(changes_at_once=5.0, changes_per_s=0.001)) as api:
        wrong = [
            api.ask("GET", f"{API}/status", headers={"authorization": f"Bearer wrong-{number:020d}"}).status
            for number in range(8)
        ]
        right = api.ask("GET", f"{API}/status", headers={"authorization": "Bearer right-" + "x" * 20}).status
    assert wrong == [401] * 5 + [429] * 3
    assert right == 200


def test_too_many_requests_are_put_off(out: Path) -> None:
    """C1: rates are bounded for each caller; who waits is let in again."""
    with controlled(out, bounds=Bounds(reads_per_s=0.01, reads_at_once=3)) as api:
        statuses = [api.ask("GET", "/healthz").status for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert int(api.ask("GET", "/healthz").headers["retry-after"]) > 1


def test_every_endpoint_is_described_once() -> None:
    """C1: ids are unique, every one is documented."""
    names = [endpoint.name for endpoint in ENDPOINTS]
    assert len(names) == len(set(names))
    assert all(endpoint.summary and endpoint.tag for endpoint in ENDPOINTS)


def test_a_change_is_on_record_before_it_takes_effect(
    out: Path, api: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C1: what is cut off in between is told as begun, what failed as failed; each change is listed once."""
    log = out / "changes.jsonl"
    seen: list[list[str]] = []
    really = LmdbFrontier.block

    async def block(frontier: LmdbFrontier, entry: Block) -> None:
        seen.append([json.loads(line).get("state", "done") for line in log.read_text().splitlines()])
        if entry.pattern == "failing.test":
            raise StorageError("the disk is full", "make room")
        await really(frontier, entry)

    monkeypatch.setattr(LmdbFrontier, "block", block)
    assert api.ask("POST", f"{API}/blocklist", {"pattern": "good.test", "reason": "why"}).status == 201
    assert api.ask("POST", f"{API}/blocklist", {"pattern": "failing.test", "reason": "why"}).status == 503
    assert seen == [["begun"], ["begun", "done", "begun"]]
    last, first = api.ask("GET", f"{API}/changes").json()["changes"]
    assert (first["what"], first["state"], first["after"]["pattern"]) == ("block", "done", "good.test")
    assert (last["state"], last["target"], last["after"]) == ("failed", "failing.test", "the disk is full")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))  # as a kill leaves it
    last = api.ask("GET", f"{API}/changes").json()["changes"][0]
    assert (last["state"], last["after"]["pattern"]) == ("begun", "failing.test")


def test_changes_of_an_earlier_version_are_told_as_done(out: Path, api: InProcess) -> None:
    """C1: the log is read by those who come later."""
    (out / "changes.jsonl").write_text(
        '{"at":1,"who":"ann","what":"block","target":"x.test","before":null,"after":1}\n'
    )
    assert api.ask("GET", f"{API}/changes").json()["changes"][0]["state"] == "done"
