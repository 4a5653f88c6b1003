"""Two hashes of a page's text: what changes them, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nephila.model.page import Page
from nephila.parse import main_text

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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
        ("Donau&shy;dampf&#173;schiff", "Donaudampfschiff"),
        ("super\u200bcali\u200cfragi\u200dlistic\u2060\ufeff", "supercalifragilistic"),
        ("Donau<wbr>dampf<WBR/>schiff fährt", "Donaudampfschiff fährt"),
        ("Donau<wbr></wbr>dampf<wbr><wbr>schiff", "Donaudampfschiff"),
        ("caf&eacute;<wbr>s", "cafés"),
        ("e&#x301;t<wbr>&eacute;", "été"),
        ("Cafe\u0301 A\u030angstro\u0308m", "Caf\u00e9 \u00c5ngstr\u00f6m"),
        ("cafe&#x301;s", "cafés"),
        ("cafe\u00ad\u0301s", "cafés"),
        ("tie\u0302\u0301ng Vie\u0323\u0302t", "tiếng Việt"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
        ("<title>cafe\u0301</title>", "<title>café</title>"),
    ],
)
def test_what_looks_the_same_is_the_same_word(one: str, other: str, read: Reader) -> None:
    """T2, D3: breaks that a line may have, characters of no width, accents apart from their letters."""
    assert both(read(one)) == both(read(other)) != (b"", b"")
    assert both(read(f"<p>{one} more")) == both(read(f"<p>{other} more"))


def test_words_that_look_different_are_different(read: Reader) -> None:
    """T2, D3: a space is no soft hyphen, a letter without its accent another one, a tag no break within a word."""
    for one, other in (
        ("Donau dampf", "Donaudampf"),
        ("Donau<br>dampf", "Donaudampf"),
        ("Donau<wbr> dampf", "Donaudampf"),
        ("cafe", "cafe\u0301"),
        ("x\u0301y", "xy"),
    ):
        assert read(one).text_hash != read(other).text_hash
    assert read("Donau<wbr><p>dampf").text_hash == read("Donau dampf").text_hash


@pytest.mark.parametrize(
    "before",
    [
        "<svg><template></svg>",
        "<svg><template><g></template></svg>",
        "<svg><template><template></template></svg>",
        "<svg><template>",
        "<template><svg></template>",
        "<template><noscript></template>",
        "<template><a href=x></template>",
        "<template></nav></template>",
        "<template><select><option></template>",
    ],
)
def test_a_template_ends_where_browsers_end_it(before: str, read: Reader) -> None:
    """T2, D3, X5: in a drawing it is an element like others; what is open in one ends with it."""
    assert both(read(f"{before}<p>Words of a page")) == both(read("<p>words of a page")) != (b"", b"")
    assert main_text(f"{before}<p>Words of a page") == "Words of a page"


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
