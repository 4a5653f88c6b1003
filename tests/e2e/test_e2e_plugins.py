"""Plugins as a user installs them: a package with entry points, switched on by a flag or a file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from served import QUICK, ServedWeb, crawl_json, plain_web, records, run, served
from webs import standard_served

ROOT = Path(__file__).parents[2]
PAGES = 40


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, built and installed into a directory of its own, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "examples" / "plugin-package", folder / "source")
    (folder / "source" / "src" / "nephila_example_plugins" / "bad.py").write_text(BAD)
    project = folder / "source" / "pyproject.toml"
    entries = '[project.entry-points."nephila.plugins"]\n'
    project.write_text(project.read_text().replace(entries, entries + BAD_ENTRIES))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    command += ["--disable-pip-version-check", "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return folder / "site"


BAD = """
import time
class Hangs:
    def filter_links(self, page, links):
        time.sleep(600)
class Raises:
    quick = True
    def hear_events(self, events):
        raise RuntimeError("no ears")
def breaks():
    raise OSError("no licence")
def leaves():
    raise SystemExit("no licence, either")
class Shy:
    @property
    def extract(self):
        raise RuntimeError("not ready")
"""
BAD_ENTRIES = "".join(
    f'{name.lower()} = "nephila_example_plugins.bad:{name}"\n'
    for name in ("Hangs", "Raises", "breaks", "Missing", "leaves", "Shy")
)


@pytest.fixture
def web(tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedWeb]:
    """A web of articles, and an environment in which the package is found."""
    monkeypatch.setenv("PYTHONPATH", str(installed))
    spec, arguments = plain_web(13, hosts=4, pages=PAGES)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "20") as one:
        yield one
        assert not one.audit().violations


def told_in(out: Path) -> list[dict[str, Any]]:
    """The events of a crawl, each as the schema has it."""
    validator = jsonschema_rs.validator_for(json.loads((ROOT / "docs" / "events.schema.json").read_text()))
    lines = [line for file in (out / "events").glob("*.jsonl") for line in file.read_text().splitlines()]
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert [event for event in events if not validator.is_valid(event)] == []
    return events


FAST = (*QUICK, "--delay", "0.02", "--max-wait", "1")


def test_an_installed_plugin_is_switched_on_by_its_name(web: ServedWeb, tmp_path: Path) -> None:
    """E1, K4: --plugin finds the entry point; options come by flags; what a hook adds is on the wire and told."""
    out = tmp_path / "crawl"
    flags = ("--plugin", "favourites", "--plugin", "purpose")
    flags += ("--plugin-option", "purpose.text=a test", "--plugin-option", 'favourites.words=["river"]')
    summary = crawl_json(web, out, *FAST, *flags)
    assert summary["pages"] == PAGES
    assert summary["plugins"] == {}
    sent = [block for _, record, block in records(out) if record.rec_type == "request"]
    pages = [block for block in sent if not block.startswith((b"GET /robots.txt", b"GET /sitemap.xml"))]
    assert len(pages) == PAGES
    assert all(b"\r\nX-Purpose: a test\r\n" in block for block in pages)
    assert not any(b"X-Purpose" in block for block in sent if b"GET /robots.txt" in block)
    status = json.loads(run("status", out, "--json").stdout)
    assert status["plugins"]["favourites"]["failures"] == 0
    assert status["plugins"]["purpose"]["calls"] >= PAGES


def test_options_stand_in_a_table_of_the_file_and_are_remembered(web: ServedWeb, tmp_path: Path) -> None:
    """E1: [plugins.NAME]; going on needs no flag; a veto is told by `why`."""
    out, file = tmp_path / "crawl", tmp_path / "crawl.toml"
    file.write_text('[plugins]\nenabled = ["purpose"]\n[plugins.purpose]\ntext = "t"\nleave = ["-7", "-9"]\n')
    summary = crawl_json(web, out, *FAST, "--config", str(file))
    left = [url for url in web.web.truth("Nephila").urls() if "-7" in url or "-9" in url]
    assert left
    assert summary["pages"] == PAGES - len(left)
    assert summary["refused"]["plugin"] == len(left)
    told = run("why", out, left[0]).stdout
    assert "a plugin keeps it out (purpose: it is left alone)" in " ".join(told.split())
    stored = run("config", "show", out, "--changed").stdout
    assert 'options = ["purpose.text=\\"t\\"", ' in stored
    again = json.loads(run("crawl", "--out", out, "--json", *web.flags, *FAST).stdout)
    assert again["pages"] == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_plugins_that_fail_cost_the_crawl_nothing_but_their_answers(
    web: ServedWeb, tmp_path: Path, processes: str
) -> None:
    """E1: one hangs, one raises; every page is fetched all the same, and both are named in summary, status, events."""
    out = tmp_path / "crawl"
    flags = (
        "--plugin",
        "hangs",
        "--plugin",
        "raises",
        "--set",
        "plugins.deadline_s=0.2",
        "--set",
        "plugins.failures=2",
    )
    ended = run("crawl", *web.seeds, "--out", out, "--json", *web.flags, *FAST, *flags, "--processes", processes)
    summary = json.loads(ended.stdout)
    assert summary["pages"] == PAGES
    assert set(summary["plugins"]) == {"hangs", "raises"}
    status = json.loads(run("status", out, "--json").stdout)["plugins"]
    assert status["hangs"]["off"] >= 1
    assert status["hangs"]["overruns"] >= 2
    assert status["raises"]["lost"] > 0
    shown = run("status", out).stdout
    assert "switched off" in shown
    events = told_in(out)
    assert {event["reason"] for event in events if event["event"] == "plugin_off"} == {"hangs", "raises"}
    assert "the plugin hangs is switched off" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--plugin", "favorites"], "there is no plugin favorites"),
        (["--plugin", "breaks"], "the plugin breaks cannot be made: OSError: no licence"),
        (["--plugin", "leaves"], "the plugin leaves cannot be made: SystemExit: no licence, either"),
        (["--plugin", "shy"], "the plugin Shy raises when its extract is looked at: RuntimeError: not ready"),
        (["--plugin", "missing"], "the plugin missing cannot be loaded: AttributeError"),
        (
            ["--plugin", "purpose", "--plugin-option", "purpose.colour=red"],
            "the plugin purpose cannot be made: TypeError",
        ),
        (["--plugin-option", "purpose.text=x"], "options for the plugin purpose, which is not switched on"),
        (["--plugin", "purpose", "--plugin-option", "text=x"], "'text=x' is no option of a plugin"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, installed: Path, arguments: list[str], sentence: str
) -> None:
    """E1: before anything is begun, with what to do; nothing is left behind."""
    out = tmp_path / "crawl"
    ended = run("crawl", "http://a.test/", "--out", out, *arguments, code=2, env={"PYTHONPATH": str(installed)})
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not out.exists()


def test_pdfs_are_read_in_a_process_of_their_own(tmp_path: Path) -> None:
    """X4, E1: over real sockets, with the processes that a user has: pages behind PDFs are found."""
    out = tmp_path / "crawl"
    arguments = ("--seed", "3", "--slow-ms", "60", "--crawl-delay", "0.1", "--base-delay-ms", "20")
    spec, _ = standard_served(3)
    with served(tmp_path / "web", spec, *arguments) as web:
        # Many hosts share an address there: ten requests a second at it would take a minute, and prove nothing here.
        turns = ("--set", "politeness.address_rate=500", "--set", "politeness.address_concurrency=32")
        summary = crawl_json(web, out, *FAST, *turns, "--parse-pdf-links")
        assert not web.audit().violations
    assert summary["plugins"] == {}
    events = told_in(out)
    told = [event for event in events if event["event"] == "pdf_links_extracted"]
    assert told
    assert all(event["annotations"] + event["in_text"] == event["links"] >= 2 for event in told)
    behind = [event["url"] for event in events if event["event"] == "fetch_ok" and "/shadow/" in event["url"]]
    assert len(behind) >= len(told) // 2
