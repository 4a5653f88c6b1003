"""What a crawl does with its plugins as a whole: which types it fetches, what it keeps of a PDF, what it counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_plugins import Hook, KeepsOut, Lengths, Quick

from nephila.frontier.scope import Scope, document_endings
from nephila.model.errors import UsageError
from nephila.model.exchange import Fetched
from nephila.model.settings import ScopeSettings, Settings
from nephila.node.addressing import identifier_of
from nephila.node.extending import bare_page, extensions_of, fetched_types, read_by, seeds_by
from nephila.node.plugin_books import PluginBooks, plugin_counts
from nephila.plugins.offspring import RaisedError
from nephila.testing.clock import VirtualClock
from nephila.urls import Address

DEFAULTS = Settings()
PDF = replace(DEFAULTS, pdf=replace(DEFAULTS.pdf, links=True))


def fetched(*headers: tuple[str, str]) -> Fetched:
    return Fetched("https://a.test/x.pdf", b"", b"", b"%PDF-", 200, headers, b"%PDF-", "", 0, 0, 0)


def test_without_plugins_there_is_nothing_to_ask() -> None:
    """E1, Q1: no object at all."""
    assert extensions_of(DEFAULTS, (), VirtualClock(), threaded=False) is None
    assert (read_by(None), seeds_by(None), fetched_types(DEFAULTS, None)) == ((), (), DEFAULTS.fetch.types)


def test_types_are_fetched_because_somebody_reads_them() -> None:
    """X4, H7, E1: PDFs only with --pdf-links; an extractor's types; everything stays everything."""
    assert fetched_types(PDF, extensions_of(PDF, (), VirtualClock(), threaded=False)) == (
        "text/html",
        "application/xhtml+xml",
        "application/pdf",
    )
    extractor = Lengths()
    extractor.media_types = ("text/x-own",)  # type: ignore[assignment]
    found = fetched_types(DEFAULTS, extensions_of(DEFAULTS, [extractor], VirtualClock(), threaded=False))
    assert found is not None
    assert found[-1] == "text/x-own"
    everything = replace(DEFAULTS, fetch=replace(DEFAULTS.fetch, types=("*/*",)))
    assert fetched_types(everything, extensions_of(everything, [extractor], VirtualClock(), threaded=False)) is None


def test_a_pdf_obeys_the_headers_and_is_kept_on_demand() -> None:
    """X4, X2: X-Robots-Tag speaks for what has no meta element; the bytes stand for the text."""
    page = bare_page(fetched(("x-robots-tag", "nofollow, noindex")), "application/pdf", PDF)
    assert (page.directives.nofollow, page.directives.noindex, page.directives.noarchive) == (True, True, False)
    assert not page.keep_body
    assert len(page.text_hash) == 8
    assert bare_page(fetched(), "application/pdf", replace(PDF, pdf=replace(PDF.pdf, keep=True))).keep_body
    assert bare_page(fetched(), "text/x-own", PDF).keep_body
    saved = replace(PDF, fetch=replace(PDF.fetch, types=("text/html", "application/pdf")))
    assert bare_page(fetched(), "application/pdf", saved).keep_body


def test_pdfs_are_in_scope_only_where_they_are_read() -> None:
    """X4, S2: and no other document with them; office documents likewise."""
    identifier = identifier_of(DEFAULTS, 1)

    def verdict(url: str, *, pdf: bool = False, office: bool = False) -> tuple[str, str] | None:
        address = identifier.identify(url)
        assert isinstance(address, Address)
        return Scope(ScopeSettings(mode="all"), documents=document_endings(pdf=pdf, office=office)).judge(address, 1)

    assert verdict("https://a.test/x.pdf", pdf=True) is None
    assert verdict("https://a.test/x.pdf") == ("extension", ".pdf (PDF document)")
    assert verdict("https://a.test/x.docx", pdf=True) == ("extension", ".docx (office document)")
    assert verdict("https://a.test/x.docx", office=True) is None
    assert verdict("https://a.test/x.doc", office=True) == ("extension", ".doc (office document)")


def test_counts_are_kept_over_runs_and_processes(tmp_path: Path) -> None:
    """E1: what `status` shows, from a file for each process; a damaged one costs its counts only."""
    for number, writer in ((3, 0), (2, 0), (4, 1)):
        extensions = extensions_of(DEFAULTS, [Quick()], VirtualClock(), threaded=False)
        assert extensions is not None
        books = PluginBooks(tmp_path, writer, VirtualClock())
        books.keep(extensions.plugins)
        for _ in range(number):
            extensions.plugins[0].failed(RaisedError("x"), "")
        books.write()
    (tmp_path / "2.json").write_text('{"quick": {"calls": "x"}, "y": 3')
    (tmp_path / "3.json").write_text("[]")
    assert plugin_counts(tmp_path) == {"quick": {"calls": 9, "failures": 9, "overruns": 0, "lost": 0, "off": 0}}
    assert plugin_counts(tmp_path / "nothing") == {}


def test_names_are_unique_and_ours_is_taken() -> None:
    """E1: failures are counted by name."""
    impostor = KeepsOut()
    impostor.name = "pdf-links"
    for plugins in ([impostor], [Hook(), Hook()]):
        with pytest.raises(UsageError, match="two plugins are called"):
            extensions_of(DEFAULTS, plugins, VirtualClock(), threaded=False)
