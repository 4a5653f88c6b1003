"""PDFs on the simulated web, under virtual time: what only they lead to is found, and their bodies are not kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World, die_before_settling
from served import records
from simulation import PATIENT, Simulated, simulate

from nephila.model.events import EventKind
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.testing.web.roles import Role
from nephila.testing.web.truth import Expect, WalkPolicy

READS_PDF = replace(PATIENT, pdf=replace(PATIENT.pdf, links=True))
KEEPS_PDF = replace(PATIENT, pdf=replace(PATIENT.pdf, links=True, keep=True))
POLICY = WalkPolicy(pdf_links=True, skipped_extensions=(".png",))


def web(seed: int = 5) -> SimulatedWeb:
    """A web with many PDFs."""
    spec = WebSpec.standard(seed)
    return SimulatedWeb(replace(spec, hosts=20, pages=600, page_mix=replace(spec.page_mix, document=0.3)))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """One crawl that reads PDFs."""
    return simulate(web(), tmp_path_factory.mktemp("pdf") / "crawl", READS_PDF)


def asked(crawled: Simulated) -> set[str]:
    urls = (f"http://{sent.host}{sent.target}" for sent in crawled.sent if sent.target != "/robots.txt")
    return {identity for identity in map(crawled.web.identify, urls) if identity is not None}


def test_pages_that_only_a_pdf_leads_to_are_found(crawled: Simulated, say: Callable[[str], None]) -> None:
    """X4: exactly what is reachable with PDFs is asked for; without them, exactly what is reachable without."""
    truth = crawled.web.truth("Nephila", policy=POLICY)
    behind = {url for url, page in truth.pages.items() if page.role is Role.PDF and page.expect is Expect.PAGE}
    say(f"{len(behind)} pages of {len(truth.pages)} only behind a PDF")
    assert len(behind) > 20
    assert asked(crawled) == truth.urls()
    done = {crawled.web.identify(event.url) for event in crawled.recorder.events if event.is_page()}
    assert behind <= done


def test_a_crawl_that_was_not_asked_to_reads_none(tmp_path: Path) -> None:
    """X4, S2: no PDF is asked for by default."""
    crawled = simulate(web(), tmp_path / "crawl")
    assert asked(crawled) == crawled.web.truth("Nephila").urls()
    assert not crawled.recorder.urls(EventKind.PDF_LINKS_EXTRACTED)


def test_every_pdf_is_told_with_its_links(crawled: Simulated) -> None:
    """X4, O1: one event a PDF, with how many links were in annotations and in the text."""
    told = [event for event in crawled.recorder.events if event.kind is EventKind.PDF_LINKS_EXTRACTED]
    truth = crawled.web.truth("Nephila", policy=POLICY)
    assert {crawled.web.identify(event.url) for event in told} == truth.urls(Expect.DOCUMENT) - {
        url for url, page in truth.pages.items() if page.role is not Role.PDF
    }
    assert all(dict(event.counts)["annotations"] >= 1 for event in told)
    assert {dict(event.counts)["pages"] for event in told} == {1}
    assert any(dict(event.counts)["in_text"] >= 1 for event in told)
    assert all(not event.detail for event in told)


def test_politeness_holds_with_pdfs(crawled: Simulated) -> None:
    """X4, P1, P2, P5: they are asked for as everything else is."""
    assert not crawled.audit.violations


@pytest.mark.parametrize("keep", [False, True])
def test_the_body_of_a_pdf_is_kept_only_where_that_is_asked_for(tmp_path: Path, *, keep: bool) -> None:
    """X4, W1, H7: else the exchange is stored with its headers, marked as truncated, its links beside it."""
    out = tmp_path / "crawl"
    simulate(web(6), out, KEEPS_PDF if keep else READS_PDF)
    seen = 0
    for _, record, block in records(out):
        url = record.rec_headers.get_header("WARC-Target-URI")
        if record.rec_type != "response" or not url.endswith(".pdf") or b"application/pdf" not in block:
            continue
        seen += 1
        head, _, body = block.partition(b"\r\n\r\n")
        assert bool(body) is keep, url
        assert (record.rec_headers.get_header("WARC-Truncated") == "unspecified") is not keep
        assert b"200" in head.partition(b"\r\n")[0]
    assert seen > 10
    links = [block for _, record, block in records(out) if record.rec_type == "metadata" and b"outlink" in block]
    assert any(b" pdf-text" in block for block in links)


@pytest.mark.parametrize("keep", [False, True])
def test_a_crawl_that_dies_finds_what_is_behind_pdfs_all_the_same(
    tmp_path: Path, say: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, *, keep: bool
) -> None:
    """X4, F10, Q4: a PDF in the archive is settled from there, by the links that were written down with it."""
    small = replace(web(7).spec, hosts=6, pages=120)
    world = World(SimulatedWeb(small), tmp_path, KEEPS_PDF if keep else READS_PDF)
    died: list[str] = []
    die_before_settling(monkeypatch, lambda url: url.endswith(".pdf"), died)
    for _ in range(5):
        assert world.crawl(1 << 30) is None
    monkeypatch.undo()
    assert world.crawl() is not None
    truth = world.web.truth("Nephila", policy=POLICY)
    wanted = truth.urls(Expect.PAGE, Expect.RECOVERS)
    behind = {url for url, page in truth.pages.items() if page.role is Role.PDF and page.expect is Expect.PAGE}
    settled = sum(recovered.settled for recovered in world.recovered)
    say(f"{len(behind)} pages behind PDFs; {settled} captures settled from the archive")
    with closing(sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT url FROM captures WHERE robots = 0 AND status = 200").fetchall()
    assert settled >= 5
    assert behind
    assert len({world.web.identify(url) for url in died}) == 5, "each of them was settled from the archive"
    assert wanted <= {world.web.identify(url) for (url,) in rows}
    # What was on the wire is asked for again; a Retry-After that was on the wire with it is known to nobody.
    assert {violation.kind for violation in world.auditor.report().violations} <= {"repeat", "retry_after"}
