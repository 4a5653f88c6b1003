"""`nephila export` on a real crawl: what comes out, what is left out, and that nothing is half done."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pty
import select
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from export_site import ARTICLE, FLAGS, PROSE, Site, crawl_twice, full_site, serving
from export_site import page as document
from mounts import on_a_small_disk
from pyarrow import parquet
from served import nephila, plain_web, records, run, served, stored_pages

from nephila.testing.web.auditor import ViolationKind


@dataclass(frozen=True)
class Twice:
    """A site that was crawled in two cycles."""

    site: Site
    out: Path

    def url(self, path: str) -> str:
        """Of a page."""
        return self.site.url + path


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twice]:
    out = tmp_path_factory.mktemp("export") / "crawl"
    with serving(full_site()) as site:
        crawl_twice(site, out)
        yield Twice(site, out)


def exported(crawl: Path, to: Path, *flags: str | Path, code: int = 0) -> dict[str, Any]:
    """Export, and read what --json prints."""
    found: dict[str, Any] = json.loads(run("export", crawl, "--to", to, "--json", *flags, code=code).stdout)
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.splitlines()]


def pages_of(path: Path) -> dict[str, dict[str, Any]]:
    """By the path of their URL."""
    return {page["url"].partition("/")[2].partition("/")[2].partition("/")[2]: page for page in lines(path)}


def state_of(crawl: Path) -> dict[str, str]:
    """The hash of every file that an export has to leave alone."""
    logs = ("catalogue.sqlite-shm", "catalogue.sqlite-wal")  # SQLite's own, made by whoever reads
    files = [path for path in crawl.rglob("*") if path.is_file() and path.name not in logs]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_json_lines_have_the_newest_whole_capture_of_each_page(twice: Twice, tmp_path: Path) -> None:
    """W6, K3, D2, H3: copies and unchanged pages with their bodies; what is gone or asks for it is left out."""
    before = state_of(twice.out)
    told = exported(twice.out, tmp_path / "pages.jsonl")
    pages = pages_of(tmp_path / "pages.jsonl")
    odd = {"same?b=2&a=1", "Upper", "upper", "con", "a%00b", "x" * 300, "latin", "%E6%B0%B4"}
    wanted = {"", "article", "copy", "changing", *odd}
    assert pages.keys() == wanted
    assert told["exported"] == len(wanted)
    assert told["captures"] == told["exported"] + sum(told["left_out"].values())
    assert {name: told["left_out"][name] for name in ("noindex", "noarchive", "gone", "unchanged")} == {
        "noindex": 2,
        "noarchive": 2,
        "gone": 1,
        "unchanged": 1,
    }
    article, copy = pages["article"], pages["copy"]
    assert article["text"] == copy["text"]
    assert article["text"].startswith("Silk\n\nOrb weavers")
    assert not [word for word in ("alert", "Imprint", "Home") if word in article["text"]]
    assert article["sha256"] == copy["sha256"] == hashlib.sha256(twice.site.pages["/copy"][1].encode()).hexdigest()
    assert copy["duplicate_of"] == twice.url("article") or article["duplicate_of"] == twice.url("copy")
    assert article["last_seen_at"] > article["fetched_at"]
    assert pages["changing"]["title"] == "Changed"
    assert pages["latin"]["text"].startswith("Caf\u00e9")
    assert (article["via"], article["depth"]) == (twice.url(""), 1)
    assert "ai-train=no" in article["signals"]
    assert {"url": twice.url("same?b=2&a=1"), "tag": "a", "rel": "nofollow", "text": "the other"} in article["links"]
    assert ["etag", '"a1"'] in article["headers"]
    assert state_of(twice.out) == before


def test_all_captures_and_what_is_left_out_by_default(twice: Twice, tmp_path: Path) -> None:
    """W6, H3, K3: every visit, one that found the page unchanged too; never what asks for it, unless it is included."""
    exported(twice.out, tmp_path / "all.jsonl", "--all")
    found = lines(tmp_path / "all.jsonl")
    visits = sorted((page["fetched_at"], page["status"]) for page in found if page["url"] == twice.url("article"))
    assert [status for _, status in visits] == [200, 304]
    texts = {page["text"] for page in found if page["url"] == twice.url("article")}
    assert len(texts) == 1
    assert {page["title"] for page in found if page["url"] == twice.url("changing")} == {"Page /changing", "Changed"}
    assert not [page for page in found if page["url"] in {twice.url("noindex"), twice.url("noarchive")}]
    exported(twice.out, tmp_path / "more.jsonl", "--include", "noindex", "--include", "noarchive")
    assert {"noindex", "noarchive"} <= pages_of(tmp_path / "more.jsonl").keys()


def test_the_state_at_a_time(twice: Twice, tmp_path: Path) -> None:
    """W6: before the second cycle the page that is gone was there, and the other one had not changed."""
    first = min(page["fetched_at"] for page in _all(twice, tmp_path) if page["title"] == "Changed")
    exported(twice.out, tmp_path / "then.jsonl", "--until", first)
    pages = pages_of(tmp_path / "then.jsonl")
    assert pages["changing"]["title"] == "Page /changing"
    exported(twice.out, tmp_path / "since.jsonl", "--since", first)
    assert pages_of(tmp_path / "since.jsonl").keys() >= {"changing"}
    assert "gone" in {page["url"].rpartition("/")[2] for page in _all(twice, tmp_path)}


def _all(twice: Twice, tmp_path: Path) -> list[dict[str, Any]]:
    exported(twice.out, tmp_path / "every.jsonl", "--all", "--replace")
    return lines(tmp_path / "every.jsonl")


def test_what_is_exported_can_be_chosen(twice: Twice, tmp_path: Path) -> None:
    """W6, K3: by host, status, type, use, likeness and number; gzip by the name of the file."""

    def chosen(*flags: str) -> set[str]:
        exported(twice.out, tmp_path / "chosen.jsonl.gz", "--replace", *flags)
        return set(pages_of(tmp_path / "chosen.jsonl.gz"))

    assert chosen("--host", "127.0.0.1") >= {"article", "copy"}
    assert chosen("--host", "example.org") == set()
    assert chosen("--status", "404") >= {"missing", "gone"}
    assert chosen("--type", "application/pdf") == set()
    assert chosen("--use", "ai-train") == set()
    assert "article" in chosen("--use", "search")
    assert len(chosen("--unique") & {"article", "copy"}) == 1
    assert len(chosen("--limit", "2")) == 2


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawl of two cycles; pages have come to ask to be left out between them."""
    site = Site()
    site.put("/", document("Home", "<a href=/robots-meta>1</a> <a href=/robots-header>2</a> <a href=/unchanged>3</a>"))
    site.put("/robots-meta", document("Open", f"<p>{PROSE}</p>"))
    site.put("/robots-header", document("Open, too", f"<p>{PROSE} Really.</p>"))
    unchanged = document("Open as before", f"<p>{PROSE} Still.</p>")
    site.put("/unchanged", unchanged, ETag='"1"')
    out = tmp_path_factory.mktemp("hidden") / "crawl"
    with serving(site):
        run("crawl", site.url, "--out", out, *FLAGS, "--no-sitemaps")
        site.put("/robots-meta", document("Shut", f"<p>{PROSE}</p>", "<meta name=robots content=noindex>"))
        site.put("/robots-header", document("Shut, too", f"<p>{PROSE} Not.</p>"), X_Robots_Tag="noarchive")
        site.put("/unchanged", unchanged, ETag='"1"', X_Robots_Tag="noindex, noarchive")
        run("crawl", "--out", out, "--new-cycle", "--quiet")
    return out


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.parquet", "text", "graph.jsonl", "site.wacz"])
def test_pages_that_ask_to_be_left_out_since_are_not_exported_as_they_were(
    hidden: Path, tmp_path: Path, name: str
) -> None:
    """K3, W6: in no form; each capture is counted under what its page asks for, and --all has them as they were."""
    form = {"text": ("--format", "text"), "graph.jsonl": ("--format", "links")}.get(name, ())
    told = exported(hidden, tmp_path / name, *form)
    assert told["exported"] == (2 if name == "site.wacz" else 1)  # with the robots.txt
    assert {name: told["left_out"][name] for name in ("noindex", "noarchive")} == {"noindex": 3, "noarchive": 2}
    assert told["left_out"]["unchanged"] == 1
    assert told["captures"] == told["exported"] + sum(told["left_out"].values())
    assert exported(hidden, tmp_path / f"all-{name}", *form, "--all")["exported"] == told["exported"] + 4


