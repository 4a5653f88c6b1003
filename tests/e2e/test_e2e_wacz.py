"""`nephila export --to X.wacz`, as other people's tools see it: py-wacz, pywb, warcio, fastwarc and cdxj-indexer."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wayback
from export_site import Site, crawl_twice, full_site, serving
from served import run
from warc_checks import check_archives
from warcio.archiveiterator import ArchiveIterator


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    out = tmp_path_factory.mktemp("wacz") / "crawl"
    with serving(full_site()) as site:
        crawl_twice(site, out)
        yield site, out


@pytest.fixture(scope="module")
def zstd_crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    """Of three cycles: two under Zstandard, one under gzip."""
    out = tmp_path_factory.mktemp("zstd") / "crawl"
    with serving(full_site()) as site:
        crawl_twice(site, out, "--warc-compression", "zstd")
        run("crawl", "--out", out, "--new-cycle", "--warc-compression", "gzip", "--quiet")
        assert {path.suffix for path in (out / "warc").iterdir()} == {".gz", ".zst", ".cdxj"}
        yield site, out


@pytest.fixture(scope="module", params=["newest", "all", "one", "zstd"])
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    """The newest of each URL; all captures; the second cycle without what it has copies of; all, partly Zstandard."""
    site, out = request.getfixturevalue("zstd_crawl" if request.param == "zstd" else "crawl")
    target = tmp_path_factory.mktemp(request.param) / "site.wacz"
    flags = {"newest": (), "one": ("--since", _second_cycle(out))}.get(request.param, ("--all",))
    run("export", out, "--to", target, *flags)
    return site, target


def _second_cycle(out: Path) -> str:
    query = "SELECT at FROM captures WHERE title = 'Home' ORDER BY at DESC LIMIT 1"
    at = json.loads(run("sql", out, query, "--json").stdout)["at"]
    seconds = run("sql", out, f"SELECT strftime('%Y-%m-%dT%H:%M:%SZ', {at} / 1000 - 1, 'unixepoch') AS t", "--json")
    return str(json.loads(seconds.stdout)["t"])


def member(target: Path, name: str) -> bytes:
    with zipfile.ZipFile(target) as file:
        return file.read(name)


def index_of(target: Path) -> list[dict[str, Any]]:
    lines = gzip.decompress(member(target, "indexes/index.cdx.gz")).decode().splitlines()
    assert lines == sorted(lines)
    return [{"key": line.split(" ", 2)[0], **json.loads(line.split(" ", 2)[2])} for line in lines]


def unpacked(target: Path, folder: Path) -> Path:
    with zipfile.ZipFile(target) as file:
        file.extractall(folder)
    return folder


def test_py_wacz_finds_it_valid(packed: tuple[Site, Path]) -> None:
    """W6: hashes, profile, pages and index, by the reference tool."""
    tool = wayback.commands() / "wacz"
    done = subprocess.run([str(tool), "validate", "-f", str(packed[1])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is valid" in done.stdout


def test_the_package_has_the_hash_of_everything(packed: tuple[Site, Path]) -> None:
    """W6: WACZ 1.1.1; WARC files and index are stored uncompressed, so that they can be read in place."""
    _, target = packed
    package = json.loads(member(target, "datapackage.json"))
    assert (package["wacz_version"], package["profile"]) == ("1.1.1", "data-package")
    assert package["software"].startswith("Nephila")
    with zipfile.ZipFile(target) as file:
        assert file.testzip() is None
        names = {info.filename: info for info in file.infolist()}
    told = {one["path"]: one for one in package["resources"]}
    assert names.keys() == told.keys() | {"datapackage.json", "datapackage-digest.json"}
    for path, one in told.items():
        data = member(target, path)
        assert (one["hash"], one["bytes"]) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        if not path.startswith("pages/"):
            assert names[path].compress_type == zipfile.ZIP_STORED
    digest = json.loads(member(target, "datapackage-digest.json"))
    data = member(target, "datapackage.json")
    assert digest == {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}


def test_warc_files_pass_the_checkers(packed: tuple[Site, Path], tmp_path: Path) -> None:
    """W6, W1: warcio and fastwarc read every record, and every digest is right."""
    (unpacked(packed[1], tmp_path) / "archive").rename(tmp_path / "warc")
    check_archives(tmp_path)
    [path] = (tmp_path / "warc").iterdir()
    with path.open("rb") as stream:
        assert next(iter(ArchiveIterator(stream))).rec_type == "warcinfo"


def test_the_index_leads_to_every_record(packed: tuple[Site, Path], tmp_path: Path) -> None:
    """W6: the lines that cdxj-indexer writes of the same file, but for a 304, which hides the page from readers."""
    folder = unpacked(packed[1], tmp_path)
    [path] = (folder / "archive").iterdir()
    tool = Path(sys.executable).parent / "cdxj-indexer"
    theirs = subprocess.run([str(tool), "--sort", str(path)], capture_output=True, text=True, check=True).stdout
    ours = gzip.decompress((folder / "indexes" / "index.cdx.gz").read_bytes()).decode().splitlines()
    assert [line for line in theirs.splitlines() if '"status": "304"' not in line] == ours
    listing = (folder / "indexes" / "index.idx").read_text().splitlines()
    assert listing[0] == '!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}'
    packed_index = (folder / "indexes" / "index.cdx.gz").read_bytes()
    for line in listing[1:]:
        place = json.loads(line[line.index("{") :])
        block = packed_index[place["offset"] : place["offset"] + place["length"]]
        assert gzip.decompress(block).decode().startswith(line[: line.index("{")])


def test_pages_are_listed_with_their_text(packed: tuple[Site, Path]) -> None:
    """W6, K3: those that readers can begin with; none that asks not to be copied."""
    site, target = packed
    lines = [json.loads(line) for line in io.BytesIO(member(target, "pages/pages.jsonl"))]
    assert lines[0] == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True}
    pages = {page["url"].removeprefix(site.url): page for page in lines[1:]}
    assert {"", "copy", "changing", "con"} <= pages.keys()
    assert not {"noindex", "noarchive", "missing", "moved", "robots.txt"} & pages.keys()
    assert pages["copy"]["text"].startswith("Silk\n\nOrb weavers")
    assert pages["changing"]["title"] == "Changed"
    assert len({page["id"] for page in lines[1:]}) == len(lines) - 1
    urls = {line["url"].removeprefix(site.url) for line in index_of(target)}
    assert not {"noindex", "noarchive"} & urls


def test_pywb_replays_every_page(packed: tuple[Site, Path], tmp_path: Path) -> None:
    """W6, D2: copies too, whatever they are copies of is in the file or not; redirects as they were."""
    site, target = packed
    folder = unpacked(target, tmp_path / "unpacked")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "index.cdxj").write_bytes(gzip.decompress((folder / "indexes" / "index.cdx.gz").read_bytes()))
    (tmp_path / "home").mkdir()
    with wayback.replaying(tmp_path / "home", folder / "archive", tmp_path / "index") as replay:
        for path in ("", "copy", "changing", "same?b=2&a=1", "con", "latin"):
            status, body, _ = replay.get(site.url + path, "2099")
            wanted = site.pages[f"/{path}"][1].encode("latin-1" if path == "latin" else "utf-8")
            assert (path, status, body) == (path, 200, wanted)
        status, _, headers = replay.get(site.url + "moved", "2099")
        assert status == 301
        assert headers["location"].endswith("/article")
