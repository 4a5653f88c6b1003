"""Frontiers taken out of crawl directories and put into others, through the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from simulation import PATIENT, simulate

from nephila.cli.main import run
from nephila.config import read_stored, write_stored
from nephila.frontier.embedded import LmdbFrontierView, importing
from nephila.frontier.embedded.records import Totals
from nephila.frontier.moving import (
    CaptureRow,
    MarkRow,
    OrphanRow,
    PolicyRow,
    RobotsRow,
    Row,
    UrlRow,
    UrlState,
    check_stream,
    read_stream,
    write_stream,
)
from nephila.model.errors import FrontierError
from nephila.model.policy import DomainPolicy
from nephila.model.settings import Settings
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.moving import import_directory
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.urls import host_of

WEB = WebSpec.plain(4, hosts=3, pages=30, page_bytes=300, links_per_page=5)
SOME = replace(
    PATIENT,
    limits=replace(PATIENT.limits, max_pages=4),
    scope=replace(PATIENT.scope, mode="domain"),
)

KEPT = replace(SOME, fetch=replace(SOME.fetch, allow_addresses=()))
"""What the directory says of it; the simulated web is at addresses that are not public."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that stopped at four pages."""
    out = tmp_path_factory.mktemp("crawled") / "site"
    simulate(SimulatedWeb(WEB), out, SOME)
    write_stored(out, KEPT)
    return out


@pytest.fixture
def exported(crawled: Path, tmp_path: Path) -> Path:
    file = tmp_path / "frontier.gz"
    assert run(["frontier", "export", str(crawled), "--to", str(file)]) == 0
    return file


def test_a_frontier_moves_into_a_new_directory_with_what_was_asked_for(
    crawled: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, S2: scope and settings come along, and the same URLs are known."""
    capsys.readouterr()
    out = tmp_path / "other"
    assert run(["frontier", "import", str(exported), "--into", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"]["url"] > 4
    assert CrawlDirectory(out).saved_scope() == CrawlDirectory(crawled).saved_scope() != b""
    assert read_stored(out) == read_stored(crawled)
    totals = [_totals(path) for path in (crawled, out)]
    assert totals[0].urls == totals[1].urls == told["rows"]["url"]
    assert (totals[0].pages, totals[0].queued) == (totals[1].pages, totals[1].queued)


def test_one_that_was_imported_begins_without_seeds(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, C4: commands that find nothing stored yet say how to begin, as this program was called."""
    monkeypatch.setenv("NEPHILA_COMMAND", "./nephila")
    out = tmp_path / "the other"
    assert run(["frontier", "import", str(exported), "--into", str(out)]) == 0
    for order in (["status", str(out)], ["sql", str(out), "SELECT 1"], ["export", str(out), "--to", "-"]):
        assert run(order) == 1
        assert f"start it: ./nephila crawl --out '{out}'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ann", "ann@corp.test"])
