"""Encodings and content types against the cases of html5lib, w3lib and web-platform-tests."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nephila.parse import decide_charset, decode, media_type
from nephila.parse.labels import encoding_of
from nephila.parse.media import MediaType, media_type_in, parse_media_type

Tell = Callable[[str, int, int], None]


@pytest.mark.parametrize("name", ["tests1.dat", "tests2.dat", "test-yahoo-jp.dat"])
def test_encodings_of_html5lib(material: Path, tell: Tell, name: str) -> None:
    """X1: byte order mark, meta prescan, late meta, fall-back."""
    data = (material / "05-charset-http" / "html5lib-encoding" / name).read_bytes()
    good = total = 0
    for case in re.split(rb"(?m)^#data\n", data)[1:]:
        body, _, rest = case.partition(b"\n#encoding\n")
        expected = encoding_of(rest.strip().splitlines()[0].decode())
        total += 1
        good += decide_charset(body, "text/html") == expected
    tell(f"charset: html5lib {name}", good, total)
    assert good == total


def test_detection_on_a_real_text(material: Path) -> None:
    """X1: Big5 without any declaration."""
    body = (material / "05-charset-http" / "html5lib-encoding" / "chardet" / "test_big5.txt").read_bytes()
    assert decide_charset(body, "") == "Big5"


BYTE_ORDER_MARKS = {
    "bom_utf8.html": "UTF-8",
    "bom_utf16be.html": "UTF-16BE",
    "bom_utf16le.html": "UTF-16LE",
}


@pytest.mark.parametrize("name", BYTE_ORDER_MARKS)
def test_byte_order_marks_of_jsoup(material: Path, name: str) -> None:
    """X1: real files with a mark."""
    body = (material / "03-html" / "jsoup" / "bomtests" / name).read_bytes()
    charset = decide_charset(body, "text/html")
    assert charset == BYTE_ORDER_MARKS[name]
    assert "<title>" in decode(body, charset)


def recorded(material: Path, function: str) -> list[tuple[list[Any], Any]]:
    lines = (
        (material / "05-charset-http" / "w3lib" / "encoding_calls.jsonl")
        .read_text(encoding="utf-8")
        .strip()
        .split("\n")
    )
    found = []
    for call in map(json.loads, lines):
        if call["fn"] == function and not call["kwargs"]:
            arguments = [base64.b64decode(value["b64"]) if isinstance(value, dict) else value for value in call["args"]]
            found.append((arguments, call["result"]))
    return found


def test_header_charsets_of_w3lib(material: Path, tell: Tell) -> None:
    """X1: the charset of a Content-Type; of broken quotes browsers make more than w3lib, of a list the last."""
    cases = recorded(material, "http_content_type_encoding")
    good = 0
    for (header, *_), expected in cases:
        media = media_type_in(header.removeprefix("Content-Type:"))
        ours = encoding_of(media.parameters.get("charset", "")) if media else None
        good += ours == (encoding_of(expected) if expected else None)
    tell("charset: headers of w3lib", good, len(cases))
    assert good >= 0.75 * len(cases)


def test_decoded_bodies_of_w3lib(material: Path, tell: Tell) -> None:
    """X1: header and body to text. UTF-32, and UTF-16 told by its zeros alone, are not what browsers do."""
    cases = [
        (arguments, expected)
        for arguments, expected in recorded(material, "html_to_unicode")
        if not str(expected[0]).startswith(("utf-32", "utf-16")) or arguments[1][:2] in {b"\xfe\xff", b"\xff\xfe"}
    ]
    good = 0
    for (header, body, *_), expected in cases:
        text = decode(body, decide_charset(body, (header or "").removeprefix("Content-Type:")))
        good += text == expected[1]
    tell("charset: bodies of w3lib", good, len(cases))
    assert good >= 0.85 * len(cases)


def serialised(media: MediaType | None) -> str | None:
    if media is None:
        return None
    parts = [media.essence]
    for name, value in media.parameters.items():
        token = re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", value)
        quoted = re.sub(r'(["\\])', r"\\\1", value)
        parts.append(f"{name}={value}" if token else f'{name}="{quoted}"')
    return ";".join(parts)


@pytest.mark.parametrize("name", ["mime-types.json", "generated-mime-types.json"])
def test_media_types_of_web_platform_tests(material: Path, tell: Tell, name: str) -> None:
    """H7, X1: one content type, however written, and its encoding."""
    path = material / "05-charset-http" / "wpt-fetch" / "mime-types" / "resources" / name
    cases = [case for case in json.loads(path.read_text(encoding="utf-8")) if isinstance(case, dict)]
    good = 0
    for case in cases:
        media = parse_media_type(case["input"])
        encoding = encoding_of(media.parameters.get("charset", "")) if media else None
        good += serialised(media) == case["output"] and encoding == case.get("encoding")
    tell(f"media types: {name}", good, len(cases))
    assert good == len(cases)


def test_repeated_content_types_of_web_platform_tests(material: Path, tell: Tell) -> None:
    """H7, X1: several Content-Type headers."""
    path = material / "05-charset-http" / "wpt-fetch" / "content-type" / "resources" / "content-types.json"
    cases = json.loads(path.read_text(encoding="utf-8"))
    good = 0
    for case in cases:
        media = media_type_in(", ".join(case["contentType"]))
        encoding = encoding_of(media.parameters.get("charset", "")) if media else None
        good += serialised(media) == case["mimeType"] and encoding == case["encoding"]
    tell("media types: repeated headers", good, len(cases))
    assert good == len(cases)


@pytest.mark.parametrize(
    ("name", "header", "expected"),
    [
        ("resources/html-content.html", "text/plain", "text/plain"),
        ("resources/binary-data.bin", "text/plain", "application/octet-stream"),
        ("resources/png-image.png", "text/plain", "application/octet-stream"),
        ("resources/png-image.png", "", "image/png"),
        ("resources/test-file.zip", "", "application/x-gzip"),
        ("support/html-comment", "", "text/html"),
        ("support/atom.html", "text/html", "text/html"),
        # Browsers have given up feeds and show this as HTML; a crawler still wants the feed that it says it is.
        ("support/rss.html", "text/html", "application/rss+xml"),
    ],
)
def test_sniffing_of_web_platform_tests(material: Path, name: str, header: str, expected: str) -> None:
    """H7: the kind of real files."""
    body = (material / "05-charset-http" / "wpt-fetch" / "sniffing" / name).read_bytes()
    assert media_type(header, body) == expected
