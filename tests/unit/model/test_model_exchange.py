"""An answer as a noun."""

from __future__ import annotations

from dataclasses import replace

from nephila.model.exchange import Fetched, Truncation, told_type

HEADERS = (("content-type", "text/html"), ("link", "<a>"), ("content-type", "text/plain"))
ANSWER = Fetched(
    "http://a.test/",
    b"GET",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"packed",
    200,
    HEADERS,
    b"body",
    "127.0.0.1",
    1,
    2,
    3,
    Truncation.TIME,
    unwanted=True,
    bad_certificate="old",
    sent_ms=4,
    stale_address=True,
)


def test_the_first_of_several_equal_headers_counts() -> None:
    """H1: asked for twice, a header says the same; one that is not there says nothing."""
    for _ in range(2):
        assert ANSWER.header("content-type") == "text/html"
        assert ANSWER.header("link") == "<a>"
        assert ANSWER.header("etag") == ""
    assert replace(ANSWER, headers=(("etag", "x"),)).header("content-type") == ""


def test_every_content_type_that_was_given_is_told() -> None:
    """H7: several are one list, as browsers read them, whatever else was asked for before."""
    for _ in range(2):
        assert ANSWER.content_type == "text/html, text/plain"
    assert ANSWER.header("link") == "<a>"
    assert replace(ANSWER, headers=(("etag", "x"),)).content_type == ""


def test_what_was_looked_up_before_is_no_part_of_an_answer() -> None:
    """H1: two answers are equal whatever was asked of them."""
    asked, new = replace(ANSWER), replace(ANSWER)
    asked.header("link")
    assert asked == new
    assert hash(asked) == hash(new)
    assert "memo" not in repr(asked)


def test_an_answer_without_its_content_keeps_all_else() -> None:
    """Q5: only payload and body are let go."""
    assert ANSWER.without_content() == replace(ANSWER, payload=b"", body=b"")


def test_of_several_types_the_last_usable_one_is_told() -> None:
    """H7: as the answer itself was read (Fetch 2.2.2); a comma may also stand in a parameter."""
    assert told_type("text/html, Text/Plain; charset=utf-8") == "text/plain"
    assert told_type("text/html; charset=utf-8, */*, nonsense") == "text/html"
    assert told_type('text/html; profile="a, b/c"') == "text/html"
    assert told_type("nonsense; a=b") == "nonsense"
    assert told_type("") == ""