def test_a_password_stays_where_it_is(crawled: Path, tmp_path: Path, name: str) -> None:
    """N2, K4: the file is handed on; the proxy is not forgotten, so that nobody is asked without it."""
    site, file = tmp_path / "site", tmp_path / "frontier.gz"
    shutil.copytree(crawled, site)
    write_stored(site, replace(SOME, fetch=replace(SOME.fetch, proxy=f"http://{name}:a@secret@127.0.0.1:8080")))
    assert run(["frontier", "export", str(site), "--to", str(file)]) == 0
    config = check_stream(file)[0].config
    assert "secret" not in config
    assert f'proxy = "http://{name}@127.0.0.1:8080"' in config


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        (replace(KEPT, fetch=replace(KEPT.fetch, allow_addresses=("10.0.0.0/8",))), "fetch.allow_addresses"),
        (replace(KEPT, fetch=replace(KEPT.fetch, proxy="http://127.0.0.1:8080")), "fetch.proxy"),
        (replace(KEPT, render=replace(KEPT.render, executable="./browser")), "render.executable"),
        (replace(KEPT, stream=replace(KEPT.stream, url="nats://elsewhere.test")), "stream.url"),
        (replace(KEPT, robots=replace(KEPT.robots, obey=False)), "robots.obey"),
    ],
)
def test_what_a_stranger_must_not_decide_is_taken_over_only_where_he_is_trusted(
    crawled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: Settings, key: str
) -> None:
    """N2, H6: a file with settings of its own would have this machine ask whom it likes, or start what it likes."""
    site, file, out = tmp_path / "site", tmp_path / "frontier.gz", tmp_path / "target"
    shutil.copytree(crawled, site)
    write_stored(site, setting)
    assert run(["frontier", "export", str(site), "--to", str(file)]) == 0
    assert run(["frontier", "import", str(file), "--into", str(out)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"for which its maker must be trusted: {key}." in told
    assert "--trust-settings" in told
    assert not out.exists()
    assert run(["frontier", "import", str(file), "--into", str(out), "--trust-settings"]) == 0
    assert read_stored(out) == read_stored(site)


def test_settings_of_a_directory_stay_whatever_a_file_brings(crawled: Path, tmp_path: Path) -> None:
    """N2: they are those of whoever made the directory, so that nobody need be trusted."""
    site, file, out = tmp_path / "site", tmp_path / "frontier.gz", tmp_path / "target"
    shutil.copytree(crawled, site)
    write_stored(site, replace(KEPT, robots=replace(KEPT.robots, obey=False)))
    assert run(["frontier", "export", str(site), "--to", str(file)]) == 0
    with CrawlDirectory(out).held():
        write_stored(out, KEPT)
    assert run(["frontier", "import", str(file), "--into", str(out)]) == 0
    assert read_stored(out) == read_stored(crawled)


def test_an_export_writes_over_nothing_that_lies_beside_it(crawled: Path, tmp_path: Path) -> None:
    """N2: in a folder that others may write to, a name that they know beforehand may lead to a file of ours."""
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    (tmp_path / "frontier.gz.part").symlink_to(precious)
    assert run(["frontier", "export", str(crawled), "--to", str(tmp_path / "frontier.gz")]) == 0
    assert precious.read_text(encoding="utf-8") == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frontier.gz", "frontier.gz.part", "precious"]


def test_standard_output_is_no_file(
    crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, C4: other exports take - for it; here nobody shall find a file of that name."""
    monkeypatch.chdir(tmp_path)
    assert run(["frontier", "export", str(crawled), "--to", "-"]) == 2
    assert "not to standard output" in capsys.readouterr().err
    assert not (tmp_path / "-").exists()


def _totals(out: Path) -> Totals:
    view = LmdbFrontierView.open(out / "frontier", SystemClock(), 1 << 30)
    try:
        return view.totals()
    finally:
        view.close()


def test_a_target_that_knows_urls_is_refused(crawled: Path, exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """N2: nothing is overwritten."""
    before = _totals(crawled)
    assert run(["frontier", "import", str(exported), "--into", str(crawled)]) == 1
    assert "has a frontier already, which knows" in capsys.readouterr().err
    assert _totals(crawled) == before


def test_a_running_crawl_is_neither_exported_nor_imported_into(
    crawled: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, F10: the lock of the directory is asked for."""
    with CrawlDirectory(crawled).held():
        assert run(["frontier", "export", str(crawled), "--to", str(tmp_path / "more")]) == 1
        told = capsys.readouterr().err
        assert "another crawl is running" in told
        assert "--out" not in told, "which this command does not have"
    with CrawlDirectory(tmp_path / "new").held():
        assert run(["frontier", "import", str(exported), "--into", str(tmp_path / "new")]) == 1
        assert "another crawl is running" in capsys.readouterr().err
    assert not (tmp_path / "more").exists()


def test_an_import_that_was_cut_off_cannot_be_used_and_begins_anew(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, F10: until the last row is there, every command refuses the frontier."""
    out = tmp_path / "half"

    def dying(_file: Path) -> Iterator[Row]:
        for number, row in enumerate(read_stream(exported)):
            if number == 9:
                raise KeyboardInterrupt
            yield row

    monkeypatch.setattr("nephila.node.moving.read_stream", dying)
    monkeypatch.setattr(importing, "BATCH", 4)
    with pytest.raises(KeyboardInterrupt):
        import_directory(exported, out, SystemClock())
    monkeypatch.undo()
    assert run(["status", str(out)]) == 1
    capsys.readouterr()
    assert run(["crawl", "http://site0.test/", "--out", str(out)]) == 1
    assert "was imported in part only" in capsys.readouterr().err
    with pytest.raises(FrontierError, match="in part only"):
        LmdbFrontierView.open(out / "frontier", SystemClock(), 1 << 30)
    assert run(["frontier", "import", str(exported), "--into", str(out)]) == 0
    assert _totals(out).urls == check_stream(exported)[1].rows["url"]


def test_a_cut_file_is_refused_before_anything_is_made(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2: the whole file is read first."""
    cut = tmp_path / "cut"
    cut.write_bytes(exported.read_bytes()[:-20])
    assert run(["frontier", "import", str(cut), "--into", str(tmp_path / "target")]) == 1
    assert "is cut short" in capsys.readouterr().err
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("domain", "policy", "told"),
    [
        ("site0.test", DomainPolicy(delay_s=-5), "a delay of -5 s cannot be kept"),
        ("site0.test", DomainPolicy(recrawl_s=1e300), "a re-crawl interval of 1e+300 s cannot be kept"),
        ("site0.test", DomainPolicy(max_depth=-1), "a depth of -1 cannot be kept"),
        ("site0.test", DomainPolicy(max_depth=1000), "a depth of 1000 cannot be kept"),
        ("site0.test", DomainPolicy(quality=-1), "a quality of -1 cannot be kept"),
        ("site0.test", DomainPolicy(hours=((7, 99),)), "7-99 are no hours of a day"),
        ("site0.test", DomainPolicy(user_agent="a\nb"), "holds a policy for site0.test"),
        ("www.Site0.test", DomainPolicy(paused=True), "'www.Site0.test', which is no domain"),
        ("x" * 600, DomainPolicy(paused=True), "which is no domain"),
        ("", DomainPolicy(paused=True), "'', which is no domain"),
    ],
)
def test_a_policy_that_nobody_could_have_set_is_refused_before_anything_is_made(
    exported: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    domain: str,
    policy: DomainPolicy,
    told: str,
) -> None:
    """N2, R4: other programs write such files, too; at the end of the file as well."""
    file = tmp_path / "changed"
    write_stream(file, [*read_stream(exported), PolicyRow(domain, policy)])
    assert run(["frontier", "import", str(file), "--into", str(tmp_path / "target")]) == 1
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "target").exists()


def test_numbers_that_are_none_are_refused(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """N2: the secret, fingerprints."""
    head, *rows = read_stream(exported)
    url = next(row for row in rows if isinstance(row, UrlRow))
    wrong: list[list[Row]] = [
        [structs.replace(head, secret="x" * 16), *rows],
        [head, *rows, structs.replace(url, fp="12")],
        [head, *rows, structs.replace(url, fp="x" * 32)],
    ]
    for number, told in enumerate(wrong):
        write_stream(tmp_path / str(number), told)
        assert run(["frontier", "import", str(tmp_path / str(number)), "--into", str(tmp_path / "target")]) == 1
        assert "belongs" in capsys.readouterr().err
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (MarkRow("../elsewhere.warc.gz", 9), "an archive file"),
        (OrphanRow("/elsewhere.warc.gz", 9), "an archive file"),
        (UrlRow(fp="0" * 32, url="http://another.test/", rank=0, level=0, depth=0, admitted_s=0), "a URL of"),
        (UrlRow(fp="0" * 32, url="file:///etc/passwd", rank=0, level=0, depth=0, admitted_s=0), "a URL of"),
        (UrlRow(fp="0" * 32, url="http://{host}/\r\nX: y", rank=0, level=0, depth=0, admitted_s=0), "a URL of"),
        (RobotsRow("http://another.test", "http://another.test/robots.txt", 0), "a URL of"),
        (CaptureRow(200, "../elsewhere.warc.gz", 0, 9, pending=True), "an archive file"),
        (CaptureRow(200, "s3://theirs/key", 0, 9, etag="a\r\nX: y"), "a validator"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, structs.Struct) else "",
)
def test_rows_that_lead_elsewhere_are_refused(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], row: Row | CaptureRow, told: str
) -> None:
    """N2, H6, P2: out of the archive, round the lease of another host, into a second header."""
    known = list(read_stream(exported))
    at, url = next((place, one) for place, one in enumerate(known, 1) if isinstance(one, UrlRow))
    match row:
        case UrlRow():
            added: Row = structs.replace(row, url=row.url.replace("{host}", host_of(url.url)))
        case CaptureRow():
            added = structs.replace(url, asked=True, state=UrlState.DONE, capture=row)
        case _:
            added = row
    write_stream(tmp_path / "changed", [*known[:at], added, *known[at:]])
    assert run(["frontier", "import", str(tmp_path / "changed"), "--into", str(tmp_path / "target")]) == 1
    assert f"where {told}" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "target").exists()


