from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest

from nephila.model.page import Page
from nephila.parse import decode, parse_html
from nephila.parse.labels import NAMES
from nephila.parse.queries import AS_UTF8, Queries

HERE = "http://site.example/dir/page"


def page_of(html: str, charset: str, content_type: str | None = None) -> Page:
    named = f"text/html; charset={charset}" if content_type is None else content_type
    body = html.encode("ascii", "xmlcharrefreplace")
    return parse_html(body, HERE, named, agent="nephila")


def queries_of(text: str, charset: str) -> str:
    return page_of(f'<a href="?{text}">x</a>', charset).links[0].url.removeprefix(f"{HERE}?")


@pytest.mark.parametrize(
    ("charset", "text", "expected"),
    [
        ("windows-1252", "café €", "caf%E9%20%80"),
        ("windows-1251", "кот", "%EA%EE%F2"),
        ("KOI8-R", "кот", "%CB%CF%D4"),
        ("ISO-8859-7", "λ", "%EB"),
        ("Shift_JIS", "日本ソ¥\u2212ｱ", "%93%FA%96{%83\\\\%81|%B1"),
        ("EUC-JP", "日本ｱ", "%C6%FC%CB%DC%8E%B1"),
        ("ISO-2022-JP", "a日本b語", "a%1B$BF|K\\%1B(Bb%1B$B8l%1B(B"),
        ("GBK", "中€", "%D6%D0%80"),
        ("gb18030", "中€😀", "%D6%D0%A2%E3%949%FC6"),
        ("Big5", "中十", "%A4%A4%A4Q"),
        ("EUC-KR", "한똠", "%C7%D1%8Cc"),
        ("x-user-defined", "\uf780\uf7ff", "%80%FF"),
        ("UTF-8", "é", "%C3%A9"),
        ("UTF-16LE", "é", None),
    ],
)
def test_queries_are_in_the_encoding_of_their_page(charset: str, text: str, expected: str | None) -> None:
    """X1, U1: as browsers send them; what they answer was seen with Chromium."""
    if expected is None:
        assert Queries(lambda: charset)(f"?{text}") == f"?{text}"
    else:
        assert queries_of(text, charset) == expected


def test_only_the_query_is_in_the_encoding_of_the_page() -> None:
    """X1, U1: path, host and fragment are UTF-8 in every page; what is percent-encoded already stays."""
    page = page_of('<a href="http://münchen.example/é?%e9é&amp;a=%C3%A9#é?é">x</a><a href="é#?é">y</a>', "windows-1252")
    assert [link.url for link in page.links] == [
        "http://xn--mnchen-3ya.example/%C3%A9?%e9%E9&a=%C3%A9",
        "http://site.example/dir/%C3%A9",
    ]


def test_characters_that_the_encoding_does_not_have_go_as_numbers() -> None:
    """X1, U1: URL standard, percent-encode after encoding."""
    assert queries_of("q=日", "windows-1252") == "q=%26%2326085%3B"
    assert queries_of("q=日😀", "ISO-2022-JP") == "q=%1B$BF|%1B(B%26%23128512%3B"


def test_every_address_in_a_page_has_its_query_in_the_encoding_of_the_page() -> None:
    """X1, X2: links of every kind, behind a base element too, canonical and alternates."""
    page = page_of(
        """<base href="/b/"><link rel=canonical href="?é"><link rel=alternate hreflang=de href="?ö">
        <meta http-equiv=refresh content="0;url=?ü"><form action="?ä"></form><table><a href="?ß">x</a></table>""",
        "windows-1252",
    )
    assert [link.url.partition("?")[2] for link in page.links] == ["%E9", "%F6", "%FC", "%E4", "%DF"]
    assert page.canonical == "http://site.example/b/?%E9"
    assert page.hreflang == (("de", "http://site.example/b/?%F6"),)


@pytest.mark.parametrize(
    ("html", "content_type", "expected"),
    [
        ('<a href="?é">', "text/html", "%C3%A9"),
        ('<meta charset=latin1><a href="?é">', "text/html", "%E9"),
        ('<a href="?é">', "text/html; charset=latin1", "%E9"),
        ("<!--" + "x" * 1_024 + '--><meta charset=latin1><a href="?é">', "text/html", "%E9"),
    ],
)
def test_a_page_in_ascii_without_a_name_for_its_encoding_has_queries_in_utf8(
    html: str, content_type: str, expected: str
) -> None:
    """X1: where windows-1252 is but the fall-back, nothing is known of the site; where it is said, it counts."""
    page = page_of(html, "", content_type)
    assert page.charset == "windows-1252"
    assert page.links[0].url == f"{HERE}?{expected}"


@pytest.mark.parametrize("charset", sorted(set(NAMES) - AS_UTF8))
def test_what_an_encoding_can_say_is_read_back_the_same(charset: str) -> None:
    """X1: the encoders are the decoders turned round, ASCII left alone."""
    spell = Queries(lambda: charset)
    ascii_text = "".join(map(chr, range(0x20, 0x7F))).replace("#", "")
    assert spell(f"?{ascii_text}é") == f"?{ascii_text}{spell('?é')[1:]}"
    others = {*map(chr, range(0xA0, 0xD800, 3)), *map(chr, range(0xF780, 0xF800))}
    others -= {"\xa5", "\u203e", "\u2212"}  # which go as a backslash, a tilde and another minus in Japan
    spelled = {character: spell(f"?{character}")[1:] for character in sorted(others)}
    said = {character: query for character, query in spelled.items() if not query.startswith("%26%23")}
    assert said
    assert all(decode(unquote_to_bytes(query), charset) == character for character, query in said.items())


def test_a_query_of_a_million_characters_is_no_more_than_a_long_one() -> None:
    """X1, Q5: characters that the encoding lacks included."""
    spelled = Queries(lambda: "Shift_JIS")("?" + "日\u0e01" * 500_000)
    assert len(spelled) == 1 + 500_000 * len("%93%FA%26%233585%3B")
