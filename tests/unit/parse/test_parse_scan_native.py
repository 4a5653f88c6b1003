"""The scanner in C against its twin in Python: the same for any bytes; and what it costs."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import pytest
from heaps_of_html import documents, heaps
from hypothesis import example, given, settings
from hypothesis import strategies as st

import scan_tables
from nephila.native import AVAILABLE, native
from nephila.parse.attributes import refresh_url, srcset_urls
from nephila.parse.scan import Scan, native_scan, plain_scan


def test_the_extension_is_there() -> None:
    """Without it nothing below compares anything."""
    assert AVAILABLE


def assert_same(body: bytes) -> None:
    for images in (False, True):
        plain, fast = plain_scan(body, images=images), native_scan(body, images=images)
        assert fast == plain
        assert list(fast.findings.references) == list(plain.findings.references)


@given(heaps)
@settings(max_examples=400, deadline=None)
@example("<a href=1><div>x</a>")
@example("<svg><a href=1 />x<title/>y<style/>z</svg>")
@example("<nobr><nobr><a href=1><nobr>")
@example("<template><svg><style/><a href=1></template><a href=2>")
@example("<a href><a\0>word")
@example("<a href=1 rel='ÄNoFollow\u2003É'>x</a><a href=1 rel=ugc>y</a>")
@example("<a href=1> " + "word\u2003 " * 90 + "</a>")
def test_any_heap_of_tags_is_read_alike(html: str) -> None:
    """X1, X5, D3: findings, doubt, signature, likeness, language."""
    assert_same(html.encode())


@given(documents)
@settings(max_examples=100, deadline=None)
def test_documents_are_read_alike(html: str) -> None:
    """X1, X5, D3: those that are nested well."""
    assert_same(html.encode())


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=8),
            st.sampled_from(
                [b"<a href='", b"'>", b"</a>", b"<title>", b"<p>", b"&#", b"&", b"<!--", b"\xe3\x81", b"\xff"]
            ),
        ),
        max_size=40,
    ).map(b"".join)
)
@settings(max_examples=400, deadline=None)
@example(b"\xff<a href=\xe3\x81>\xf0\x9f\x98\x80\xed\xa0\x80</a>\xc3")
def test_any_bytes_are_read_alike(body: bytes) -> None:
    """X1, Q5: bytes that are not UTF-8 are what decoding with replacement makes of them."""
    assert_same(body)
    assert native_scan(body.decode("utf-8", "replace").encode()) == native_scan(body)


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_words_of_any_script_are_the_same_words(text: str) -> None:
    """D3: letters, digits and lower case of all of Unicode."""
    assert_same(f"<p>{text} {text}".encode("utf-8", "replace"))


def test_every_character_is_the_same_word() -> None:
    """D3: each one of the planes that have letters, alone and in a word."""
    for first in range(0, 0x40000, 0x400):
        codes = [code for code in range(first, first + 0x400) if not 0xD800 <= code <= 0xDFFF and chr(code) not in "<&"]
        words = "".join(f"{chr(code)} x{chr(code)} x{chr(code)}\u0301 " for code in codes)
        body = f"<p>{words}".encode()
        assert native_scan(body).signature == plain_scan(body).signature, hex(first)


def test_pages_longer_than_the_limits_are_read_alike() -> None:
    """X1, Q5: words, text, tags, depth, references, numbers of anchors."""
    for body in (
        "<p>" + "many words " * 30_000,
        "<a href=1>" + "é" * 1_000_001,
        "<p>" * 290_001 + "x",
        "<div>" * 250 + "<a href=1>x",
        "".join(f"<a href={number}>" for number in range(20_001)),
        "".join(f"<meta name=a content={number}>" for number in range(1_001)),
        "".join(f"<link rel=alternate hreflang=de href={number % 9}>" for number in range(1_001)),
        "".join(f"<a href={number}><object>x" for number in range(20)),
        "<title>" + "x " * 2_000 + "</title><a href=1>" + "y " * 1_000,
        f"<img srcset='{', '.join(map(str, range(60_000)))}'>",
        "<p>" + "e\u0301 " * 60_000,
        *(f"<p>{'e' * (54 + more)}{chr(0x301)} x" for more in range(20)),
        f"<{'x' * 100_000} a><{'X' * 100_000}></{'x' * 100_000}>",
    ):
        assert_same(body.encode())


@pytest.mark.parametrize("part", scan_tables.PARTS)
def test_the_tables_of_both_are_one(part: str) -> None:
    """X1: whoever changes a table of `nephila.parse` runs tools/scan_tables.py."""
    assert scan_tables.path_of(part).read_text(encoding="utf-8") == scan_tables.header(part)


@pytest.mark.parametrize("arguments", [(), ("text", False, refresh_url, srcset_urls), (b"x", False)])
def test_wrong_arguments_are_an_error(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match="scan_page"):
        native.scan_page(*arguments)


def test_an_error_of_a_reader_in_python_comes_out() -> None:
    """X1: nothing is swallowed, nothing is lost."""

    def broken(_: str) -> str:
        raise LookupError("no reader")

    with pytest.raises(LookupError, match="no reader"):
        native.scan_page(b"<meta http-equiv=refresh content='0;url=x'><a href=1>", True, broken, srcset_urls)
    with pytest.raises(LookupError, match="no reader"):
        native.scan_page(b"<img srcset='x'><a href=1>", True, refresh_url, broken)  # type: ignore[arg-type]  # on purpose


def test_nothing_is_left_behind() -> None:
    """Q5: memory is what it was, whatever was read."""
    bodies = [
        "<a href=1 rel='É x'>x</a><meta name=a content=b><img srcset='a, b'>".encode() * 200,
        b"<a href=1><div></a>" * 500,
        b"\xff" * 5_000 + b"<title>x</title><meta http-equiv=refresh content='0;url=x'>",
        "".join(f"<p>word{number} <a href={number}>&amp;</a>" for number in range(2_000)).encode(),
    ]

    def many() -> int:
        for _ in range(150):
            for body in bodies:
                native_scan(body, images=True)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    many()
    before = many()
    assert max(many() for _ in range(3)) - before < 3_000, "kilobytes; one leak of 32 bytes a link would be 20,000"


HOSTILE = {
    "attributes": "<a " + "".join(f"a{number}=1 " for number in range(200_000)) + ">",
    "equal attributes": "<a " + "href=1 " * 200_000 + ">",
    "angle brackets": "<" * 1_000_000,
    "open end tags": "</" * 500_000,
    "comment without end": "<!--" + "--" * 500_000,
    "comments": "<!---->" * 150_000,
    "misnested": "<b><i><p></b></i>" * 60_000,
    "deep": "<div>" * 150_000,
    "deep, then wrong ends": "<span>" * 150 + "</x>" * 250_000,
    "deep, then paragraphs": "<p>" + "<span>" * 150 + "<b></p></b>" * 100_000,
    "anchors over white space": "<a href=1><object><a href=2><object><a href=3>" + " " * 900_000,
    "escaped scripts": "<script>" + "<!--<script>" * 80_000,
    "ends of scripts": "<script>" + "</scrip" * 140_000,
    "titles": "<title>x</title>" * 60_000,
    "ampersands": "&" * 1_000_000,
    "long names": ("&" + "a" * 30) * 30_000,
    "cells": "<table>" + "<tr><td>" * 120_000,
    "unquoted": "<a href=" + "x" * 1_000_000,
    "quotes": "<a href='" * 100_000,
    "words": "a " * 500_000,
    "one word": "a" * 1_000_000,
    "digits": "&#" + "9" * 1_000_000,
    "selects": "<select></b>" * 80_000,
    "words in pieces": "a<wbr>" * 160_000,
    "accents apart": "e\u0301 " * 250_000,
    "accents out of order": "e" + "\u0301\u0323" * 250_000,
    "accents by the hundred": ("e" + "\u0301\u0323" * 98 + " ") * 2_500,
}
ORDINARY = '<div class="item"><p>Some words and <a href="/page/{0}">a link</a> with more words.</p></div>\n'


def ns_per_byte(scan: Callable[[bytes], Scan], body: bytes, rounds: int) -> float:
    def once() -> float:
        started = time.process_time_ns()
        scan(body)
        return (time.process_time_ns() - started) / len(body)

    return min(once() for _ in range(rounds))


@pytest.fixture(scope="module")
def ordinary() -> bytes:
    return "".join(ORDINARY.format(number) for number in range(10_000)).encode()


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_hostile_byte_costs_little_more_than_an_ordinary_one(shape: str, ordinary: bytes) -> None:
    """X1, Q5: of a megabyte; a shape that grew with its square would cost thousands of times as much."""
    body = HOSTILE[shape].encode()
    assert ns_per_byte(native_scan, body, 3) < 12 * ns_per_byte(native_scan, ordinary, 3)
    assert ns_per_byte(plain_scan, body[:200_000], 1) < 25 * ns_per_byte(plain_scan, ordinary[:200_000], 2)