@pytest.mark.parametrize(
    ("form", "ending", "begins"),
    [("html", "html", "<!doctype html>"), ("text", "txt", "Silk\n\nOrb"), ("markdown", "md", "---\nurl: ")],
)
def test_files_by_host_and_path(twice: Twice, tmp_path: Path, form: str, ending: str, begins: str) -> None:
    """W6: one file a page below its host, and an index that says which is which."""
    root = tmp_path / "site"
    told = exported(twice.out, root, "--format", form)
    index = {line["url"]: line["file"] for line in lines(root / "index.jsonl")}
    host = f"127.0.0.1_{twice.site.port}"
    assert len(index) == len(set(index.values())) == told["exported"]
    assert {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} == {
        "index.jsonl",
        *index.values(),
    }
    assert index[twice.url("article")] == f"{host}/article.{ending}"
    assert index[twice.url("con")] == f"{host}/_con.{ending}"
    assert len({index[twice.url(name)].lower() for name in ("Upper", "upper")}) == 2
    text = (root / index[twice.url("article")]).read_text()
    assert text.startswith(begins)
    if form == "html":
        assert text == twice.site.pages["/article"][1]
        assert "caf\u00e9".encode("latin-1") in (root / index[twice.url("latin")]).read_bytes().lower()
    if form == "markdown":
        assert f"[the other]({twice.url('same?b=2&a=1')})" in text
        assert "```python\ndef weave():" in text
        assert "| part | mm |" in text


