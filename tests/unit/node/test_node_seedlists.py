"""Seeds from documents: sitemaps, feeds, outlines, compressed or not; and what is a plain list after all."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from nephila.model.errors import UsageError
from nephila.node.seedlists import UrlSeeds, seeds_in

SITEMAP = b"<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://b.example/2</loc></url></urlset>"
INDEX = b"<sitemapindex><sitemap><loc>https://a.example/s.xml.gz</loc></sitemap></sitemapindex>"
RSS = b"<rss><channel><link>https://a.example/</link><item><link>https://a.example/i</link></item></channel></rss>"
OPML = b'<opml><body><outline xmlUrl="https://a.example/feed" htmlUrl="https://a.example/"/></body></opml>'
JSON = b'{"version": "https://jsonfeed.org/version/1", "items": [{"url": "https://a.example/j"}]}'


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (SITEMAP, ["https://a.example/1", "https://b.example/2"]),
        (gzip.compress(SITEMAP), ["https://a.example/1", "https://b.example/2"]),
        (b"\xef\xbb\xbf\n " + RSS, ["https://a.example/i"]),
        (OPML, ["https://a.example/feed", "https://a.example/"]),
        (JSON, ["https://a.example/j"]),
        (b"example.org\n# no\nhttps://c.example/\n", ["example.org", "https://c.example/"]),
    ],
)
def test_a_file_of_seeds_may_be_any_document_that_lists_urls(tmp_path: Path, content: bytes, texts: list[str]) -> None:
    """S1: it is told by its content, not by its name."""
    path = tmp_path / "seeds"
    path.write_bytes(content)
    seeds = list(seeds_in(path))
    assert [seed.text for seed in seeds] == texts
    assert not any(seed.lists for seed in seeds)


def test_sitemaps_in_an_index_are_lists_of_seeds(tmp_path: Path) -> None:
    """S1: and so is a URL that is named as a list."""
    path = tmp_path / "index.xml"
    path.write_bytes(INDEX)
    assert [(seed.text, seed.lists) for seed in seeds_in(path)] == [("https://a.example/s.xml.gz", True)]
    assert [(seed.text, seed.lists) for seed in UrlSeeds("https://a.example/x")] == [("https://a.example/x", True)]


def test_a_pipe_is_as_good_as_a_file(tmp_path: Path) -> None:
    """S1: it cannot be looked into beforehand."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(SITEMAP,))
    writer.start()
    assert len(list(seeds_in(path))) == 2
    writer.join()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<urlset><url><loc>/relative</loc></url></urlset>", "names no URL"),
        (gzip.compress(b"\0\1\2" * 50), "compressed with gzip"),
        (b"\0\1\2", "binary file"),
    ],
)
def test_documents_that_give_no_seed_are_refused_in_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    """S1: one sentence that names the file."""
    path = tmp_path / "seeds"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        list(seeds_in(path))


def test_a_directory_and_a_missing_file_are_told_at_once(tmp_path: Path) -> None:
    """S1: before anything is crawled."""
    with pytest.raises(UsageError, match="directory"):
        seeds_in(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        seeds_in(tmp_path / "none")
