"""What a fleet's crawl was made with is for good: settings that say otherwise are refused by every command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from valkey_servers import ValkeySingle

from nephila.cli.main import run

FLEET = """
[fleet]
crawl = "{crawl}"
servers = ["redis://{server}"]
directory = "{folder}/worker"
{fleet}
[catalogue]
url = "postgresql://nobody@127.0.0.1:1/{database}"
[archive]
url = "s3://none/none"
[s3]
endpoint = "http://127.0.0.1:1"
"""


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeySingle]:
    with ValkeySingle() as server:
        yield server


def fleet(folder: Path, valkey: ValkeySingle, crawl: str, settings: str = "", database: str = "none") -> str:
    file = folder / f"{database}.toml"
    given = {"crawl": crawl, "server": valkey.server.name, "folder": folder, "fleet": settings, "database": database}
    file.write_text(FLEET.format(**given))
    return str(file)


@pytest.mark.parametrize(
    "command",
    [
        ("seed", "example.test"),
        ("worker",),
        ("status",),
        ("fleet", "status"),
        ("fleet", "cycle"),
        ("dead",),
        ("block", "example.test", "--reason", "they asked"),
        ("policy", "example.test", "--delay", "5"),
        ("traps",),
        ("report",),
        ("purge", "example.test", "--reason", "they asked"),
        ("retain",),
        ("serve", "--port", "0"),
    ],
    ids=" ".join,
)
def test_a_command_with_other_shards_is_refused(
    valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """N1: with what the crawl has, and before anything is changed."""
    crawl = f"made-{'-'.join(command[:2]).replace('.', '').replace('--', '')}"
    assert run(["seed", "one.test", "--config", fleet(tmp_path, valkey, crawl, "shards = 3")]) == 0
    before = valkey.server.ask("HGETALL", f"nephila:{{{crawl}:0}}:meta")
    assert before
    capsys.readouterr()
    for settings, words in (
        ("shards = 4", "was made with fleet.shards = 3, and the settings say 4"),
        ("", "was made with fleet.shards = 3, and the settings say 256"),
        ("shards = 3\ncompact = true", "was made with fleet.compact = false, and the settings say true"),
    ):
        assert run([*command, "--config", fleet(tmp_path, valkey, crawl, settings)]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert words in told
        assert "a crawl keeps it for good" in told
    assert valkey.server.ask("HGETALL", f"nephila:{{{crawl}:0}}:meta") == before


def test_a_worker_with_another_database_is_refused_until_the_crawl_is_told_that_it_has_moved(
    valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N3, W3: before the database is asked anything; who only looks is not; said twice it is the same."""
    here = fleet(tmp_path, valkey, "moves", "shards = 2")
    there = fleet(tmp_path, valkey, "moves", "shards = 2", "other")
    assert run(["seed", "one.test", "--config", here]) == 0
    valkey.server.ask("HSET", "nephila:{moves:0}:meta", "tokens", "1")  # something was asked for: no slip any more
    for command in (("worker",), ("seed", "two.test"), ("purge", "one.test", "--reason", "they asked"), ("retain",)):
        capsys.readouterr()
        assert run([*command, "--config", there]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "the catalogue of the crawl moves is kept at none at 127.0.0.1:1 (crawl_moves), and these" in told
        assert "nephila fleet moved" in told
    assert run(["fleet", "status", "--config", there]) == 0
    capsys.readouterr()
    assert run(["fleet", "moved", "--config", there]) == 0
    assert "is kept at other at 127.0.0.1:1 (crawl_moves) from now on (before: none at" in capsys.readouterr().out
    assert run(["fleet", "moved", "--config", there]) == 0
    assert "Nothing has changed" in capsys.readouterr().out
    assert run(["seed", "two.test", "--config", there]) == 0
    assert run(["seed", "two.test", "--config", here]) == 2


@pytest.mark.parametrize("command", [("retain",), ("purge", "one.test", "--reason", "they asked")], ids=" ".join)
def test_what_takes_out_of_a_crawl_begins_none(
    valkey: ValkeySingle, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """W5, K2, C4: under a name that was mistyped nothing would be taken out, and that would be called done."""
    assert run([*command, "--config", fleet(tmp_path, valkey, "mistyped", "shards = 2")]) == 1
    assert "there is no crawl called mistyped" in " ".join(capsys.readouterr().err.split())
    assert valkey.server.ask("KEYS", "nephila:{mistyped*") == []
