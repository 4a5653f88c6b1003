"""Replay by pywb, from our WARC files and our index, over a real socket."""

import re
from collections.abc import Iterator
from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from wayback import REQUIREMENTS, Wayback, commands, replaying

from .conftest import StoredCrawl


@pytest.fixture(scope="module")
def wayback(stored_crawl: StoredCrawl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wayback]:
    with replaying(tmp_path_factory.mktemp("pywb"), stored_crawl.directory, stored_crawl.directory) as running:
        yield running


def test_pages_are_replayed_byte_for_byte(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """W1: what the fetcher decoded is what a reader of the archive sees, whatever coding it came in."""
    replayed = 0
    for (capture, _), row in zip(stored_crawl.written, stored_crawl.rows, strict=True):
        fetched = capture.fetched
        if row.kind != "response" or fetched.truncated or fetched.header("content-encoding") == "zstd":
            continue  # pywb hands a cut body out as far as it likes, and Zstandard as it is stored
        status, body, headers = wayback.get(fetched.url)
        assert (status, fetched.url) == (fetched.status, fetched.url)
        assert body == fetched.body, fetched.url
        assert headers["memento-datetime"] == "Thu, 01 Jan 2026 00:00:00 GMT"
        replayed += 1
    assert replayed >= 12


def test_a_revisit_is_replayed_with_the_body_of_its_original(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """D2: the second copy is found through WARC-Refers-To, though its URL is another."""
    copy = stored_crawl.written[-2][0].fetched
    assert stored_crawl.rows[-2].kind == "revisit"
    status, body, _ = wayback.get(copy.url)
    assert (status, body) == (200, copy.body)


def test_a_page_that_had_not_changed_is_replayed_with_its_body(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """H3: a reader who asks for the time of the 304 gets the page, not the 304."""
    unchanged = stored_crawl.written[-1][0]
    assert unchanged.not_modified
    page = stored_crawl.written[0][0].fetched
    assert unchanged.fetched.url == page.url
    status, body, headers = wayback.get(page.url, "20260101000100")
    assert (status, body) == (200, page.body)
    assert headers["memento-datetime"] == "Thu, 01 Jan 2026 00:00:00 GMT"


def test_the_robots_txt_in_force_is_replayed(wayback: Wayback, stored_crawl: StoredCrawl) -> None:
    """P1, K1: what robots.txt said at that time can be looked up under its origin."""
    [rules] = [capture.rules for capture, _ in stored_crawl.written if capture.rules is not None]
    assert wayback.get("https://spiders.example:8443/robots.txt")[:2] == (200, rules)


def test_what_was_never_captured_is_not_found(wayback: Wayback) -> None:
    """W1: the index names captures only."""
    assert wayback.get("https://spiders.example/never")[0] == 404


@pytest.mark.parametrize("version", ["3.11", "3.14"])
def test_the_environment_of_pywb_can_be_made_with_any_python(version: str) -> None:
    """What its packages need there has a hash as well, or pip would refuse all of them."""
    lock = REQUIREMENTS.read_text(encoding="utf-8")
    there = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    python = {"python_version": version, "python_full_version": f"{version}.0", "extra": ""}
    installed = distributions(path=[str(path) for path in commands().parent.glob("lib/*/site-packages")])
    wanted = [Requirement(line) for one in installed for line in one.requires or ()]
    needed = {canonicalize_name(one.name) for one in wanted if one.marker is None or one.marker.evaluate(python)}
    assert "warcio" in needed
    assert needed <= there
