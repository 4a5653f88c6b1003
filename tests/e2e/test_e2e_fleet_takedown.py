"""Takedowns of a fleet on real engines: blocked, taken out of the bucket, proven; workers go on meanwhile (K2, W2)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fleet_engines import Engines, Fleet
from leashed import leashed
from seaweed import ask_object
from served import ServedWeb, nephila, plain_web, records, served
from warc_checks import check_archives

from nephila.config import Configured, load
from nephila.node.archiving import object_store
from nephila.node.clock import SystemClock
from nephila.node.fleet.looking import audit_of_fleet
from nephila.store import ArchivePlace
from nephila.testing.web import WebSpec

DELAY_S = 0.2
WHY = "they asked us"
LAZY = 'segment_bytes = "50MB"\nsegment_age_s = 600'
"""Files stay in the spool until something has them closed."""
POLL_S = 0.02
GIVES_UP_SOON = (
    *("--set", "frontier.retry_waits_s=0.2,0.3,0.4"),
    *("--set", "robots.retry_s=1"),
    *("--set", "politeness.slow_max_s=0.2"),
    *("--set", "politeness.heavy_s=0"),
    *("--set", "fetch.timeout_s=1"),
)
"""Pages of servers that fail."""


@dataclass
class Begun:
    """A fleet, and the web that it crawls."""

    fleet: Fleet
    web: ServedWeb
    folder: Path

    @contextmanager
    def configured(self) -> Iterator[Configured]:
        """Its settings, with what the environment must say beside them."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.fleet.environ.items():
                patch.setenv(name, value)
            yield load(file=self.fleet.settings)

    def listed(self) -> list[str]:
        """What lies in the bucket."""
        with self.configured() as configured:
            settings = configured.settings
            place = ArchivePlace.parse(settings.archive.url)

            async def ask() -> list[str]:
                store = object_store(settings, SystemClock(), uploads=1)
                try:
                    return await store.keys(place.key(""))
                finally:
                    await store.close()

            return asyncio.run(ask())

    def bucket(self) -> dict[str, bytes]:
        return {key: ask_object(self.fleet.engines.store, "GET", key)[1] for key in self.listed()}

    def rows(self, query: str) -> list[Any]:
        return self.fleet.engines.database.query(query, f'"crawl_{self.fleet.crawl}"')

    def pages(self) -> list[str]:
        """What is listed, in the order of the archive."""
        return [url for (url,) in self.rows("SELECT url FROM captures WHERE NOT robots AND status = 200 ORDER BY 1")]

    def purge(self, *targets: str, timeout: float = 120) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.fleet.say("purge", *targets, *(("--reason", WHY) if targets else ()), "--json", timeout=timeout)
        )["takedowns"]
        return found

    def check_audit(self) -> None:
        """The audit finds nothing wrong: as the command, without its start."""
        with self.configured() as configured:
            found = audit_of_fleet(configured, "", ())
        assert found.is_clean, (found.trail.breaches, found.findings[:3])

    def check_gone(self, names: Callable[[str], bool], masked: tuple[str, ...]) -> None:
        """Nothing of it is in catalogue, indexes, archives or events, and the audit finds nothing wrong."""
        assert not [url for (url,) in self.rows("SELECT url FROM captures") if names(url)]
        assert not [url for (url,) in self.rows("SELECT url FROM errors") if names(url)]
        kept = self.folder / f"bucket-{time.monotonic_ns()}"
        (kept / "warc").mkdir(parents=True)
        for key, data in self.bucket().items():
            name = key.rpartition("/")[2]
            if name.endswith(".warc.gz"):
                (kept / "warc" / name).write_bytes(data)
            elif name.endswith(".cdxj"):
                lines = [json.loads(line.split(" ", 2)[2]) for line in data.decode().splitlines()]
                assert not [line for line in lines if names(line["url"])], name
            elif "/trail/" in key:
                for text in masked:
                    assert text.encode() not in data, (key, text)
        check_archives(kept)
        assert not [
            record.rec_headers.get_header("WARC-Target-URI")
            for _, record, _ in records(kept)
            if names(record.rec_headers.get_header("WARC-Target-URI") or "")
        ]
        found = json.loads(self.fleet.say("audit", "--json", code=None))
        assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])


