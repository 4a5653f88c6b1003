"""Whether a page has changed: real pages with the time, counters, tokens, adverts and new paragraphs put into them."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.parse import parse_html

Tell = Callable[[str, int, int], None]
Put = Callable[[bytes, bytes], bytes | None]


def said(body: bytes) -> bytes:
    return parse_html(body, "http://site.example/", "text/html", agent="nephila").said_hash


@pytest.fixture(scope="module")
def pages(material: Path) -> list[bytes]:
    """Those that have a main text."""
    with zipfile.ZipFile(material / "03-html" / "pages" / "pages_dev.zip") as archive:
        bodies = [archive.read(name) for name in archive.namelist()]
    found = [body for body in bodies if said(body)]
    assert len(found) > 0.95 * len(bodies)
    return found


def at_the_top(body: bytes, put: bytes) -> bytes | None:
    start = re.search(rb"<body[^>]*>", body, re.IGNORECASE)
    return None if start is None else body[: start.end()] + put + body[start.end() :]


def at_the_end(body: bytes, put: bytes) -> bytes | None:
    end = body.lower().rfind(b"</body")
    return None if end < 0 else body[:end] + put + body[end:]


def between_paragraphs(body: bytes, put: bytes) -> bytes | None:
    ends = [match.end() for match in re.finditer(rb"</p\s*>", body, re.IGNORECASE)]
    return None if not ends else body[: ends[len(ends) // 2]] + put + body[ends[len(ends) // 2] :]


NOTHING_NEW: dict[str, tuple[Put, bytes, bytes, float]] = {
    "a clock": (
        at_the_top,
        b"<div>12:34:56, Tuesday 17 November 2026</div>",
        b"<div>1:02:03, Friday 4 June 2027</div>",
        1.0,
    ),
    "how it was made": (
        at_the_end,
        b"<p>Page generated on 2026-11-17 12:00:01 in 0.123 seconds by the server with the number 17.</p>",
        b"<p>Page generated on 2026-11-18 07:13:44 in 1.9 seconds by the server with the number 3.</p>",
        1.0,
    ),
    "how long ago": (between_paragraphs, b"<p>Updated 3 minutes ago</p>", b"<p>Updated 2 hours ago</p>", 1.0),
    "a counter": (
        between_paragraphs,
        b"<p>1,234 views and 17 comments on this article so far, by readers from all over the world</p>",
        b"<p>9,001 views and 31 comments on this article so far, by readers from all over the world</p>",
        1.0,
    ),
    "tokens": (
        at_the_top,
        b"<input type=hidden name=csrf value=a81bc81b><script>var t='77'</script><!-- one -->",
        b"<input type=hidden name=csrf value=ffffeeee><script>var t='99'</script><!-- two -->",
        1.0,
    ),
    "an advert in a frame": (
        between_paragraphs,
        b"<iframe src=//a.test/1></iframe>",
        b"<iframe src=//a.test/2></iframe>",
        1.0,
    ),
    "an advert beside the text": (
        between_paragraphs,
        b"<aside>Words from our partner who sells many nice things to people everywhere</aside>",
        b"<aside>Another one tells you about insurance that you never knew you really needed</aside>",
        0.97,
    ),
    "an advert that is a link": (
        between_paragraphs,
        b"<div><a href=//a.test/1>Cheap flights to sunny islands, only this week, book them now</a></div>",
        b"<div><a href=//a.test/2>Shoes for runners who want more comfort on every kind of road</a></div>",
        0.9,
    ),
}
"""What is put in once and another time, and on what share of the pages it must not count at least. Where a page has
little else than lists of links, or short texts, those count."""


@pytest.mark.parametrize("kind", NOTHING_NEW)
def test_what_is_another_each_time_is_no_change(pages: list[bytes], kind: str, tell: Tell) -> None:
    """R2: on real pages."""
    put, one, other, least = NOTHING_NEW[kind]
    pairs = [(put(body, one), put(body, other)) for body in pages]
    same = [said(first) == said(second) for first, second in pairs if first is not None and second is not None]
    tell(f"not changed by {kind}", sum(same), len(same))
    assert len(same) > 200
    assert sum(same) >= least * len(same)


def test_a_new_paragraph_is_a_change(pages: list[bytes], tell: Tell) -> None:
    """R2: in place of any that is there; those in footers, notices and the like are not what the page says."""
    new = b"The committee withdrew its earlier statement and announced that all plans for the bridge are cancelled."
    found = []
    for body in pages:
        paragraphs = list(re.finditer(rb"<p[^>]*>([^<]{80,})</p", body, re.IGNORECASE))
        if paragraphs:
            chosen = paragraphs[len(paragraphs) // 2]
            found.append(said(body[: chosen.start(1)] + new + body[chosen.end(1) :]) != said(body))
    tell("changed by a new paragraph", sum(found), len(found))
    assert len(found) > 150
    assert sum(found) >= 0.82 * len(found)


SAME = {"generated:volatile", "generated:ads", "generated:markup", "generated:volatile+ads+markup"}
EDITED = {"generated:edit3pct", "generated:edit15pct", "generated:edit60pct", "generated:same-template-other-text"}


def test_labelled_pairs_of_pages_are_told_apart_by_what_they_say(material: Path, tell: Tell) -> None:
    """R2: what differs in volatile parts, adverts and markup alone is the same; what was edited by 3 % is not."""
    folder = material / "07-neardup" / "web"
    with zipfile.ZipFile(folder / "docs_dev.zip") as archive:
        known = {name.removesuffix(".html"): said(archive.read(name)) for name in archive.namelist()}
    verdicts: dict[bool, list[bool]] = {True: [], False: []}
    for line in map(json.loads, (folder / "pairs_dev.jsonl").read_text(encoding="utf-8").splitlines()):
        same = known[line["a"]] == known[line["b"]] != b""
        if line["kind"] in SAME | EDITED:
            verdicts[line["kind"] in SAME].append(same)
    tell("pairs that say the same", sum(verdicts[True]), len(verdicts[True]))
    tell("edited pairs that say something else", verdicts[False].count(False), len(verdicts[False]))
    assert len(verdicts[True]) > 50
    assert sum(verdicts[True]) >= 0.97 * len(verdicts[True])
    assert verdicts[False].count(False) == len(verdicts[False]) > 50
