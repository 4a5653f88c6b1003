"""The archives of a real crawl, as other people's tools see them."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import zstandard
from served import plain_web, records, run, served, stored_pages
from warc_checks import archives, captures_in_archives, check_archives, index_lines, kinds
from webs import Crawled


def test_every_warc_passes_the_checkers(crawled: Crawled) -> None:
    """W1: `warcio check` and `fastwarc check`."""
    check_archives(crawled.out)


def test_an_archive_laid_out_by_a_key_is_read_by_the_same_tools(tmp_path: Path) -> None:
    """W1, K1: by two processes; every checker, the indexer's offsets and the audit, in folders."""
    spec, arguments = plain_web(47, hosts=3, pages=15)
    with served(tmp_path, spec, *arguments, "--base-delay-ms", "0") as web:
        out = tmp_path / "crawl"
        options = ("--delay", "0", "--scope", "all", "--max-wait", "1", "--processes", "2", "--warc-layout", "key")
        run("crawl", *web.seeds, "--out", out, *web.flags, *options, "--user-agent", "N/1 (+https://example.org/bot)")
    assert len(stored_pages(out)) == 15
    assert all(path.relative_to(out / "warc").as_posix().count("/") == 2 for path in archives(out))
    check_archives(out)
    answers, resources = captures_in_archives(out)
    fields = [json.loads(line.split(" ", 2)[2]) for line in index_lines(out)]
    assert len(fields) == answers + resources
    for one in fields:
        data = (out / "warc" / one["filename"]).read_bytes()[int(one["offset"]) :][: int(one["length"])]
        assert one["url"].encode() in gzip.decompress(data)
    run("audit", out)


def test_an_archive_by_zstandard_is_read_by_those_who_can(tmp_path: Path) -> None:
    """W1, K1, W5: FastWARC's checks, offsets of the index, the audit; also when pages were taken out of it."""
    spec, arguments = plain_web(48, hosts=4, pages=40)
    with served(tmp_path, spec, *arguments, "--base-delay-ms", "0") as web:
        out = tmp_path / "crawl"
        options = ("--delay", "0", "--scope", "all", "--max-wait", "1", "--warc-compression", "zstd")
        run("crawl", *web.seeds, "--out", out, *web.flags, *options, "--user-agent", "N/1 (+https://example.org/bot)")
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    pages = [row[0] for row in connection.execute("SELECT url FROM pages WHERE status = 200")]
    connection.close()
    assert len(pages) == 40
    assert {path.suffix for path in archives(out)} == {".zst"}
    run("purge", out, pages[0], "--reason", "they asked us")
    check_archives(out)
    fields = [json.loads(line.split(" ", 2)[2]) for line in index_lines(out)]
    assert len({one["url"] for one in fields}) >= 39
    for one in fields:
        data = (out / "warc" / one["filename"]).read_bytes()[int(one["offset"]) :][: int(one["length"])]
        assert one["url"].encode() in zstandard.ZstdDecompressor().decompress(data)
    run("audit", out)


def test_all_kinds_of_records_are_there(crawled: Crawled, say: Callable[[str], None]) -> None:
    """W1, P1, D2: warcinfo, request, response, revisit, metadata, and robots.txt as a resource."""
    found = kinds(crawled.out)
    say(str(found))
    assert {"warcinfo", "request", "response", "revisit", "metadata", "resource"} <= found.keys()
    assert found["request"] == found["metadata"] == found["response"] + found["revisit"]
    resources = [
        record.rec_headers["WARC-Target-URI"] for _, record, _ in records(crawled.out) if record.rec_type == "resource"
    ]
    assert all(url.endswith("/robots.txt") for url in resources)


def test_every_exchange_is_stored(crawled: Crawled) -> None:
    """W1: what the servers answered is what the archive holds, 3xx, 4xx and 5xx too."""
    statuses = Counter(
        int(block.split(b" ", 2)[1])
        for _, record, block in records(crawled.out)
        if record.rec_type in {"response", "revisit"}
    )
    seen = {status: count for status, count in crawled.audit.statuses.items() if status}
    assert statuses == Counter(seen)


def test_cdxj_indexer_finds_exactly_our_lines(crawled: Crawled, say: Callable[[str], None]) -> None:
    """W1: one line a capture, the same ones that an independent indexer writes."""
    answers, resources = captures_in_archives(crawled.out)
    ours = index_lines(crawled.out)
    assert len(ours) == answers + resources
    tool = Path(sys.executable).parent / "cdxj-indexer"
    theirs = []
    for path in archives(crawled.out):
        result = subprocess.run([str(tool), "--sort", str(path)], capture_output=True, text=True, check=True)
        theirs += result.stdout.splitlines()
    say(f"{len(ours)} lines, {len(theirs)} by cdxj-indexer")
    assert sorted(ours) == sorted(theirs)


def test_index_offsets_lead_to_their_records(crawled: Crawled) -> None:
    """W1: a line's offset and length are one whole gzip member with the URL that it names."""
    for line in index_lines(crawled.out)[::50]:
        fields = json.loads(line.split(" ", 2)[2])
        data = (crawled.out / "warc" / fields["filename"]).read_bytes()
        offset, length = int(fields["offset"]), int(fields["length"])
        record = gzip.decompress(data[offset : offset + length])
        assert fields["url"].encode() in record.split(b"\r\n\r\n", 1)[0]


def test_duplicates_are_stored_once(crawled: Crawled) -> None:
    """D2: the second copy is a revisit record that names the first."""
    originals = {
        record.rec_headers["WARC-Record-ID"] for _, record, _ in records(crawled.out) if record.rec_type == "response"
    }
    revisits = [record.rec_headers for _, record, _ in records(crawled.out) if record.rec_type == "revisit"]
    assert revisits
    for headers in revisits:
        assert headers["WARC-Refers-To"] in originals
        assert headers["WARC-Refers-To-Target-URI"].startswith("http")
