"""Two hashes of a page's text: what changes them, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nephila.model.page import Page

Reader = Callable[..., Page]


def both(page: Page) -> tuple[bytes, bytes]:
    return page.text_hash, page.shape_hash


def test_links_scripts_and_styles_are_no_text(read: Reader) -> None:
    """T2: a session id in every link does not make it another page."""
    one = "<p>Words of a page</p><a href='/x?visit={0}'>go to {0}</a><script>x={0}</script><style>a{{top:{0}}}</style>"
    assert both(read(one.format("abc"))) == both(read(one.format("xyz"))) == both(read("<p>words of a page"))
    assert len(read(one).text_hash) == len(read(one).shape_hash) == 8


def test_white_space_case_and_punctuation_do_not_count(read: Reader) -> None:
    """T2: the text is folded."""
    assert both(read("<p>Quiet   River,\n near the hill.</p>")) == both(read("<div>quiet <b>river</b> NEAR the hill"))


def test_an_anchor_that_leads_nowhere_is_text(read: Reader) -> None:
    """T2: old pages mark their headings so."""
    assert read("<a name=x>Heading</a>").text_hash == read("<h1>Heading</h1>").text_hash


def test_the_title_tells_pages_apart_that_are_drawn_by_scripts(read: Reader) -> None:
    """T2: it is all that there is of them."""
    pages = [read(f"<title>{name}</title><div id=app></div><script>1</script>") for name in ("Chairs", "Tables")]
    assert pages[0].shape_hash != pages[1].shape_hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<h1>July 2031</h1><td>Mon</td><td>7</td>", "<h1>August 2032</h1><td>Tue</td><td>18</td>"),
        ("Product 4711, price 12.99 euro", "Product 4712, price 5 euro"),
        ("ref 8f3a01bc77de end", "ref 0011aabbccdd end"),
        ("سنة ١٤٠٣", "سنة ١٤٠٤"),
    ],
)
def test_pages_that_differ_in_numbers_and_dates_have_one_shape(one: str, other: str, read: Reader) -> None:
    """T2: what a calendar varies is left out of the shape, and not of the text."""
    assert read(one).shape_hash == read(other).shape_hash
    assert read(one).text_hash != read(other).text_hash


def test_another_word_is_another_shape(read: Reader) -> None:
    """T2: real texts differ."""
    assert read("A red chair 12").shape_hash != read("A blue chair 12").shape_hash


def test_no_text_has_no_hash(read: Reader) -> None:
    """T2: a page of links only has nothing to be compared by."""
    assert both(read("")) == both(read("<a href=/x>text</a><script>1</script> <p> ... </p>")) == (b"", b"")
    assert both(read(" \n ")) == (b"", b"")


def test_a_very_long_text_is_read_to_a_limit(read: Reader) -> None:
    """T2, X1: time and memory stay bounded; hostile shapes are in the hostile tests, signature included."""
    begun = "<p>" + "many words " * 30_000
    assert both(read(begun + "the end")) == both(read(begun + "another end")) != both(read("<p>few words"))