def test_a_directory_has_no_regions(
    crawled: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N6: a group is one of a fleet's."""
    for order in (
        ["export", str(crawled), "--to", str(tmp_path / "x")],
        ["import", str(exported), "--into", str(tmp_path / "target")],
        ["rebuild", str(crawled)],
    ):
        assert run(["frontier", *order, "--group", "eu"]) == 2
        assert "--group means a region of a fleet" in capsys.readouterr().err
    assert run(["serve", "--out", str(crawled), "--group", "eu"]) == 2
    assert "--group means a region of a fleet" in capsys.readouterr().err
    assert not (tmp_path / "target").exists()


def test_another_normal_form_is_refused(
    crawled: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, U2: every page would be taken for a new one."""
    out = tmp_path / "other"
    with CrawlDirectory(out).held():
        write_stored(out, replace(SOME, urls=replace(SOME.urls, sort_query=False)))
    assert run(["frontier", "import", str(exported), "--into", str(out)]) == 2
    assert "urls.sort_query" in capsys.readouterr().err


def test_what_holds_no_frontier_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """N2: in a sentence."""
    assert run(["frontier", "export", str(tmp_path / "nothing"), "--to", str(tmp_path / "file")]) == 1
    assert "there is no crawl at" in capsys.readouterr().err
    with CrawlDirectory(tmp_path / "empty").held():
        pass
    assert run(["frontier", "export", str(tmp_path / "empty"), "--to", str(tmp_path / "file")]) == 1
    assert "has no frontier" in capsys.readouterr().err


def test_a_scope_that_cannot_be_read_is_not_exported(
    crawled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """N2, Q5: in a sentence, and there is no file."""
    site = tmp_path / "site"
    shutil.copytree(crawled, site)
    (site / "scope").write_bytes(b"\xff\xfe\n")
    assert run(["frontier", "export", str(site), "--to", str(tmp_path / "file")]) == 1
    assert "the saved scope of this crawl cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "file").exists()


def test_hosts_rest_one_full_delay_after_an_import(exported: Path, tmp_path: Path) -> None:
    """P2, N2: nobody knows who asked them on the way."""
    out = tmp_path / "other"
    import_directory(exported, out, SystemClock())
    view = LmdbFrontierView.open(out / "frontier", SystemClock(), 1 << 30)
    hosts = [view.host(f"site{number}.test") for number in range(3)]
    now = view.timeline.now()
    view.close()
    known = [host for host in hosts if host is not None]
    assert known
    delay_ms = PATIENT.politeness.delay_s * 1000
    assert all(now < host.free_at <= now + 60_000 and host.free_at > now + delay_ms / 2 for host in known)
