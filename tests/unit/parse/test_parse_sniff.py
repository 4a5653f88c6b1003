from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.parse import document_type, media_type, media_type_of_header
from nephila.parse.media import media_type_in

PNG = b"\x89PNG\r\n\x1a\n...."


@pytest.mark.parametrize(
    ("header", "essence"),
    [
        ("text/html", "text/html"),
        ("TEXT/HTML;CHARSET=GBK", "text/html"),
        (" text/html ; charset=x", "text/html"),
        ("text/html;x", "text/html"),
        ("text/plain, text/html", "text/html"),
        ("text/html, */*", "text/html"),
        ('text/html;x=",text/plain', "text/html"),
        ("html", ""),
        ("text/", ""),
        ("/html", ""),
        ("te xt/html", ""),
        ("", ""),
        ("charset=utf-8", ""),
    ],
)
def test_header_is_read_as_browsers_read_it(header: str, essence: str) -> None:
    """H7: broken values included."""
    assert media_type_of_header(header) == essence


def test_charset_is_inherited_only_from_a_header_of_the_same_type() -> None:
    """X1: several Content-Type headers act as Fetch says."""

    def charset(header: str) -> str | None:
        media = media_type_in(header)
        return media.parameters.get("charset") if media else None

    assert charset("text/html;charset=gbk, text/html") == "gbk"
    assert charset("text/plain;charset=gbk, text/html") is None
    assert charset('text/html;charset="g\\bk"') == "gbk"
    assert charset("text/html;charset=a;charset=b") == "a"


@pytest.mark.parametrize(
    ("body", "essence"),
    [
        (b"<!DOCTYPE html><p>", "text/html"),
        (b" \n<hTmL >", "text/html"),
        (b"<!--x", "text/html"),
        (b"<p>", "text/html"),
        (b"<px>", "text/plain"),
        (b" <?xml version='1.0'?>", "text/xml"),
        (b"%PDF-1.7", "application/pdf"),
        (PNG, "image/png"),
        (b"RIFF1234WEBPVP8 ", "image/webp"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b\x08", "application/x-gzip"),
        (b"\xff\xfeh\0", "text/plain"),
        (b"just words", "text/plain"),
        (b"words\0", "application/octet-stream"),
        (b"", "text/plain"),
    ],
)
def test_missing_type_is_sniffed(body: bytes, essence: str) -> None:
    """H7: sniffed when missing, unusable, or one of the types that say nothing."""
    for header in ("", "nonsense", "unknown/unknown", "application/unknown", "*/*"):
        assert media_type(header, body) == essence


@pytest.mark.parametrize("header", ["html", "text/html charset=utf-8", "text", "unknown/unknown", "*/*", ""])
def test_before_there_are_bytes_a_type_that_says_nothing_is_left_open(header: str) -> None:
    """H7: or pages of careless servers would be dropped unread, as if they were plain text."""
    for url in ("https://e.example/", "https://e.example/a.pdf"):
        assert document_type(url, header, b"") == ""
        assert document_type(url, header, b"<!doctype html><p>") == "text/html"
    assert document_type("https://e.example/", "text/plain", b"") == "text/plain"


def test_given_type_is_believed() -> None:
    """H7: a header that says something is not second-guessed."""
    assert media_type("text/plain; charset=us-ascii", b"<!doctype html>") == "text/plain"
    assert media_type("application/json", b"<!doctype html>") == "application/json"
    assert media_type("image/gif", PNG) == "image/gif"
    assert media_type("text/html", b"plain words") == "text/html"


def test_the_types_that_apache_sent_for_everything_are_text_only_if_they_look_like_it() -> None:
    """H7: text or binary."""
    assert media_type("text/plain", b"words") == "text/plain"
    assert media_type("text/plain; charset=ISO-8859-1", b"\x00\x01\x02") == "application/octet-stream"
    assert media_type("text/plain; charset=utf-7", b"\x00\x01\x02") == "text/plain"


@pytest.mark.parametrize(
    ("body", "essence"),
    [
        (b"<rss version='2.0'>", "application/rss+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- x --><!DOCTYPE x>\n<feed xmlns='x'>", "application/atom+xml"),
        (
            b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>",
            "application/rss+xml",
        ),
        (b"<rdf:RDF>", "text/html"),
        (b"<feedback>", "text/html"),
        (b"<html><rss>", "text/html"),
    ],
)
def test_feed_served_as_html_is_a_feed(body: bytes, essence: str) -> None:
    """H7: feeds are told from HTML."""
    assert media_type("text/html; charset=utf-8", body) == essence


@given(st.text(max_size=200), st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_header_and_bytes_give_an_essence(header: str, body: bytes) -> None:
    """H7, Q5: never an exception, always type/subtype in lower case."""
    kind, slash, subtype = media_type(header, body).partition("/")
    assert kind
    assert slash
    assert subtype
    assert (kind + subtype).islower() or not any(character.isalpha() for character in kind + subtype)
