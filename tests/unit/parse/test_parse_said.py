"""What a page says, as one number: the same while it has not changed."""

from __future__ import annotations

import pytest

from nephila.native import AVAILABLE
from nephila.parse.scan import native_scan, plain_scan

STORY = "<p>The orb weaver spins a new web every evening and eats the old one before dawn, thread by thread.</p>"
MORE = "<p>Its silk is stronger than steel of the same weight, and it is used again for the next net.</p>"
HEAD = "<title>Spiders</title><nav><a href=/>Home</a> <a href=/news>News of the day from our newsroom</a></nav>"


def said(body: str) -> bytes:
    """By both scanners."""
    found = plain_scan(body.encode()).signature.said
    if AVAILABLE:
        assert native_scan(body.encode()).signature.said == found
    return found


def page(middle: str, head: str = HEAD, foot: str = "") -> str:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{STORY}{middle}{MORE}<footer>{foot}</footer></body></html>"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<p>Updated 3 minutes ago</p>", "<p>Updated 2 hours ago</p>"),
        ("<p>It is 12:34 on Tuesday, 17 November 2026, and the page was made in 0.2 seconds for you alone.</p>",
         "<p>It is 9:01 on Friday, 4 June 2027, and the page was made in 13 seconds for you alone.</p>"),
        ("<p>1,234 views and 17 comments so far, says the counter that we have had here since the beginning.</p>",
         "<p>1,301 views and 20 comments so far, says the counter that we have had here since the beginning.</p>"),
        ("<input type=hidden name=csrf value=a1b2c3>", "<input type=hidden name=csrf value=d4e5f6>"),
        ("<script>var t = 'one'</script><!-- one -->", "<script>var t = 'two'</script><!-- two -->"),
        ("<a href='/a?session=1'>on</a>", "<a href='/a?session=2'>on</a>"),
        ("<div><a href=//ads.test/1>Cheap flights to sunny islands, this week only, book them now</a></div>",
         "<div><a href=//ads.test/2>Shoes for runners who want more comfort on every kind of road</a></div>"),
        ("<div>Advertisement: new shoes</div>", "<div>Advertisement: fly away</div>"),
        ("<iframe src=//ads.test/1></iframe>", "<iframe src=//ads.test/2></iframe>"),
        ("<aside>A word from a partner who sells many nice things to all kinds of people everywhere</aside>",
         "<aside>Another one tells you of an insurance that you never knew you really needed</aside>"),
    ],
    ids=["ago", "clock", "counter", "token", "script", "session", "linked advert", "short advert", "frame", "aside"],
)  # fmt: skip
def test_the_time_a_counter_a_token_or_an_advert_is_no_change(one: str, other: str) -> None:
    """R2: "changed" means the content."""
    assert said(page(one)) == said(page(other)) != b""
    assert said(page("", foot=one)) == said(page("", foot=other))


def test_what_the_page_says_is() -> None:
    """R2: a paragraph that is another one, or a word of it, or gone."""
    known = said(page("<p>It lives in gardens, where it waits for flies in the middle of its web all day long.</p>"))
    others = [
        said(page("<p>It lives in gardens, where it waits for wasps in the middle of its web all day long.</p>")),
        said(page("")),
        said(page("<p>Gardeners have asked for it to be left alone, as it takes more flies than any poison does.</p>")),
    ]
    assert len({known, *others}) == 4


def test_a_price_alone_is_none() -> None:
    """R2: numbers are left out, prices among them: who watches prices compares by bytes."""
    shop = "<p>Scarf made of spider silk, in golden yellow, woven by hand, now only {} dollars with free delivery.</p>"
    assert said(page(shop.format("1,200"))) == said(page(shop.format("999")))


def test_the_headlines_of_a_front_page_count_though_they_are_links() -> None:
    """R2: what a page of lists says is in them, whatever else stands there."""

    def front(headline: str) -> str:
        links = "".join(
            f"<li><a href=/{n}>Story number {'abcdefghij'[n]} of the day about spiders</a></li>" for n in range(10)
        )
        return f"<body><ul>{links}{links}{links}<li><a href=/x>{headline}</a></li></ul>{STORY}{MORE}</body>"

    assert said(front("Spider found in the attic of the town hall")) != said(
        front("No spider anywhere, says the mayor")
    )


def test_too_little_text_says_nothing() -> None:
    """R2: such pages are compared by their bytes."""
    assert said("<body><p>Please switch on scripts.</p></body>") == b""
    assert said("") == b""


def test_white_space_case_and_tags_are_nothing() -> None:
    """R2: nor is punctuation."""
    assert said(f"<body>{STORY}{MORE}</body>") == said(
        f"<BODY class=x>\n\n{STORY.replace('new', '<b>NEW</b>')}\n {MORE}"
    )
