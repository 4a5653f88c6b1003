"""Queries taken apart: which page a URL would be without one of its parameters, and what is found there (D4, T3).

Two URLs that differ in the value of one parameter meet under one *place*: the URL in its normal form without that
parameter. What is found is named by the text of the page and by its links, from which the parameters in question are
taken out: a page that hands a session on in every link is the same page under every session, and a list whose items are
nothing but links is another list when its items are others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from xxhash import xxh3_64_digest

from nephila.model.page import Page

MOST = 8
"""Parameters of one URL that are looked at: more are no habit of a site but a form, or an attack."""


class Place(NamedTuple):
    """A URL without one of its parameters."""

    name: str
    value: str | None
    """What the parameter was; None where it was not there."""
    url: str


def places(key: str, wanted: Iterable[str] = ()) -> list[Place]:
    """The places of a URL in its normal form: one for each parameter, and for those in `wanted` that it has not."""
    path, _, query = key.partition("?")
    pairs = query.split("&") if query else []
    found: list[Place] = []
    names = [pair.partition("=")[0] for pair in pairs]
    for at, name in enumerate(names[:MOST]):
        if names.count(name) > 1 or not name:  # a repeated parameter is a list, and a nameless one nothing
            continue
        rest = "&".join(pairs[:at] + pairs[at + 1 :])
        found.append(Place(name, pairs[at], f"{path}?{rest}" if rest else path))
    found += (Place(name, None, key) for name in wanted if name not in names)
    return found


def missing(key: str, shorter: str) -> list[str]:
    """The parameters that a URL has and a shorter one has not, when that is all they differ in; both in normal form."""
    path, _, query = key.partition("?")
    other, _, kept = shorter.partition("?")
    if path != other or not query:
        return []
    pairs, rest = query.split("&"), kept.split("&") if kept else []
    gone = [pair for pair in pairs if pair not in rest]
    if [pair for pair in pairs if pair in rest] != rest:
        return []
    return list(dict.fromkeys(pair.partition("=")[0] for pair in gone))


def without(url: str, names: frozenset[str]) -> str:
    """A URL without some of its parameters, the others as they were written."""
    path, _, query = url.partition("?")
    rest = [pair for pair in query.split("&") if pair.partition("=")[0] not in names]
    return f"{path}?{'&'.join(rest)}" if rest and rest != [""] else path


def names_in(url: str) -> list[str]:
    """The names of the parameters of a URL, as they are written."""
    query = url.partition("?")[2]
    return [pair.partition("=")[0] for pair in query.split("&")] if query else []


def content_name(page: Page, names: frozenset[str]) -> bytes:
    """Eight bytes for what is found on a page, whatever those parameters are in its links; empty without a text."""
    if not page.text_hash:
        return b""
    links = "\n".join([link.url for link in page.links]).replace("?", "&")  # a parameter is one wherever it stands
    if names and any(f"&{name}" in links for name in names):
        links = _pattern(names).sub("", links)
    words = "\n".join([link.text for link in page.links])
    said = f"{links}\0{words}".encode("utf-8", "replace")
    return xxh3_64_digest(page.text_hash + said)


@lru_cache(maxsize=1024)
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Finds these parameters in URLs, one a line."""
    some = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"&(?:{some})(?:=[^&\n]*)?(?=[&\n]|$)")
