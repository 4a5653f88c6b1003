"""Real pages against what a browser's DOM says of them, and recorded calls of another library's tests."""

from __future__ import annotations

import base64
import gzip
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from selectolax.lexbor import LexborHTMLParser

from nephila.model.page import Page
from nephila.parse import links_that_matter, parse_html
from nephila.parse.charset import decode
from nephila.parse.tree import elements
from nephila.urls.parse import resolve

SHARE = 0.995
"""Of real pages on which we must agree with a browser; a careful crawler reaches 0.998."""

Facts = dict[str, Any]


class Sample(NamedTuple):
    """A real page and what a browser says of it."""

    body: bytes
    content_type: str
    facts: Facts
    page: Page


@pytest.fixture(scope="module")
def samples(material: Path) -> list[Sample]:
    folder = material / "03-html" / "pages"
    manifest = (folder / "manifest_dev.jsonl").read_text(encoding="utf-8").strip().split("\n")
    types = {entry["id"]: entry["serve_content_type"] for entry in map(json.loads, manifest)}
    with zipfile.ZipFile(folder / "pages_dev.zip") as pages, gzip.open(folder / "facts_dev.jsonl.gz", "rt") as lines:
        return [
            sample(pages.read(f"{facts['id']}.html"), types[facts["id"]], facts) for facts in map(json.loads, lines)
        ]


def sample(body: bytes, content_type: str, facts: Facts) -> Sample:
    return Sample(body, content_type, facts, parse_html(body, facts["url"], content_type, agent="nephila"))


def web(urls: list[str]) -> set[str]:
    """As facts give them: all schemes, fragments kept."""
    return {url.partition("#")[0] for url in urls if url.startswith(("http://", "https://"))}


def urls_of(page: Page, *tags: str) -> set[str]:
    return {link.url for link in page.links if link.tag in tags}


def nofollow(page: Page) -> set[str]:
    return {link.url for link in page.links if link.tag in {"a", "area"} and "nofollow" in link.rel}


QUESTIONS: dict[str, Callable[[Page, Facts], bool]] = {
    "links": lambda page, facts: urls_of(page, "a", "area") == set(facts["links"]),
    "base": lambda page, facts: page.base == facts["base"],
    "charset": lambda page, facts: page.charset == facts["charset"],
    "canonical": lambda page, facts: page.canonical == next(iter(facts["canonical"]), "").partition("#")[0],
    "hreflang": lambda page, facts: page.hreflang == tuple(dict.fromkeys(map(tuple, facts["hreflang"]))),
    "nofollow": lambda page, facts: nofollow(page) == web(facts["nofollow"]),
    "title": lambda page, facts: page.title == " ".join((facts["title"] or "").split()),
    "language": lambda page, facts: not facts["lang"] or page.language == facts["lang"],
    "frames": lambda page, facts: web(facts["frames"]) <= urls_of(page, "iframe", "frame", "a", "area"),
    "meta robots": lambda page, facts: page.directives.noindex == says(facts, "noindex"),
    "meta robots, nofollow": lambda page, facts: page.directives.nofollow == says(facts, "nofollow"),
    "meta robots, noarchive": lambda page, facts: page.directives.noarchive == says(facts, "noarchive"),
}


def says(facts: Facts, word: str) -> bool:
    words = {part.strip().lower() for content in facts["meta_robots"] for part in (content or "").split(",")}
    return word in words or (word != "noarchive" and "none" in words)


@pytest.mark.parametrize("question", QUESTIONS)
def test_real_pages_are_read_as_a_browser_reads_them(
    samples: list[Sample], question: str, tell: Callable[[str, int, int], None]
) -> None:
    """X1, X2, X5: links, base, charset, canonical, hreflang, rel, title, language, frames, directives."""
    good = sum(QUESTIONS[question](sample.page, sample.facts) for sample in samples)
    tell(f"html: pages with the right {question}", good, len(samples))
    assert good >= SHARE * len(samples)


def test_two_parsers_see_the_same_anchors_in_real_pages(
    samples: list[Sample], tell: Callable[[str, int, int], None]
) -> None:
    """X1: lexbor, another implementation of the standard, agrees with the parser in use."""
    good = 0
    for sample in samples:
        text = decode(sample.body, sample.page.charset)
        ours = {href for element in elements(text, ["a"]) if (href := element.attr("href")) is not None}
        nodes = LexborHTMLParser(text.encode(), options=1).css("a")
        theirs = {node.attributes["href"] or "" for node in nodes if "href" in node.attributes}
        good += ours == theirs
    tell("html: pages on which two parsers agree", good, len(samples))
    assert good >= SHARE * len(samples)


def test_few_real_pages_have_more_links_than_the_frontier_takes(samples: list[Sample]) -> None:
    """X1: the limit of 500 touches some 2 % of pages, and all anchors of the others go on."""
    cut = 0
    for sample in samples:
        chosen = set(links_that_matter(sample.page.links))
        anchors = {link for link in sample.page.links if link.tag in {"a", "area"}}
        cut += not anchors <= chosen
    assert 0 < cut <= 0.05 * len(samples)


def test_damaged_real_pages_give_pages(samples: list[Sample]) -> None:
    """X1, Q5: cut, shifted and overwritten bytes never raise."""
    for number, sample in enumerate(samples[::6]):
        body = bytearray(sample.body[: 40_000 + number])
        body[number::997] = bytes((index * 31 + number) % 256 for index in range(len(body[number::997])))
        for piece in (bytes(body), bytes(body[: len(body) // 3]), bytes(body[1::2]), bytes(reversed(body))):
            assert parse_html(piece, sample.facts["url"], sample.content_type, agent="nephila", images=True)


def calls(material: Path, function: str) -> Iterator[tuple[list[Any], Any]]:
    lines = (material / "03-html" / "w3lib" / "html_calls.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for call in map(json.loads, lines):
        if call["fn"] == function and not call["kwargs"]:
            yield (
                [base64.b64decode(value["b64"]) if isinstance(value, dict) else value for value in call["args"]],
                call["result"],
            )


def as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def as_text(value: str | bytes = "") -> str:
    return value if isinstance(value, str) else value.decode()


def test_base_urls_of_w3lib(material: Path, tell: Callable[[str, int, int], None]) -> None:
    """X1: the base element, against recorded calls; those in noscript count for us, as without scripts in browsers."""
    good = total = 0
    for (html, *rest), expected in calls(material, "get_base_url"):
        page = parse_html(as_bytes(html), as_text(*rest[:1]), "text/html", agent="nephila")
        total += 1
        good += page.base == resolve(None, expected or "about:blank")
    tell("html: base URLs of w3lib", good, total)
    assert good >= 0.9 * total


def test_refreshes_of_w3lib(material: Path, tell: Callable[[str, int, int], None]) -> None:
    """X1: meta refresh, against recorded calls; those in noscript count for us, unfinished tags do not."""
    good = total = 0
    for (html, *rest), expected in calls(material, "get_meta_refresh"):
        page = parse_html(as_bytes(html), as_text(*rest[:1]), "text/html", agent="nephila")
        total += 1
        target = resolve(None, expected[1]) if expected[1] else None
        good += urls_of(page, "meta") == ({target} if target else set())
    tell("html: meta refreshes of w3lib", good, total)
    assert good >= 0.8 * total
