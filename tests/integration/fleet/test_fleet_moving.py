"""A crawl that moves from its directory to a fleet's engine and back, through the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, simulate
from valkey_servers import ValkeySingle

from nephila.cli.main import run
from nephila.config import load, write_stored
from nephila.engines.valkey import Valkey
from nephila.engines.valkey_servers import servers_of
from nephila.frontier.embedded import LmdbFrontierView
from nephila.frontier.embedded.records import Totals
from nephila.frontier.moving import Row, check_stream, read_stream
from nephila.frontier.redis import RedisFrontier, importing
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.presence import Presence
from nephila.model.errors import FrontierError
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.engines import policy_of
from nephila.node.fleet.moving import import_fleet
from nephila.testing.web import SimulatedWeb, WebSpec

SOME = replace(
    PATIENT, limits=replace(PATIENT.limits, max_pages=12), scope=replace(PATIENT.scope, mode="domain"),
)  # fmt: skip
FLEET = """
[fleet]
crawl = "{crawl}"
servers = ["redis://{server}"]
shards = 5
[catalogue]
url = "postgresql://nobody@127.0.0.1:1/none"
[archive]
url = "s3://none/none"
[s3]
endpoint = "http://127.0.0.1:1"
"""


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeySingle]:
    with ValkeySingle() as server:
        yield server


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The frontier of a crawl that stopped at twelve pages."""
    folder = tmp_path_factory.mktemp("crawled")
    web = SimulatedWeb(WebSpec.plain(4, hosts=3, pages=60, page_bytes=300, links_per_page=5))
    simulate(web, folder / "site", SOME)
    write_stored(folder / "site", SOME)
    assert run(["frontier", "export", str(folder / "site"), "--to", str(folder / "frontier.gz")]) == 0
    return folder / "frontier.gz"


def fleet(folder: Path, valkey: ValkeySingle, crawl: str) -> Path:
    file = folder / "fleet.toml"
    file.write_text(FLEET.format(crawl=crawl, server=valkey.server.name))
    return file


def totals_in(out: Path) -> Totals:
    view = LmdbFrontierView.open(out / "frontier", SystemClock(), 1 << 30)
    try:
        return view.totals()
    finally:
        view.close()


def test_a_crawl_moves_to_a_fleet_and_back(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, N7, S2: with its scope, and by the server's own clock."""
    config, back = fleet(tmp_path, valkey, "there"), tmp_path / "back.gz"
    capsys.readouterr()
    assert run(["frontier", "import", str(exported), "--config", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == check_stream(exported)[1].rows
    assert run(["frontier", "export", "--config", str(config), "--to", str(back)]) == 0
    rows = check_stream(back)[1].rows
    assert rows == check_stream(exported)[1].rows
    assert rows["scope"] == 1
    assert run(["frontier", "import", str(back), "--into", str(tmp_path / "home")]) == 0
    before, after = totals_in(exported.parent / "site"), totals_in(tmp_path / "home")
    assert (after.urls, after.pages, after.queued, after.completed) == (
        before.urls,
        before.pages,
        before.queued,
        before.completed,
    )
    scopes = [CrawlDirectory(out).saved_scope() for out in (exported.parent / "site", tmp_path / "home")]
    assert scopes[0] == scopes[1] != b""


def test_a_name_that_is_taken_is_refused(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, N7: nothing is overwritten."""
    config = fleet(tmp_path, valkey, "taken")
    assert run(["frontier", "import", str(exported), "--config", str(config)]) == 0
    assert run(["frontier", "import", str(exported), "--config", str(config)]) == 1
    assert "there is a crawl called taken" in capsys.readouterr().err


def test_an_import_that_was_cut_off_cannot_be_used_and_begins_anew(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N2, F10: until the last row is there, nobody opens the crawl; what is left is removed by the next import."""
    config = fleet(tmp_path, valkey, "half")
    settings = load(file=config).settings
    given = list(read_stream(exported))

    def dying(_file: Path) -> Iterator[Row]:
        yield from given[:-3]
        raise KeyboardInterrupt

    async def look() -> int:
        frontier = await RedisFrontier.open(
            servers_of(valkey.names), "half", policy_of(settings), worker="w", clock=SystemClock(), options=Opening()
        )
        known = (await frontier.look()).urls
        await frontier.close()
        return known

    monkeypatch.setattr("nephila.node.fleet.moving.read_stream", dying)
    monkeypatch.setattr(importing, "ROWS_AT_ONCE", 5)
    with pytest.raises(KeyboardInterrupt):
        import_fleet(exported, settings, SystemClock())
    monkeypatch.undo()
    with pytest.raises(FrontierError, match="in part only"):
        asyncio.run(look())
    import_fleet(exported, settings, SystemClock())
    assert asyncio.run(look()) == check_stream(exported)[1].rows["url"]


def test_a_crawl_with_workers_is_not_exported(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, N3: whoever was heard of lately may still write."""
    config = fleet(tmp_path, valkey, "busy")
    assert run(["frontier", "import", str(exported), "--config", str(config)]) == 0

    async def live() -> None:
        client = Valkey(servers_of(valkey.names))
        await client.start()
        await Presence(client, "busy", "w1").tell()
        await client.close()

    asyncio.run(live())
    capsys.readouterr()
    assert run(["frontier", "export", "--config", str(config), "--to", str(tmp_path / "file")]) == 1
    assert "1 workers are at work" in capsys.readouterr().err
    assert not (tmp_path / "file").exists()


def test_either_a_directory_or_a_fleet_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C4: one sentence, exit 2."""
    assert run(["frontier", "export", "--to", str(tmp_path / "file")]) == 2
    assert "Either DIR or --config FILE is needed" in capsys.readouterr().err
    config = tmp_path / "fleet.toml"
    config.write_text('[fleet]\ncrawl = "none"\nservers = ["redis://127.0.0.1:1"]\n')
    assert run(["frontier", "export", "--config", str(config), "--to", str(tmp_path / "file")]) == 2
