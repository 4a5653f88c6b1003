"""What pages are compared by, the plain way: slow, short, and with nothing in common with how the crawler does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import pytest

from nephila.model.likeness import Likeness
from nephila.model.page import Page
from nephila.node import reading

_MAIN = re.compile(r"<main>(.*?)</main>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[^\W\d]+")
_PLACES = 64


def likeness_of(text: str) -> Likeness:
    """SimHash and MinHash over the runs of three words; those with digits are left out."""
    words = [word.lower() for word in text.split() if not re.search(r"\d", word)]
    runs = [" ".join(words[at : at + 3]).encode() for at in range(len(words) - 2)]
    if len(words) < 20:
        return Likeness(words=len(words))
    numbers = [int.from_bytes(blake2b(run, digest_size=8).digest(), "big") for run in runs]
    simhash = sum(1 << bit for bit in range(64) if 2 * sum(one >> bit & 1 for one in numbers) > len(numbers))
    least = {one >> 58: one for one in sorted(numbers, reverse=True)}
    sketch = bytes(least[place] % 255 + 1 if place in least else 0 for place in range(_PLACES))
    return Likeness(simhash, sketch, len(words))


def text_of(body: bytes) -> str:
    """The words of what stands in `main`, or of all where there is none."""
    text = body.decode("utf-8", "replace")
    return " ".join(_WORD.findall(_TAG.sub(" ", " ".join(_MAIN.findall(text)) or text)))


def with_likeness(page: Page, body: bytes) -> Page:
    """The page with what it is compared by, where the parser has not said so."""
    if page.sketch:
        return page
    likeness = likeness_of(text_of(body))
    return replace(page, simhash=likeness.simhash, sketch=likeness.sketch, words=likeness.words)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of the crawls in a test are compared by this, where the parser has not said by what."""
    parse: Callable[..., Page] = reading.parse_html
    monkeypatch.setattr(
        reading, "parse_html", lambda body, *given, **named: with_likeness(parse(body, *given, **named), body)
    )
