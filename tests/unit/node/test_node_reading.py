"""How answers become pages: which of their headers count."""

from __future__ import annotations

from dataclasses import replace

from nephila.model.exchange import Fetched
from nephila.model.page import Directives
from nephila.model.settings import Settings
from nephila.node.reading import page_reader

SITE = "http://site.example"


def answer(body: bytes, *headers: tuple[str, str]) -> Fetched:
    return Fetched(f"{SITE}/dir/page", b"", b"", b"", 200, headers, body, "192.0.2.1", 0, 0, 0)


def test_the_last_content_type_that_is_usable_makes_the_page() -> None:
    """H7, X1: what it is, and its charset, which an equal type before it may have told."""
    read = page_reader(Settings())
    body = "<title>мир</title>".encode("koi8-r")
    page = read(
        answer(
            body,
            ("content-type", "text/html; charset=koi8-r"),
            ("content-type", "*/*"),
            ("content-type", "text/html"),
        )
    )
    assert page is not None
    assert (page.charset, page.title) == ("KOI8-R", "мир")
    assert read(answer(body, ("content-type", "text/plain"), ("content-type", "text/html"))) is not None
    assert read(answer(body, ("content-type", "text/html"), ("content-type", "image/png"))) is None


def test_a_refresh_header_is_followed() -> None:
    """X1: as browsers do."""
    page = page_reader(Settings())(answer(b"", ("content-type", "text/html"), ("refresh", "0; url=next")))
    assert page is not None
    assert [(link.url, link.tag) for link in page.links] == [(f"{SITE}/dir/next", "meta")]


def test_an_unchanged_page_asks_by_the_headers_of_its_304() -> None:
    """X2, K3: for our agent or all; without such a header it says nothing, and what was known stays."""
    read = page_reader(Settings())
    unchanged = replace(answer(b"", ("x-robots-tag", "noindex"), ("x-robots-tag", "other: noarchive")), status=304)
    page = read(unchanged)
    assert page is not None
    assert page.directives == Directives(noindex=True)
    assert read(replace(answer(b"", ("content-type", "text/html")), status=304)) is None
