from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.parse.charset import decide_charset, decode
from nephila.parse.labels import LABELS, NAMES, encoding_of
from nephila.parse.prescan import declared_encoding

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗い所で泣いていた。" * 10


def test_byte_order_mark_wins_over_header_and_meta() -> None:
    """X1: a byte order mark is believed before anything else."""
    body = b"\xef\xbb\xbf<meta charset=koi8-r>"
    assert decide_charset(body, "text/html; charset=windows-1251") == "UTF-8"
    assert decide_charset(b"\xfe\xff\0<", "") == "UTF-16BE"
    assert decide_charset(b"\xff\xfe<\0", "text/html; charset=utf-8") == "UTF-16LE"


def test_header_wins_over_meta_and_unknown_label_in_header_is_passed_over() -> None:
    """X1: then the header, if browsers know its label."""
    body = b"<meta charset=koi8-r>"
    assert decide_charset(body, "text/html; charset=windows-1251") == "windows-1251"
    assert decide_charset(body, 'text/html; charset="gb2312"') == "GBK"
    assert decide_charset(body, "text/html; charset=klingon") == "KOI8-R"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"<meta charset=utf-8>", "UTF-8"),
        (b"<META CHARSET = 'Shift_JIS'>", "Shift_JIS"),
        (b'<meta http-equiv=Content-Type content="text/html; charset=iso-8859-2">', "ISO-8859-2"),
        (b'<meta content="text/html; charset=iso-8859-2" http-equiv="content-type">', "ISO-8859-2"),
        (b'<meta content="text/html; charset=iso-8859-2">', None),
        (b"<meta charset=utf-16>", "UTF-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b"<meta charset=bogus><meta charset=koi8-r>", "KOI8-R"),
        (b"<!-- <meta charset=koi8-r> -->", None),
        (b"<!--><meta charset=koi8-r>", "KOI8-R"),
        (b"<script><meta charset=koi8-r></script>", "KOI8-R"),
        (b'<p title="<meta charset=koi8-r>">', None),
        (b"<meta charset=koi8-r", None),
        (b"<meta charset='koi8-r", None),
        (b"<metacharset=koi8-r>", None),
        (b'<?xml version="1.0" encoding="euc-jp"?><p>', "EUC-JP"),
        (b'<?xml version="1.0" encoding="euc-jp"?><meta charset=koi8-r>', "KOI8-R"),
        (b"<\0?\0x\0m\0", "UTF-16LE"),
        (b"<!doctype html><html lang=x><head><title>x</title><meta charset=big5>", "Big5"),
    ],
)
def test_declaration_is_read_as_browsers_read_it(head: bytes, name: str | None) -> None:
    """X1: the meta prescan of the HTML standard."""
    assert declared_encoding(head) == name


def test_declaration_behind_the_first_kilobyte_counts_unless_the_page_is_utf8() -> None:
    """X1: a late meta element is believed before guessing."""
    filler = b"<!-- " + b"x" * 2000 + b" -->"
    latin = "<p>caf\xe9 na\xefve".encode("latin-1")
    assert decide_charset(filler + b"<meta charset=iso-8859-15>" + latin, "") == "ISO-8859-15"
    assert decide_charset(filler + b"<meta charset=iso-8859-15>" + "café".encode(), "") == "UTF-8"
    assert decide_charset(filler + b"<meta charset=iso-8859-15>", "") == "ISO-8859-15"


def test_undeclared_pages_are_judged_by_their_bytes() -> None:
    """X1: UTF-8 where it is valid, detection where it is not, windows-1252 in the end."""
    assert decide_charset(b"", "") == "windows-1252"
    assert decide_charset(b"<p>plain", "text/html") == "windows-1252"
    assert decide_charset("<p>naïve".encode(), "text/html") == "UTF-8"
    assert decide_charset("<p>naïve é".encode()[:-1], "text/html") == "UTF-8", "cut inside a character"
    assert decide_charset(RUSSIAN.encode("cp1251"), "text/html") == "windows-1251"
    assert decide_charset(RUSSIAN.encode("koi8-r"), "text/html").startswith("KOI8")
    assert decide_charset(JAPANESE.encode("shift_jis"), "text/html") == "Shift_JIS"
    assert decide_charset(JAPANESE.encode("euc-jp"), "text/html") == "EUC-JP"
    assert decide_charset(JAPANESE.encode("iso2022_jp"), "text/html") == "ISO-2022-JP"


def test_every_label_has_a_decoder_and_every_name_is_a_label() -> None:
    """X1: whatever is decided can be decoded."""
    for name in NAMES:
        assert encoding_of(name) == name
        assert isinstance(decode(bytes(range(256)), name), str)
    assert set(LABELS.values()) == set(NAMES)
    assert encoding_of(" Latin1\n") == "windows-1252"
    assert encoding_of("utf-7") is None


def test_decoding_takes_off_the_mark_and_replaces_bad_bytes() -> None:
    """X1: text is what a browser would show."""
    assert decode(b"\xef\xbb\xbfx\xff", "UTF-8") == "x\ufffd"
    assert decode(b"\xff\xfex\0", "UTF-16LE") == "x"
    assert decode(b"\x81\x80", "windows-1252") == "\x81\u20ac", "undefined in Python's cp1252"
    assert decode(RUSSIAN.encode("cp1251"), "windows-1251") == RUSSIAN


@given(st.binary(max_size=400), st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_bytes_and_header_give_an_encoding_and_a_text(body: bytes, header: str) -> None:
    """X1, Q5: deciding and decoding never raise."""
    name = decide_charset(body, header)
    assert name in NAMES
    assert isinstance(decode(body, name), str)


PIECES = [
    b"<meta",
    b" charset",
    b"=",
    b'"',
    b"'",
    b"utf-8",
    b">",
    b"<!--",
    b"-->",
    b" content=",
    b" http-equiv=",
    b"/",
    b"<",
]


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
@settings(max_examples=200, deadline=None)
def test_prescan_takes_any_heap_of_pieces(head: bytes) -> None:
    """X1, Q5: the prescan ends and answers with an encoding or none."""
    assert declared_encoding(head) in {None, *NAMES}
