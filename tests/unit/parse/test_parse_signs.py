"""Signs that the scripts of a page make it (J1)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.model.rendering import Sign
from nephila.parse import parse_html, sign_of
from nephila.parse.signs import SHELL_CHARACTERS, plainly_visible_characters, visible_characters
from nephila.testing.web.script_sites import shell

PADDING = "<style>" + "a{b:c}" * 1000 + "</style>"
PROSE = "Some words of a text that people read, and more of them. " * 20


def sign(html: str) -> Sign:
    body = html.encode()
    return sign_of(body, parse_html(body, "http://a.test/", "text/html", agent="N").words)


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        (shell(), Sign.MARK),
        (f"<html><head>{PADDING}</head><body><p>Loading</p></body></html>", Sign.SHELL),
        ("<html><body><p>Short, and that is all.</p></body></html>", Sign.NONE),
        (f"<html><head>{PADDING}</head><body><p>{PROSE}</p></body></html>", Sign.NONE),
        (f"<html><body><div id='__next'><p>{PROSE}</p></div></body></html>", Sign.MARK),
        (f"<html><body><div id=__nuxt><p>{PROSE}</p></div></body></html>", Sign.MARK),
        (f"<html ng-app=shop><body><p>{PROSE}</p></body></html>", Sign.MARK),
        (f"<html><body class=x\n data-ng-app><p>{PROSE}</p></body></html>", Sign.MARK),
        (f"<html><body><a href=/spring-apple>{PROSE}</a></body></html>", Sign.NONE),
        (f"<html><body class='banking-app b'><p>{PROSE}</p></body></html>", Sign.NONE),
        ("<html><body><p>The training-app, and that is all.</p></body></html>", Sign.NONE),
        ("<html><body><div id=app></div><script src=a.js></script></body></html>", Sign.MARK),
        ("<html><body><div class='x' id=\"root\"> </div></body></html>", Sign.MARK),
        ("<html><body><div id=root><p>Something</p></div></body></html>", Sign.NONE),
        ("<html><body><div id=rooted></div></body></html>", Sign.NONE),
        ('<html><body><script id="__NEXT_DATA__">{}</script></body></html>', Sign.MARK),
        (f"<html><head>{PADDING}</head><body><nav>{'<a href=/x>Some link</a> ' * 40}</nav></body></html>", Sign.NONE),
    ],
)
def test_signs(html: str, wanted: Sign) -> None:
    """J1: a shell, a mark, or neither."""
    assert sign(html) is wanted


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_give_an_answer(body: bytes, words: int) -> None:
    """J1, Q5: whatever a server sends."""
    assert isinstance(sign_of(body, words), Sign)


def test_scripts_styles_and_comments_are_no_text() -> None:
    """J1: only what people see is counted, up to what is enough."""
    hidden = "<!-- x --><script>let a = 'text';</script><style>b{}</style><noscript>c</noscript><title>d</title>"
    page = f"<html><head>{hidden}</head><body>{hidden}<p>a b</p></body>".encode()
    for count in (visible_characters, plainly_visible_characters):
        assert count(page, SHELL_CHARACTERS) == 2
        assert count(f"<p>{PROSE}</p>".encode(), SHELL_CHARACTERS) >= SHELL_CHARACTERS


PIECES = (
    *(b"<", b">", b"</", b"<body", b"<!--", b"-->", b"<!-->", b"--", b"a", b"_", b"9"),
    *(b" ", b"\n", b"\x0b", b"\x1c", b"\r"),
    *(b"script", b"SCRIPT", b"Style", b"template", b"noscript", b"svg", b"title", b"head", b"\x01--", b"!\r-", b"text"),
    *("\u00e9".encode(), "\u65e5".encode(), b"\xe6\x97", b"\xff", b"\xf0\x9f", b"\x00"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join), st.integers(0, 40))
def test_text_is_counted_the_same_in_c(body: bytes, enough: int) -> None:
    """J1, Q1: the extension counts as its twin does, whatever stands in a page."""
    assert visible_characters(body, enough) == plainly_visible_characters(body, enough)


def test_time_is_linear() -> None:
    """J1, Q5: open tags and comments that never end cost no more than their bytes."""
    started = time.process_time()
    for piece in (b"<script ", b"<!--", b"<div id=root", b"<", b"<svg><script>", b"<div " + b" " * 190):
        sign_of(b"<body>" + piece * (2_000_000 // len(piece)), 0)
    assert time.process_time() - started < 2.0, "a bound that is far away"
