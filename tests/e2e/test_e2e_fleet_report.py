"""The report of a fleet on real engines, against what its tables hold and its workers say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_engines import Engines, Fleet, portless
from served import run, served_articles
from waiting import wait_until

DELAY_S = 0.1


@pytest.fixture
def fleet(tmp_path: Path, engines: Engines) -> Iterator[Fleet]:
    """One that has nothing to do yet."""
    with (
        served_articles(tmp_path / "web", 83, hosts=8, pages=160, delay_s=DELAY_S, latency_ms=30) as web,
        Fleet(tmp_path / "fleet", engines, web, DELAY_S) as made,
    ):
        yield made


def reported(fleet: Fleet) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fleet.say("report", "--json"))
    return found


def test_a_fleet_has_the_report_of_a_crawl(fleet: Fleet, tmp_path: Path) -> None:
    """O3, F9: before, while its workers run and after they left; in the terminal, as data, as a page."""
    fleet.seed()
    refused = run("report", "--config", fleet.settings, code=None, env=fleet.environ)
    assert refused.returncode != 0
    assert "there is no catalogue in the schema" in refused.stderr
    assert "Traceback" not in refused.stderr
    workers = [fleet.start(name, "--forever") for name in ("first", "second")]
    wait_until(lambda: fleet.pages >= 20 and len(fleet.workers()) == 2, "they do not work")
    during = reported(fleet)
    assert during["running"]
    assert {one["name"] for one in during["workers"]} == {"first", "second"}
    assert sum(one["pages"] for one in during["workers"]) >= 20
    for worker in workers:
        fleet.say("fleet", "drain", worker.name)
    for worker in workers:
        worker.end()
    after = reported(fleet)
    assert not after["running"]
    assert after["workers"] == []
    assert after["directory"] == fleet.crawl
    check_against_tables(fleet, after)
    told = fleet.say("report")
    assert f"{after['pages']:,} from {after['coverage']['domains']} domains" in " ".join(told.split())
    page = tmp_path / "report.html"
    fleet.say("report", "--html", page)
    assert f"<h1>{fleet.crawl}</h1>" in page.read_text()


def test_what_a_fleet_has_stored_is_exported_and_asked_for(fleet: Fleet, tmp_path: Path) -> None:
    """W6: from its catalogue and its store, while workers run and after they left."""
    fleet.seed()
    workers = [fleet.start(name, "--forever") for name in ("first", "second")]
    wait_until(lambda: fleet.pages >= 20 and sum(fleet.stored().values()) >= 20, "they do not work")
    during = json.loads(fleet.say("export", "--to", tmp_path / "during.jsonl", "--json"))
    assert during["exported"] >= 20
    for worker in workers:
        fleet.say("fleet", "drain", worker.name)
    for worker in workers:
        worker.end()
    fleet.say("export", "--to", tmp_path / "pages.jsonl")
    pages = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {portless(page["url"]) for page in pages} == set(fleet.stored())
    assert len(pages) == sum(fleet.stored().values())
    assert all(page["text"] for page in pages)
    asked = fleet.say("sql", "SELECT count(*) AS n FROM pages WHERE status = 200", "--json")
    assert json.loads(asked) == {"n": len(pages)}
    fleet.say("export", "--to", tmp_path / "site.wacz")


def check_against_tables(fleet: Fleet, report: dict[str, Any]) -> None:
    """All that is told is what the catalogue holds, counted another way."""

    def one(query: str) -> int:
        return int(fleet.engines.database.query(query, f'"crawl_{fleet.crawl}"')[0][0])

    stored = sum(fleet.stored().values())
    assert report["pages"] == stored >= 20
    assert report["answers"] == one("SELECT count(*) FROM captures WHERE NOT robots")
    assert report["robots"] == one("SELECT count(*) FROM captures WHERE robots")
    assert report["bytes"] == one("SELECT sum(wire_bytes)::bigint FROM captures")
    assert sum(step["pages"] for step in report["timeline"]["moments"]) == stored
    assert sum(report["errors"].values()) == one("SELECT count(*) FROM errors")
    assert report["coverage"]["domains"] == one("SELECT count(*) FROM domains WHERE total_pages > 0")