def begun(
    hold: ExitStack, folder: Path, engines: Engines, pages: int, *, seed: int, latency_ms: int = 30, **more: str
) -> Begun:
    spec, arguments = plain_web(seed, hosts=6, pages=pages)
    timing = ("--base-delay-ms", str(DELAY_S * 1000), "--latency-ms", str(latency_ms))
    web = hold.enter_context(served(folder / "web", spec, *arguments, *timing))
    fleet = hold.enter_context(Fleet(folder / "fleet", engines, web, DELAY_S, **more))
    fleet.seed()
    return Begun(fleet, web, folder)


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def path_of(url: str) -> str:
    return urlsplit(url).path


def other_host(pages: list[str], page: str) -> str:
    """A host that is not that of a page, and not the one that links to all."""
    hosts = [urlsplit(url).hostname or "" for url in pages]
    others = (name for name in set(hosts) if name != urlsplit(page).hostname)
    return min(others, key=lambda name: (hosts.count(name), name))


def test_a_page_and_a_host_are_taken_out_of_a_fleet_that_has_ended(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """K2, W5, C4, W2: archives, indexes, catalogue, events; receipts; others' tools read it; again it finds nothing."""
    crawl = begun(hold, tmp_path, engines, 60, seed=91)
    one, two = crawl.fleet.start("one"), crawl.fleet.start("two")
    one.end(120)
    two.end(120)
    pages = crawl.pages()
    page = max(pages, key=lambda url: len(path_of(url)))
    host = other_host(pages, page)
    before = crawl.bucket()

    def names(url: str) -> bool:
        return url == page or urlsplit(url).hostname == host

    would = json.loads(crawl.fleet.say("purge", page, host, "--dry-run", "--json"))["would"]
    assert crawl.bucket() == before, "looking changes nothing"
    (told,) = crawl.purge(page, host)
    assert told["state"] == "done"
    expected = sum(1 for url in pages if names(url))
    assert told["captures"] >= would["captures"] >= expected > 1
    crawl.check_gone(names, (page,))
    after = crawl.bucket()
    assert set(before) < set(after), "nothing is removed, and what came is told"
    for file in told["files"]:
        assert file["was"] != file["now"]
    rewritten = {key for key in before if before[key] != after[key] and key.endswith(".warc.gz")}
    assert {f"warc/{key.rpartition('/')[2]}" for key in rewritten} == {
        file["file"] for file in told["files"] if file["file"].startswith("warc/")
    }
    assert all(len(before[key]) == len(after[key]) for key in rewritten), "all other records keep their places"
    left = [url for url in pages if not names(url)]
    assert crawl.pages() == left
    audit = crawl.fleet.say("audit", "--expect", told["head"])
    assert "taken out" in audit
    assert WHY in crawl.fleet.say("why", page)
    (again,) = crawl.purge(page, host)
    assert (again["captures"], again["state"], again["id"]) == (0, "done", "000002")
    assert crawl.purge() == []
    # Without its receipts the same is tampering.
    for key in after:
        if "/trail/takedowns/" in key:
            ask_object(engines.store, "DELETE", key)
    assert "it is not" in crawl.fleet.say("audit", code=1) or "not those that were sealed" in crawl.fleet.say(
        "audit", code=1
    )


def test_what_lies_in_spools_is_taken_out_while_workers_go_on(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """K2, C1, N3: ordered over the API; a worker brings what it has and goes on; nothing of it comes afterwards."""
    crawl = begun(hold, tmp_path, engines, 300, seed=92, spool=LAZY)
    api = hold.enter_context(crawl.fleet.served())
    one, two = crawl.fleet.start("one"), crawl.fleet.start("two")
    wait_until(lambda: crawl.fleet.pages >= 40, "nothing is fetched")
    assert crawl.pages() == [], "all of it lies in spools"
    seen = crawl.web.audit().hosts
    host = sorted(seen, key=lambda name: seen[name].requests)[-2]
    filed = api("POST", "/takedowns", {"domains": [host], "reason": WHY}, code=202)
    assert (filed["state"], filed["id"]) == ("pending", "000001")
    wait_until(lambda: api("GET", "/takedowns/000001")["state"] == "done", "it is not carried out")
    done = api("GET", "/takedowns/000001")
    asked = crawl.web.audit().hosts[host].requests
    assert done["captures"] > 0

    def names(url: str) -> bool:
        return (urlsplit(url).hostname or "").endswith(host)

    crawl.check_gone(names, ())
    assert api("GET", "/changes")["changes"][0]["what"] == "takedown"
    one.end(120)
    two.end(120)
    crawl.check_gone(names, ())
    assert crawl.web.audit().hosts[host].requests == asked, "nothing more of it is fetched"
    assert len(crawl.pages()) > 100, "workers have gone on"


def test_a_host_is_taken_out_of_archives_by_key(tmp_path: Path, engines: Engines, hold: ExitStack) -> None:
    """W1, K2, W2: every answer is an object in folders; those that are rewritten have receipts, and all is audited."""
    crawl = begun(hold, tmp_path, engines, 18, seed=97, archive='layout = "key"')
    one, two = crawl.fleet.start("one"), crawl.fleet.start("two")
    one.end(120)
    two.end(120)
    archives = [key for key in crawl.listed() if key.endswith(".warc.gz")]
    assert len(archives) > len(crawl.pages())
    host = other_host(crawl.pages(), crawl.pages()[0])
    crawl.check_audit()
    (told,) = crawl.purge(host)
    assert told["captures"] > 1
    crawl.check_gone(lambda url: urlsplit(url).hostname == host, ())
    rewritten = [file["file"] for file in told["files"] if file["file"].startswith("warc/")]
    assert len(rewritten) == told["captures"]
    assert all(name.count("/") == 3 for name in rewritten)


def begin_purge(crawl: Begun, *targets: str) -> subprocess.Popen[str]:
    """The command, in a process of its own."""
    reason = ("--reason", WHY) if targets else ()
    return subprocess.Popen(
        leashed(nephila("purge", "--config", crawl.fleet.settings, *targets, *reason, "--json")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **crawl.fleet.environ},
    )


def test_killed_anywhere_it_is_carried_out_by_the_next_who_looks(
    tmp_path: Path, engines: Engines, hold: ExitStack, say: Callable[[str], None]
) -> None:
    """K2, N4: kill -9 after each object that was written, and begun again; the end is the same, and audited."""
    crawl = begun(hold, tmp_path, engines, 60, seed=93)
    crawl.fleet.start("one").end(120)
    pages = crawl.pages()
    host = urlsplit(max(pages, key=lambda url: len(path_of(url)))).hostname or ""
    known = engines.store.written
    process = begin_purge(crawl, host)
    kills, deadline = 0, time.monotonic() + 200
    while process.poll() is None:
        assert time.monotonic() < deadline
        if engines.store.written == known:
            time.sleep(POLL_S)
            continue
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
        known = engines.store.written
        crawl.check_audit()
        process = begin_purge(crawl)
    printed, told = process.communicate()
    assert process.returncode == 0, told
    done = json.loads(printed)["takedowns"]
    assert kills >= 3, kills
    say(f"killed {kills} times after something was written")
    if not done:  # the last kill came after the end
        assert crawl.purge() == []
    expected = sum(1 for url in pages if urlsplit(url).hostname == host)
    records = [json.loads(data) for key, data in crawl.bucket().items() if key.endswith("000001.done.json")]
    assert [one["state"] for one in records] == ["done"]
    assert records[0]["captures"] >= expected > 1
    crawl.check_gone(lambda url: urlsplit(url).hostname == host, ())
    assert crawl.pages() == [url for url in pages if urlsplit(url).hostname != host]


def test_a_worker_that_is_gone_with_its_spool_is_waited_for_and_brings_nothing_back(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """K2, N3: pending until it is back; or until it was given up, and then its spool is never uploaded."""
    soon = {"fleet": "silent_s = 2", "fetch": "timeout_s = 8", "more": "[frontier]\nlease_s = 9"}
    crawl = begun(hold, tmp_path, engines, 100, seed=94, latency_ms=200, spool=LAZY, **soon)
    # One at a time of hosts that take theirs: else who comes first to all of them fetches nearly everything.
    back, lost = (crawl.fleet.start(name, "--set", "fetch.concurrency=1") for name in ("back", "lost"))
    wait_until(lambda: sum(one.figures.pages >= 10 for one in crawl.fleet.workers()) == 2, "nothing is fetched")
    back.more = lost.more = ()
    seen = crawl.web.audit().hosts
    host = sorted(seen, key=lambda name: seen[name].requests)[-2]

    def names(url: str) -> bool:
        return urlsplit(url).hostname == host

    for worker in (back, lost):
        worker.kill()
    process = begin_purge(crawl, host)
    wait_until(lambda: any("takedowns/000001.json" in key for key in crawl.listed()), "it is not on record")
    line = process.stderr.readline() if process.stderr is not None else ""
    assert "waits for back (silent for 0 min), lost" in line or "waits for lost" in line, line
    assert process.poll() is None
    assert not any(".done" in key for key in crawl.listed())
    back.begin()
    crawl.fleet.say("fleet", "forget", "lost")
    printed, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    (done,) = json.loads(printed)["takedowns"]
    assert done["state"] == "done"
    lost.begin()
    back.end(120)
    lost.end(120)
    crawl.check_gone(names, ())
    assert list((crawl.fleet.folder / "lost" / "given-up").glob("*.warc.gz")), "its spool was set aside"


def test_copies_of_what_goes_lose_their_payload_and_are_fetched_in_full(
    tmp_path: Path, engines: Engines, hold: ExitStack
) -> None:
    """K2, D2, D3: a revisit names its original no more, nor does a page that is nearly the same; nothing new does."""
    shape = ("--seed", "95", "--hosts", "12", "--pages", "220", "--slow-ms", "60", "--crawl-delay", "0.1")
    web = hold.enter_context(served(tmp_path / "web", WebSpec(95, 12, 220), *shape, "--base-delay-ms", "50"))
    fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, DELAY_S / 4))
    fleet.seed()
    crawl = Begun(fleet, web, tmp_path)
    fleet.start("one", *GIVES_UP_SOON).end(120)
    copies = dict(crawl.rows("SELECT url, duplicate_of FROM captures WHERE duplicate_of <> '' AND kind = 'revisit'"))
    assert copies, "there is no page whose bytes another one had"
    copy, page = min(copies.items())
    (told,) = crawl.purge(page)
    assert told["captures"] >= 1
    emptied = [url for url, original in copies.items() if original == page]
    assert told["emptied"] == len(emptied) >= 1
    crawl.check_gone(lambda url: url == page, (page,) if path_of(page) != "/" else ())
    assert page not in {
        name for row in crawl.rows("SELECT duplicate_of, near_duplicate_of FROM captures") for name in row
    }
    kept = max(tmp_path.glob("bucket-*"))
    refers = [record.rec_headers.get_header("WARC-Refers-To-Target-URI") for _, record, _ in records(kept)]
    assert page not in refers
    assert json.loads(fleet.say("why", copy, "--json"))["state"] in {"queued", "delayed", "parked"}
