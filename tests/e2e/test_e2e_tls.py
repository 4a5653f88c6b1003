"""TLS through the command line: what is refused and why, and what is recorded where the user accepts it anyway."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import records, run
from tls_sites import Sites, tls_sites

WRONG = {
    "expired": "certificate has expired",
    "future": "certificate is not valid yet",
    "misnamed": "certificate is for another name",
    "unknown": "certificate comes from an unknown authority",
    "self-signed": "certificate is self-signed",
    "tls10": "protocol is outdated",
    "tls11": "protocol is outdated",
}
ANCIENT = {"ancient": "protocol is outdated"}
QUICK = ("--scope", "host", "--delay", "0", "--max-wait", "1", "--timeout", "5", "--json")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with tls_sites(tmp_path_factory.mktemp("tls")) as found:
        yield found


def crawl(sites: Sites, seeds: Iterable[str], out: Path, *flags: str | Path, code: int = 0) -> tuple[Any, str]:
    """Crawl; the summary, and what was said on standard error."""
    result = run("crawl", *seeds, "--out", out, *sites.flags, *QUICK, *flags, code=code)
    return json.loads(result.stdout), result.stderr


def by_address(sites: Sites) -> str:
    """The correct site by its address, which its certificate does not name."""
    return f"https://127.0.0.1:{sites.ports['good']}/"


@pytest.fixture(scope="module")
def refused(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl as it is by default, but for the authority."""
    out = tmp_path_factory.mktemp("refused") / "crawl"
    seeds = [*map(sites.url, ("good", *WRONG, *ANCIENT)), by_address(sites)]
    summary, _ = crawl(sites, seeds, out, "--ca-file", sites.authority)
    assert (summary["pages"], summary["errors"]) == (1, {"tls": len(seeds) - 1})
    return out


@pytest.fixture(scope="module")
def accepted(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that accepts bad certificates."""
    out = tmp_path_factory.mktemp("accepted") / "crawl"
    summary, said = crawl(
        sites, map(sites.url, ("good", *WRONG)), out, "--ca-file", sites.authority, "--bad-certificates"
    )
    assert (summary["pages"], summary["errors"]) == (1 + len(WRONG), {})
    assert "bad certificates are accepted" in " ".join(said.split())
    return out


def events(out: Path, kind: str) -> dict[str, dict[str, Any]]:
    """The events of a kind by their URL."""
    lines = [line for path in (out / "events").glob("*.jsonl") for line in path.read_text().splitlines()]
    return {event["url"]: event for event in map(json.loads, lines) if event["event"] == kind}


@pytest.mark.parametrize(("name", "words"), (WRONG | ANCIENT).items())
def test_a_site_whose_tls_is_wrong_is_refused_with_the_reason(
    refused: Path, sites: Sites, name: str, words: str
) -> None:
    """H1, H5: by default; told for the robots.txt, without which no page may be asked for."""
    error = events(refused, "error")[sites.url(name, "/robots.txt")]
    assert error["reason"] == "tls"
    assert words in error["detail"]
    assert sites.url(name) not in events(refused, "fetch_ok")


def test_why_tells_the_reason(refused: Path, sites: Sites) -> None:
    """H1, T8: the page waits for its robots.txt, which cannot be had because of the certificate."""
    story = json.loads(run("why", refused, sites.url("expired"), "--json").stdout)
    assert story["state"] != "completed"
    assert "tls: certificate has expired" in story["robots"]["rule"]


def test_without_robots_txt_the_page_itself_is_refused_with_the_reason(tmp_path: Path, sites: Sites) -> None:
    """H1, H5, W3: a final failure: a dead letter at once, in the catalogue with its kind and detail."""
    seeds = map(sites.url, ("good", *WRONG))
    summary, _ = crawl(sites, seeds, tmp_path / "crawl", "--ca-file", sites.authority, "--no-robots")
    assert (summary["pages"], summary["dead"]) == (1, len(WRONG))
    connection = sqlite3.connect(f"file:{tmp_path}/crawl/catalogue.sqlite?mode=ro", uri=True)
    try:
        found = dict(connection.execute("SELECT url, detail FROM errors WHERE kind = 'tls'"))
        letters = set(connection.execute("SELECT url, kind FROM dead_letters"))
    finally:
        connection.close()
    assert letters == {(sites.url(name), "tls") for name in WRONG}
    assert all(words in found[sites.url(name)] for name, words in WRONG.items())


def test_an_authority_of_ones_own_is_trusted_only_when_it_is_named(tmp_path: Path, sites: Sites) -> None:
    """H1: --ca-file adds to the usual authorities; without it the correct site is as unknown as others."""
    summary, _ = crawl(sites, [sites.url("good")], tmp_path / "crawl", code=1)
    assert (summary["pages"], summary["errors"]) == (0, {"tls": 1})
    (error,) = events(tmp_path / "crawl", "error").values()
    assert error["detail"] == WRONG["unknown"]


def test_a_certificate_must_name_the_address_where_that_is_what_was_asked_for(refused: Path, sites: Sites) -> None:
    """H1: a trusted certificate for a name is not one for its address."""
    error = events(refused, "error")[f"{by_address(sites)}robots.txt"]
    assert error["detail"] == "certificate is for another address"


def test_an_authority_file_that_is_not_there_is_the_users_mistake(tmp_path: Path, sites: Sites) -> None:
    """H1, C4: told in a sentence before anything is fetched, and the same command works once it is there."""
    command = ("crawl", sites.url("good"), "--out", tmp_path / "crawl", *sites.flags, *QUICK, "--ca-file")
    result = run(*command, tmp_path / "none.pem", code=2)
    assert "cannot be read: No such file or directory" in " ".join(result.stderr.split())
    assert json.loads(run(*command, sites.authority).stdout)["pages"] == 1


@pytest.mark.parametrize(("name", "words"), WRONG.items())
def test_an_accepted_site_is_recorded_as_such_in_the_archive_and_in_the_events(
    accepted: Path, sites: Sites, name: str, words: str
) -> None:
    """H1, W1: the metadata record of every exchange with it, robots.txt included, and the event of the page."""
    recorded = metadata(accepted)
    for path in ("/", "/robots.txt"):
        assert f"bad-certificate: {words}" in recorded[sites.url(name, path)]
    told = events(accepted, "fetch_ok")[sites.url(name)]
    assert told["detail"].startswith(f"bad certificate: {words}")
    assert "reason" not in told, "it counts as a page all the same"


def test_a_correct_site_is_not_recorded_as_bad(accepted: Path, refused: Path, sites: Sites) -> None:
    """H1: whatever the settings allow."""
    for out in (accepted, refused):
        assert "bad-certificate" not in metadata(out)[sites.url("good")]
        assert "detail" not in events(out, "fetch_ok")[sites.url("good")]


def metadata(out: Path) -> dict[str, str]:
    """The metadata records by the URL of their exchange."""
    return {
        record.rec_headers["WARC-Target-URI"]: block.decode()
        for _, record, block in records(out)
        if record.rec_type == "metadata"
    }