def test_names_do_not_depend_on_the_locale(twice: Twice, tmp_path: Path) -> None:
    """W6: a locale that does not know the characters of a URL gives the same files."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run("export", twice.out, "--to", tmp_path / "text", "--format", "text", env=plain)
    index = {line["url"]: line["file"] for line in lines(tmp_path / "text" / "index.jsonl")}
    name = index[twice.url("%E6%B0%B4")]
    assert name.endswith("/\u6c34.txt")
    assert (tmp_path / "text" / name).read_text(encoding="utf-8").startswith("/%E6%B0%B4")


def test_links_are_edges(twice: Twice, tmp_path: Path) -> None:
    """W4: with anchor text, rel and the time of discovery."""
    exported(twice.out, tmp_path / "graph.jsonl", "--format", "links")
    edges = lines(tmp_path / "graph.jsonl")
    pages = pages_of_all(twice, tmp_path)
    edge = next(one for one in edges if one["source"] == twice.url("article") and one["text"] == "the other")
    assert edge == {
        "source": twice.url("article"),
        "target": twice.url("same?b=2&a=1"),
        "text": "the other",
        "rel": "nofollow",
        "tag": "a",
        "nofollow": True,
        "discovered_at": pages["article"]["fetched_at"],
    }
    assert {one["target"] for one in edges if one["source"] == twice.url("")} >= {twice.url("gone"), twice.url("con")}


def pages_of_all(twice: Twice, tmp_path: Path) -> dict[str, dict[str, Any]]:
    exported(twice.out, tmp_path / "newest.jsonl", "--replace")
    return pages_of(tmp_path / "newest.jsonl")


def test_parquet_has_the_pages_and_the_links(twice: Twice, tmp_path: Path) -> None:
    """W6, W4: the same rows as JSON lines, typed; read back by whoever reads Parquet."""
    exported(twice.out, tmp_path / "pages.parquet")
    exported(twice.out, tmp_path / "graph.parquet", "--format", "links")
    pages = parquet.read_table(tmp_path / "pages.parquet").to_pylist()
    lines_of = pages_of_all(twice, tmp_path)
    assert [page["url"] for page in pages] == [page["url"] for page in lines_of.values()]
    for page in pages:
        told = lines_of[page["url"].removeprefix(twice.url(""))]
        assert {name: page[name] for name in ("title", "text", "status", "links", "sha256", "noindex")} == {
            name: told[name] for name in ("title", "text", "status", "links", "sha256", "noindex")
        }
        assert page["fetched_at"].isoformat(timespec="milliseconds").replace("+00:00", "Z") == told["fetched_at"]
    edges = parquet.read_table(tmp_path / "graph.parquet").to_pylist()
    assert [edge["target"] for edge in edges if edge["text"] == "the other"] == [twice.url("same?b=2&a=1")] * 2
    assert all(edge["discovered_at"].tzinfo is not None for edge in edges)


def test_standard_output_is_for_the_pages_alone(twice: Twice) -> None:
    """W6, C4: the summary goes to standard error; a reader who leaves is no trouble to anybody."""
    result = run("export", twice.out, "--to", "-", "--limit", "3")
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 3
    assert result.stderr.startswith("3 pages, of ")
    assert max(len(line) for line in result.stderr.splitlines()) <= 80
    piped = subprocess.run(
        ["sh", "-c", 'trap "" PIPE; "$@" | head -c 10', "sh", *nephila("export", twice.out, "--to", "-")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in piped.stderr


def test_commands_that_make_no_sense_are_told(twice: Twice, tmp_path: Path) -> None:
    """W6, C4: one sentence, exit code 2, nothing made."""
    (tmp_path / "there.jsonl").write_text("mine")
    for flags, sentence in (
        (("--to", tmp_path / "there.jsonl"), "is there already"),
        (("--to", tmp_path / "none" / "x.jsonl"), "There is no folder"),
        (("--to", tmp_path / "x"), "does not tell which format"),
        (("--to", tmp_path / "x.txt", "--format", "jsonl"), "is written to a file called"),
        (("--to", twice.out / "x.jsonl"), "lies in the crawl itself"),
        (("--to", twice.out / "warc" / "x.jsonl"), "lies in the crawl itself"),
        (("--to", "-", "--format", "html"), "cannot go to standard output"),
        (("--to", "-", "--json"), "would both write to standard output"),
        (("--to", tmp_path / "x.jsonl", "--since", "yesterday"), "is no time"),
        (("--to", tmp_path / "x.jsonl", "--since", "2026-02-01", "--until", "2026-01-01"), "must be later"),
        (("--to", tmp_path, "--format", "html", "--replace"), "not an earlier export"),
        (("--to", tmp_path / "x", "--format", "html", "--type", "application/pdf"), "cannot be made of"),
        (("--to", tmp_path / "x", "--format", "text", "--type", "image/*"), "cannot be made of"),
    ):
        told = run("export", twice.out, *flags, code=2)
        assert sentence in " ".join(told.stderr.split()), told.stderr
        assert "Traceback" not in told.stderr
    assert run("export", twice.out.parent, "--to", tmp_path / "x.jsonl", code=1).stderr.startswith("nephila: ")
    assert [path.name for path in tmp_path.iterdir()] == ["there.jsonl"]
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def test_damage_costs_the_record_and_is_told(twice: Twice, tmp_path: Path) -> None:
    """W6: the others are there, the exit code says that something is missing."""
    crawl = tmp_path / "damaged"
    subprocess.run(["cp", "-r", str(twice.out), str(crawl)], check=True)
    whole = pages_of_all(twice, tmp_path)
    file = crawl / "warc" / whole["upper"]["archive_file"]
    data = bytearray(file.read_bytes())
    place = whole["upper"]["archive_offset"] + 60
    data[place : place + 40] = bytes(40)
    file.write_bytes(data)
    told = exported(crawl, tmp_path / "left.jsonl", code=1)
    assert told["left_out"]["damaged"] == 1
    assert "damaged at byte" in told["damage"][0]
    assert pages_of(tmp_path / "left.jsonl").keys() == whole.keys() - {"upper"}
    file.unlink()
    told = exported(crawl, tmp_path / "none.jsonl", code=1)
    assert "is missing" in told["damage"][0]


def test_what_was_taken_down_is_not_exported(twice: Twice, tmp_path: Path) -> None:
    """W6, K2: neither what was purged nor what is still to be; copies of it have lost their body."""
    crawl = tmp_path / "crawl"
    subprocess.run(["cp", "-r", str(twice.out), str(crawl)], check=True)
    (crawl / "takedowns").mkdir(exist_ok=True)
    order = {"urls": [twice.url("upper")], "domains": [], "reason": "they asked us", "who": "a test"}
    record = {"id": "000001", "order": order, "at": 1, "state": "pending"}
    (crawl / "takedowns" / "000001.json").write_text(json.dumps(record))
    told = exported(crawl, tmp_path / "pending.jsonl")
    assert told["left_out"]["taken_down"] == 2
    assert "upper" not in pages_of(tmp_path / "pending.jsonl")
    run("purge", crawl)
    exported(crawl, tmp_path / "purged.jsonl", "--all")
    assert "upper" not in pages_of(tmp_path / "purged.jsonl")


def test_an_interrupted_export_leaves_nothing(twice: Twice, tmp_path: Path) -> None:
    """W6, C4: neither with Ctrl-C nor when somebody ends it; the exit code says so."""
    crawl, target = tmp_path / "crawl", tmp_path / "target"
    subprocess.run(["cp", "-r", str(twice.out), str(crawl)], check=True)
    target.mkdir()
    others = (("--to", target / "x.parquet"), ("--to", target / "x.wacz"))
    for file in (crawl / "warc").glob("*.warc.gz"):  # opening it takes for ever
        file.unlink()
        os.mkfifo(file)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for flags in (("--to", target / "x.jsonl"), ("--to", target / "tree", "--format", "html"), *others):
            command = nephila("export", crawl, *flags)
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            _wait_for(lambda: bool(list(target.glob(".*.part"))))
            process.send_signal(number)
            _, told = process.communicate(timeout=60)
            assert (process.returncode, told.strip()) == (code, "Interrupted: nothing was written.")
            assert list(target.iterdir()) == []


def _wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_full_disk_is_told_and_left_as_it_was(twice: Twice, tmp_path: Path) -> None:
    """W6: one sentence, whatever the form; where there is room the same command is done."""
    disk = tmp_path / "disk"
    commands = [
        nephila("export", twice.out, "--to", disk / "x.jsonl", "--all"),
        nephila("export", twice.out, "--to", disk / "tree", "--format", "html"),
        nephila("export", twice.out, "--to", disk / "x.parquet", "--all"),
        nephila("export", twice.out, "--to", disk / "x.wacz", "--all"),
    ]
    full = on_a_small_disk(tmp_path, "16k", [*commands, ["ls", "-A", str(disk)]], roomy=[commands[1]])
    for ended in full[:4]:
        assert ended.code == 1
        assert "cannot be written: No space left on device" in ended.err
        assert "Make room" in ended.err
        assert "Traceback" not in ended.err
    assert full[4].out == ""
    assert full[5].code == 0
    assert (disk / "tree" / "index.jsonl").exists()


class NothingIsMissing(Site):
    """A site that has an answer to everything."""

    def get(self, path: str) -> tuple[int, str, dict[str, str]]:
        sorry = document("Page not found", f"<p>We could not find what you were looking for. {PROSE}</p>")
        return self.pages.get(path, (200, sorry, {"Content-Type": "text/html"}))


def test_pages_that_stand_for_missing_ones_are_left_out(tmp_path: Path) -> None:
    """W6, T4: neither they nor what a probe brought are pages, whatever their status says."""
    site = NothingIsMissing()
    names = ("a", "b", *(f"no{number}" for number in range(9)))
    site.put("/", document("Home", "".join(f"<a href='/{name}'>{name}</a> " for name in names)))
    site.put("/robots.txt", "", 404)
    for name in ("a", "b"):
        site.put(f"/{name}", document(name, f"<p>{name}: {ARTICLE}</p>"))
    with serving(site):
        run("crawl", site.url, "--out", tmp_path / "crawl", *FLAGS)
    told = exported(tmp_path / "crawl", tmp_path / "pages.jsonl")
    pages = pages_of(tmp_path / "pages.jsonl")
    assert pages.keys() >= {"", "a", "b"}
    assert not [path for path in pages if "probe" in path]
    assert told["left_out"]["not_found"] >= 3  # what came before the probe was not known for what it is


def test_a_crawl_that_runs_or_was_killed_is_exported(tmp_path: Path) -> None:
    """W6, F10: what is listed at that moment, each page once; the crawl goes on as if nothing had been."""
    spec, arguments = plain_web(71, hosts=8, pages=400)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "200") as web:
        flags = ("--delay", "0.2", "--scope", "all", "--max-wait", "20", "--quiet", "--processes", "2")
        crawl = subprocess.Popen(nephila("crawl", *web.seeds, "--out", out, *web.flags, *flags))
        _wait_for(lambda: _listed(out) >= 20)
        running = exported(out, tmp_path / "running.jsonl")
        assert crawl.poll() is None
        crawl.kill()
        crawl.wait()
        listed = _listed(out)
        headers = [record.rec_headers for _, record, _ in records(out) if record.rec_type == "response"]
        stored = {urlsplit(one.get_header("WARC-Target-URI"))[1:3] for one in headers}
        killed = exported(out, tmp_path / "killed.jsonl")
        assert 20 <= running["exported"] <= killed["exported"] == listed
        for name in ("running", "killed"):
            urls = [page["url"] for page in lines(tmp_path / f"{name}.jsonl")]
            assert len(set(urls)) == len(urls)
        run("crawl", "--out", out, *flags)
        assert exported(out, tmp_path / "done.jsonl")["exported"] == 400
        # An answer that was on the wire at the kill was in no file: it alone is asked for again, one of a host at most.
        repeated = web.audit().violations
        assert {one.kind for one in repeated} <= {ViolationKind.REPEAT}
        assert len({one.host for one in repeated}) == len(repeated)
        assert not {host.partition(":")[0] + path for host, path in stored} & {
            one.host + one.target for one in repeated
        }


def _listed(out: Path) -> int:
    """Pages in the catalogue; none before it is made."""
    try:
        return len(stored_pages(out))
    except sqlite3.OperationalError:
        return 0


def test_the_catalogue_is_asked_in_sql(twice: Twice, tmp_path: Path) -> None:
    """W6, C4: as a table, as JSON lines, as CSV, from standard input; mistakes and writes are told, exit code 2."""
    counted = json.loads(run("sql", twice.out, "SELECT count(*) AS n FROM pages WHERE status = 200", "--json").stdout)
    assert counted == {"n": 14}
    table = run("sql", twice.out, "SELECT status, count(*) AS n FROM pages GROUP BY status ORDER BY status").stdout
    assert table.splitlines() == ["status  n", "------  --", "   200  14", "   301   1", "   404   5"]
    csv = run("sql", twice.out, "--csv", input="SELECT title FROM pages WHERE url LIKE '%/article';").stdout
    assert csv == "title\nSilk & stems\n"
    assert "pages" in run("sql", twice.out, "--tables").stdout
    before = state_of(twice.out)
    for statement in ("DELETE FROM captures", "SELEC 1", "ATTACH 'x' AS y", ""):
        told = run("sql", twice.out, statement, code=2, stdin=subprocess.DEVNULL)
        assert told.stderr.startswith("nephila: ")
        assert "Traceback" not in told.stderr
    assert run("sql", tmp_path, "SELECT 1", code=1).stderr.startswith("nephila: ")
    assert state_of(twice.out) == before


def test_a_conversation_in_sql(twice: Twice) -> None:
    """W6, C4: at a terminal, within its width; a mistake costs the statement, Ctrl-D leaves."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    process = subprocess.Popen(
        nephila("sql", twice.out), stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True
    )
    os.close(slave)
    told = ""
    for typed, expected in (
        ("", "semicolon"),
        ("SELECT url, title,\n", ""),
        ("via FROM pages ORDER BY url;\n", "Silk & stems"),
        ("DELETE FROM captures;\n", "only what reads"),
        (".tables\n", "dead_letters"),
        ("SELECT 6 * 7 AS answer;\n", "42"),
    ):
        os.write(master, typed.encode())
        told += _read_until(master, expected)
    os.write(master, b"\x04")
    assert process.wait(60) == 0
    os.close(master)
    table = [line for line in told.replace("\r", "").split("\n") if line.startswith("http://")]
    assert table
    assert max(map(len, table)) <= 80


def _read_until(master: int, expected: str) -> str:
    """What is shown up to the next prompt, which comes after what is expected."""
    told, deadline = "", time.monotonic() + 60
    while expected not in told or not told.endswith(("sql> ", "...> ")):
        assert time.monotonic() < deadline, told
        if select.select([master], [], [], 1)[0]:
            told += os.read(master, 65536).decode(errors="replace")
    return told
