"""Pages that are made by their scripts, through the command line, with a real Chromium (J1-J4)."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from namespace import run_alone
from rendered_crawls import BAIT, PAGES
from served import records, run, served

from nephila.testing.serve import script_spec
from nephila.testing.web import AuditReport

SUPPORT = Path(__file__).parents[1] / "support"


@dataclass
class Rendered:
    """A crawl of sites that scripts make."""

    out: Path
    summary: dict[str, Any]
    audit: AuditReport


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Both crawls, in a network namespace: pages want something of an address that nobody may reach."""
    folder = tmp_path_factory.mktemp("rendering")
    chromium()  # where there is none yet it is installed, and in there nothing can be
    result = run_alone([SUPPORT / "rendered_crawls.py", folder], timeout=300)
    assert result.returncode == 0, result.stderr
    return folder, json.loads((folder / "evidence.json").read_text())


@pytest.fixture(scope="module")
def crawled(crawls: tuple[Path, dict[str, Any]]) -> Rendered:
    """Scripts on the pages' own hosts."""
    return _of(*crawls, "scripts")


@pytest.fixture(scope="module")
def bundled(crawls: tuple[Path, dict[str, Any]]) -> Rendered:
    """Scripts on other hosts."""
    return _of(*crawls, "bundles")


def _of(folder: Path, evidence: dict[str, Any], kind: str) -> Rendered:
    told = evidence[kind]
    return Rendered(folder / kind, told["summary"], AuditReport.from_json(told["audit"]))


def stored(out: Path) -> Counter[str]:
    """Pages by host."""
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    rows = connection.execute("SELECT host FROM pages WHERE status = 200").fetchall()
    connection.close()
    return Counter(host for (host,) in rows)


def test_all_pages_that_scripts_make_are_found(crawled: Rendered) -> None:
    """J1, J2: a real browser runs the scripts; a site that only bears a mark is decided within five pages."""
    assert stored(crawled.out) == {"spa-0.test": PAGES + 1, "shop-1.test": 4, "framed-2.test": 21}
    assert crawled.summary["render_gained"] == PAGES + 1 + 4
    assert PAGES + 1 + 4 < crawled.summary["rendered"] <= PAGES + 1 + 4 + 5
    assert crawled.summary["render_missed"] == {}


def test_the_servers_have_nothing_to_complain_of(crawled: Rendered) -> None:
    """J3, P5: visits of a real browser, judged on the servers' side; forbidden and inner parts were never asked for."""
    assert crawled.audit.violations == ()
    assert not [target for target in crawled.audit.asked if "/private/" in target]
    assert len([target for target in crawled.audit.asked if target.endswith("/static/app.js")]) == 2


def test_the_audit_of_the_trail_agrees(crawled: Rendered) -> None:
    """J3, K1: `nephila audit` knows visits, and finds nothing."""
    told = json.loads(run("audit", crawled.out, "--json").stdout)
    assert told["violations"] == 0
    assert told["requests"] == crawled.audit.requests


def test_raw_and_rendered_are_in_the_archive(crawled: Rendered) -> None:
    """J4, W1: what the server sent, what the scripts left, and what they asked for."""
    kinds = Counter(record.rec_type for _, record, _ in records(crawled.out))
    assert kinds["resource"] >= PAGES + 1 + 4
    found = {record.rec_headers["WARC-Target-URI"]: block for _, record, block in records(crawled.out)
             if record.rec_type in {"response", "resource"}}  # fmt: skip
    url = next(url for url in found if url.endswith("/view/1") and url.startswith("http://spa-0"))
    assert b'<div id="root"></div>' in found[url]
    assert b"on to /view/5" in found[f"urn:nephila:rendered:{url}"]


def test_exports_have_what_scripts_made_or_what_was_sent(crawled: Rendered, tmp_path: Path) -> None:
    """J4, W6: text and links are of the rendered document, HTML is what the server sent; either can be asked for."""
    run("export", crawled.out, "--to", tmp_path / "pages.jsonl")
    pages = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    page = next(one for one in pages if one["url"].endswith("/view/1") and one["url"].startswith("http://spa-0"))
    assert page["rendered"]
    assert "on to /view/5" in page["text"]
    assert any(link["url"].endswith("/view/5") for link in page["links"])
    for view, expected in (((), b'<div id="root"></div>'), (("--view", "rendered"), b"on to /view/5")):
        root = tmp_path / f"html{len(view)}"
        run("export", crawled.out, "--to", root, "--format", "html", *view)
        files = {line["url"]: line["file"] for line in map(json.loads, (root / "index.jsonl").read_text().splitlines())}
        assert expected in (root / files[page["url"]]).read_bytes()


def test_status_and_summary_tell_of_browsers(crawled: Rendered) -> None:
    """J2, C4: how many pages were shown, and what that brought."""
    told = run("status", crawled.out).stdout
    assert f"{crawled.summary['rendered']} pages shown in this run" in " ".join(told.split())


def test_scripts_and_data_of_other_hosts_make_their_pages(bundled: Rendered) -> None:
    """J3: a real browser gets a bundle that loads a second script, and data that their server shows nobody by name."""
    assert stored(bundled.out) == {"spa-0.test": PAGES + 1, "shop-2.test": 4, "closed-4.test": 1}
    assert bundled.summary["render_gained"] == PAGES + 1 + 4
    assert bundled.summary["render_resources"] == 2 + 4
    assert bundled.summary["render_missed"] == {}


def test_other_hosts_have_nothing_to_complain_of_either(bundled: Rendered) -> None:
    """J3, P1, P5: each asked under its own rules and at its own pace, for each thing once; a closed one not at all."""
    assert bundled.audit.violations == ()
    assert set(bundled.audit.asked.values()) == {1}
    assert "shut-5.test/v1/loader.js" not in bundled.audit.asked
    told = json.loads(run("audit", bundled.out, "--json").stdout)
    assert (told["violations"], told["requests"]) == (0, bundled.audit.requests)


def test_nothing_came_to_the_address_that_nobody_may_reach(crawls: tuple[Path, dict[str, Any]]) -> None:
    """H6, J3: every page wanted its data; the listener, which counts, was knocked at by the test alone."""
    _, evidence = crawls
    assert (evidence["arrived"], evidence["knocked"]) == ([], 1), BAIT


def test_without_a_browser_the_rest_is_crawled_and_the_summary_says_so(tmp_path: Path) -> None:
    """J2: an executable that does not exist is none; pages that need one are counted."""
    arguments = ("--kind", "scripts", "--pages", "3", "--base-delay-ms", "50")
    with served(tmp_path / "web", script_spec(1, 3), *arguments) as web:
        flags = ("--delay", "0.05", "--max-wait", "3", "--set", f"render.executable={tmp_path}/none")
        result = run("crawl", *web.seeds, "--out", tmp_path / "crawl", *web.flags, *flags)
        report = web.audit()
    assert stored(tmp_path / "crawl")["framed-2.test"] == 21
    assert "no browser" in result.stdout + result.stderr
    assert "setup browser" in result.stdout + result.stderr
    assert report.violations == ()
