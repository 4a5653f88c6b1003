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
from nephila.model.task import Candidate
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.engines import policy_of
from nephila.node.fleet.moving import import_fleet
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

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


def scope_on(valkey: ValkeySingle, crawl: str) -> bytes:
    return b"".join(valkey.server.ask("LRANGE", f"nephila:{{{crawl}}}:fleet:scope", 0, -1))


async def opened(valkey: ValkeySingle, crawl: str, config: Path) -> RedisFrontier:
    """A frontier as a worker opens it; a crawl is made where there is none."""
    policy = policy_of(load(file=config).settings)
    return await RedisFrontier.open(
        servers_of(valkey.names), crawl, policy, worker="w", clock=SystemClock(), options=Opening(shards=3)
    )


def test_whoever_looks_at_a_crawl_that_is_not_there_makes_none(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N7, F9, C4: a name that is misspelled, or a crawl that the engine has lost, is told as that."""
    config = fleet(tmp_path, valkey, "nowhere")
    for command in (["fleet", "status"], ["status"], ["dead"], ["dead", "--retry-all"], ["why", "http://a.test/"]):
        assert run([*command, "--config", str(config)]) == 1
        told = capsys.readouterr().err
        assert "there is no crawl called nowhere on the engine" in told
        assert "frontier rebuild" in told
    assert valkey.server.ask("KEYS", "nephila:{nowhere*") == []
    assert run(["frontier", "import", str(exported), "--config", str(config)]) == 0
    before = valkey.server.ask("HGETALL", "nephila:{nowhere:0}:meta")
    config.write_text(config.read_text() + "\n[politeness]\ndelay_s = 77\n")
    assert run(["fleet", "status", "--config", str(config)]) == 0
    assert valkey.server.ask("HGETALL", "nephila:{nowhere:0}:meta") == before, "whoever looks changes no rule"


def test_a_crawl_that_knows_no_url_gives_way_to_an_import_unless_somebody_works_on_it(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, N8: whoever came by before (a worker, a dashboard) has made one, and that is no obstacle."""
    config = fleet(tmp_path, valkey, "empty")

    async def come_by(*, stay: bool) -> None:
        await (await opened(valkey, "empty", config)).close()
        client = Valkey(servers_of(valkey.names))
        await client.start()
        presence = Presence(client, "empty", "w")
        await (presence.tell() if stay else presence.leave())
        await client.close()

    asyncio.run(come_by(stay=True))
    assert run(["frontier", "import", str(exported), "--config", str(config)]) == 1
    assert "1 workers are at work on the crawl empty" in capsys.readouterr().err
    asyncio.run(come_by(stay=False))
    assert run(["frontier", "import", str(exported), "--config", str(config)]) == 0
    back = tmp_path / "back.gz"
    assert run(["frontier", "export", "--config", str(config), "--to", str(back)]) == 0
    assert check_stream(back)[1].rows == check_stream(exported)[1].rows


def test_seeds_that_nobody_has_asked_for_give_way_and_what_was_asked_for_does_not(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N8, N2: they came after the engine was lost; the import says how many it drops, and drops nothing else."""
    config = fleet(tmp_path, valkey, "sown")
    load_it = ["frontier", "import", str(exported), "--config", str(config)]
    assert run(["seed", "one.test", "two.test", "--config", str(config)]) == 0
    capsys.readouterr()
    assert run(load_it) == 0
    assert "2 URLs that it was given before, and had not asked for, are dropped" in capsys.readouterr().out
    back = tmp_path / "back.gz"
    assert run(["frontier", "export", "--config", str(config), "--to", str(back)]) == 0
    assert check_stream(back)[1].rows == check_stream(exported)[1].rows
    assert valkey.server.ask("KEYS", "nephila:{sown}:fleet:twins") == [], "nor is tried over http what was dropped"

    async def claim() -> None:
        frontier = await opened(valkey, "asked", config)
        address = Identifier(frontier.secret, NormalRules(), UrlLimits()).identify("https://one.test/")
        assert isinstance(address, Address)
        await frontier.admit([Candidate(address, 0)])
        assert len(await frontier.claim(1, 60)) == 1
        await frontier.close()

    config = fleet(tmp_path, valkey, "asked")
    asyncio.run(claim())
    assert run(load_it) == 1
    assert "there is a crawl called asked on the engine already" in capsys.readouterr().err


def test_the_scope_is_that_of_the_import_that_came_to_its_end(
    exported: Path, valkey: ValkeySingle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N2, S2: one that is refused changes no scope, and what one that was cut off has left of it does not count."""
    config = fleet(tmp_path, valkey, "scoped")
    settings = load(file=config).settings

    def dying(_file: Path) -> Iterator[bytes]:
        yield b"a part of it\n"
        raise KeyboardInterrupt

    monkeypatch.setattr("nephila.node.fleet.moving._scope_in", dying)
    with pytest.raises(KeyboardInterrupt):
        import_fleet(exported, settings, SystemClock())
    monkeypatch.undo()
    import_fleet(exported, settings, SystemClock())
    scope = CrawlDirectory(exported.parent / "site").saved_scope()
    assert scope_on(valkey, "scoped") == scope
    valkey.server.ask("DEL", "nephila:{scoped}:fleet:scope")  # as that of a crawl whose scope is everything
    with pytest.raises(FrontierError, match="there is a crawl called scoped"):
        import_fleet(exported, settings, SystemClock())
    assert scope_on(valkey, "scoped") == b""


def test_a_worker_whose_engine_was_emptied_is_told_what_to_do(tmp_path: Path) -> None:
    """N8: not in the words of a function."""
    with ValkeySingle() as emptied:
        config = fleet(tmp_path, emptied, "lost")

        async def work() -> None:
            frontier = await opened(emptied, "lost", config)
            try:
                emptied.server.ask("FLUSHALL")
                with pytest.raises(FrontierError, match="the engine has lost the crawl lost") as told:
                    await frontier.claim(1, 60)
                assert "frontier rebuild" in told.value.hint
            finally:
                await frontier.close()

        asyncio.run(work())
