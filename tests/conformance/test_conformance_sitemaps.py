"""Sitemaps and feeds: the test suites of crawler-commons, feedparser and trafilatura."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nephila.model.listing import Listed, ListKind
from nephila.parse import ListReader, read_list

Tell = Callable[[str, int, int], None]


@pytest.fixture(scope="module")
def lists(material: Path) -> Path:
    return material / "06-sitemaps-feeds"


def read(body: bytes, url: str, content_type: str = "") -> tuple[ListReader, list[Listed]]:
    pieces = list(read_list(body, url, content_type))
    return pieces[-1][0], [entry for _, entries in pieces for entry in entries]


def under_its_directory(sitemap: str, entry: str) -> bool:
    """The protocol's own rule: a sitemap speaks for its directory and what is below."""
    return entry.partition("://")[2].startswith(sitemap.partition("://")[2].rpartition("/")[0] + "/")


def cases(lists: Path) -> list[dict[str, Any]]:
    lines = (lists / "crawler-commons" / "parse_cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_entries_of_crawler_commons(lists: Path, tell: Tell) -> None:
    """X3: the same locations, kinds and dates; in strict cases, what the sitemap may not speak for is left out.

    Cases that its strict parser refuses as a whole are not counted here: we read what can be read (see below).
    """
    right = dates = dated = total = 0
    for case in cases(lists):
        if "entries" not in case:
            continue
        total += 1
        reader, entries = read(base64.b64decode(case["content_b64"]), case["url"], case["content_type"])
        if case["strict"] and case["type"] in {"XML", "TEXT"}:
            entries = [entry for entry in entries if under_its_directory(case["url"], entry.url)]
        right += sorted(entry.url for entry in entries) == sorted(one["loc"] for one in case["entries"])
        assert (reader.kind is ListKind.INDEX) == case["is_index"]
        wanted = {one["loc"]: one["lastmod"] for one in case["entries"]}
        for entry in entries:
            if wanted.get(entry.url):
                dated += 1
                dates += (
                    datetime.fromtimestamp(entry.lastmod_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") == wanted[entry.url]
                )
    tell("sitemaps of crawler-commons, entries", right, total)
    tell("sitemaps of crawler-commons, dates", dates, dated)
    assert right == total > 30
    assert dates == dated > 50


def test_documents_that_crawler_commons_refuses(lists: Path, tell: Tell) -> None:
    """X3, Q5: broken and hostile documents: an external entity is not read, all that is whole is."""
    refused = [case for case in cases(lists) if "raises" in case]
    found = {}
    for case in refused:
        _, entries = read(base64.b64decode(case["content_b64"]), case["url"], case["content_type"])
        found[case["test"].rpartition(".")[2]] = [entry.url for entry in entries]
    assert all("do-not-visit" not in url for urls in found.values() for url in urls)
    assert found["lambda$testSitemapXXE$0"] == ["http://www.example.com/visit-here"]
    assert found["lambda$testSitemapWithInvalidContent$3"] == []
    tell(
        "documents that crawler-commons refuses, read without harm", len(found), len({case["test"] for case in refused})
    )


def test_links_of_feedparser(lists: Path, tell: Tell) -> None:
    """X3: the link of an entry, of every file that says what it is."""
    right = total = 0
    for path in sorted((lists / "feedparser").rglob("*.xml")):
        body = path.read_bytes()
        expected = re.search(rb"Expect:[^\n]*entries\[0\](?:\['link'\]|\.link) == '([^']*)'", body)
        if expected is None:
            continue
        total += 1
        _, entries = read(body, "http://127.0.0.1:8097/feed.xml")
        right += bool(entries) and entries[0].url.rstrip("/").lower() == expected[1].decode().rstrip("/").lower()
    tell("feeds of feedparser, links", right, total)
    assert right == total >= 10


def test_every_feed_of_feedparser_is_read(lists: Path, tell: Tell) -> None:
    """X3, Q5: each of them is a feed, whatever else it tests."""
    files = sorted((lists / "feedparser").rglob("*.xml"))
    known = sum(read(path.read_bytes(), "http://feed.example/")[0].kind is ListKind.FEED for path in files)
    tell("feeds of feedparser, known as feeds", known, len(files))
    assert known == len(files) > 300


@pytest.mark.parametrize(
    ("name", "kind", "entries"),
    [
        ("feed1.atom", ListKind.FEED, 1),
        ("feed2.rss", ListKind.FEED, 1),
        ("feed.json", ListKind.FEED, 25),
        ("sitemap.xml", ListKind.SITEMAP, 84),
        ("sitemap.xml.gz", ListKind.SITEMAP, 84),
        ("sitemap2.xml", ListKind.INDEX, 2),
        ("sitemap-hreflang.xml", ListKind.SITEMAP, 4),
    ],
)
def test_documents_of_trafilatura(lists: Path, name: str, kind: ListKind, entries: int) -> None:
    """X3: real documents of each kind."""
    reader, found = read((lists / "trafilatura" / name).read_bytes(), "https://www.example.com/")
    assert (reader.kind, len(found)) == (kind, entries)
