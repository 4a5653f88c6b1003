"""Takedowns by command and over the control API, on a crawl that has ended."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from control import controlled
from simulation import PATIENT, simulate

from nephila.cli.main import cli, run
from nephila.config import write_stored
from nephila.model.errors import UsageError
from nephila.node.audit import audit
from nephila.node.directory import CrawlDirectory
from nephila.node.inspect import open_view
from nephila.node.takedown import Order, TakedownFolder, TakedownState, refuse_objects
from nephila.testing.web import SimulatedWeb, WebSpec

API = "/api/v1"
SETTINGS = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=60_000))
Invoke = Callable[..., Result]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ended") / "crawl"
    simulate(SimulatedWeb(WebSpec(5, 8, 60)), out, SETTINGS)
    write_stored(out, SETTINGS)
    return out


@pytest.fixture
def out(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "crawl", ignore=shutil.ignore_patterns("lock.mdb"))
    return tmp_path / "crawl"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def stored(out: Path) -> str:
    return next(iter(open_view(out).pages(status=200, limit=1))).url


def captures(out: Path, url: str) -> int:
    connection = sqlite3.connect(out / "catalogue.sqlite")
    try:
        return int(connection.execute("SELECT count(*) FROM captures WHERE url = ?", (url,)).fetchone()[0])
    finally:
        connection.close()


def test_a_dry_run_tells_and_changes_nothing(out: Path) -> None:
    """K2, C4: what would be taken out, from the catalogue."""
    url = stored(out)
    before = {path: path.read_bytes() for path in (out / "warc").iterdir()}
    result = invoke("purge", out, url, "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["would"] == {"captures": captures(out, url), "pages": 1, "files": told["would"]["files"], "emptied": 0}
    assert {path: path.read_bytes() for path in (out / "warc").iterdir()} == before
    assert not (out / "takedowns").exists()
    assert invoke("block", out, "--json").stdout.count("reason") == 0


def test_the_command_takes_down_and_prints_the_proof(out: Path) -> None:
    """K2, W5, C4: blocked, taken out, proven; done again it finds nothing more; `why` tells."""
    url = stored(out)
    kept = captures(out, url)
    result = invoke("purge", out, url, "--reason", "they asked us", "--json")
    assert result.exit_code == 0, result.output
    (told,) = json.loads(result.stdout)["takedowns"]
    assert (told["state"], told["captures"], told["urls"]) == ("done", kept, [url])
    assert [page.url for page in open_view(out).pages(limit=1000) if page.url == url] == []
    found = audit(out, expect=(told["head"],))
    assert found.is_clean, (found.findings[:2], found.trail.breaches[:2])
    assert not found.trail.missing
    said = invoke("why", out, url).stdout
    assert "they asked us" in said
    again = json.loads(invoke("purge", out, url, "--reason", "once more", "--json").stdout)["takedowns"][0]
    assert (again["captures"], again["state"]) == (0, "done")
    assert "No takedown waits" in invoke("purge", out).output
    text = invoke("purge", out, "nobody.test", "--reason", "in plain words").stdout
    assert "0 captures" in text
    assert "proof" in text


def test_a_url_may_be_long(out: Path) -> None:
    """K2, T7: longer than the keys of a store may be; blocked, listed, and taken back again."""
    url = f"http://site1.test/?q={'x' * 1500}"
    assert invoke("purge", out, url, "--reason", "they asked us", "--json").exit_code == 0
    assert url in invoke("block", out, "--json").stdout
    assert invoke("block", out, f"{url}$", "--remove").exit_code == 0
    assert url not in invoke("block", out, "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("http://site1.test/",), "needs a reason"),
        (("--reason", "x"), "is missing"),
        (("--dry-run",), "is missing"),
        (("ftp://x/", "--reason", "x"), "is no URL"),
        (("not a domain", "--reason", "x"), "is neither a domain nor a URL"),
        (("http://site1.test/", "--reason", "  "), "needs a reason"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(
    out: Path, arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """C4: one sentence, exit code 2, and no record."""
    assert run(["purge", str(out), *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not (out / "takedowns").exists()


def test_an_archive_in_a_store_is_refused() -> None:
    """K2, W2: its objects are never overwritten, and saying so is better than half a takedown."""
    elsewhere = replace(SETTINGS, archive=replace(SETTINGS.archive, url="s3://bucket/prefix"))
    with pytest.raises(UsageError, match="never overwrites"):
        refuse_objects(elsewhere)


def test_over_the_api_it_is_blocked_at_once_and_carried_out_by_the_command(out: Path) -> None:
    """C1, K2: beside no crawl nobody holds the directory; the record waits for whoever does."""
    url = stored(out)
    with controlled(out) as api:
        assert api.ask("POST", f"{API}/takedowns", {"urls": [], "domains": [], "reason": "x"}).status == 422
        assert api.ask("POST", f"{API}/takedowns", {"domains": ["http://a/"], "reason": "x"}).status == 422
        answer = api.ask("POST", f"{API}/takedowns", {"urls": [url], "domains": ["site2.test"], "reason": "they asked"})
        assert answer.status == 202
        told = answer.json()
        assert (told["state"], told["urls"], told["domains"]) == ("pending", [url], ["site2.test"])
        patterns = {one["pattern"] for one in api.ask("GET", f"{API}/blocklist").json()["blocks"]}
        assert patterns == {f"{url}$", "site2.test"}
        refused = api.ask("POST", f"{API}/seeds", {"urls": [url, f"{url}?utm_source=x", f"{url}x"]}).json()["refused"]
        assert [one["url"] for one in refused] == [url, f"{url}?utm_source=x"], "however it is spelled, and no other"
        change = api.ask("GET", f"{API}/changes").json()["changes"]
        assert [one["what"] for one in change if one["what"] == "takedown"] == ["takedown"]
        assert api.ask("GET", f"{API}/takedowns/nothing").status == 404
    result = invoke("purge", out, "--json")
    assert json.loads(result.stdout)["takedowns"][0]["id"] == told["id"]
    with controlled(out) as api:
        done = api.ask("GET", f"{API}/takedowns/{told['id']}").json()
        assert done["state"] == "done"
        assert done["captures"] > 1
        assert done["files"]
        listed = api.ask("GET", f"{API}/takedowns?limit=1").json()
        assert (listed["takedowns"], listed["total"], listed["next"]) == ([done], 1, "")


def test_records_have_numbers_of_their_own(tmp_path: Path) -> None:
    """K2: filed at once by several, each has one; what is not finished is found again."""
    folder, other = TakedownFolder(tmp_path / "takedowns"), TakedownFolder(tmp_path / "takedowns")
    order = Order((), ("a.test",), "why", "me")
    assert [folder.add(order, 1).id, other.add(order, 2).id, folder.add(order, 3).id] == ["000001", "000002", "000003"]
    assert [one.id for one in folder.pending()] == ["000001", "000002", "000003"]
    first = folder.get("1")
    assert first is not None
    assert first.state is TakedownState.PENDING
    assert [one.id for one in folder.newest(2, before="3")] == ["000002", "000001"]
    assert folder.get("../x") is None


def test_a_crawl_directory_lists_its_takedowns_among_its_own(tmp_path: Path) -> None:
    """F10: deleting a crawl that came to nothing takes its takedowns with it."""
    assert CrawlDirectory(tmp_path).takedowns == tmp_path / "takedowns"
