"""What of a capture counts as a vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from nephila.interfaces.aliases import HostAliases
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.alias import Aliased
from nephila.node.importance.reading import LinkReader, is_page
from nephila.ranking import Kind, Row, page_name, text_name
from nephila.store.reader import WarcRecord
from nephila.testing.contracts.catalogue import sample_row
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

URL = "https://here.example/page"
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


def name(url: str) -> int:
    return page_name(address(url).fingerprint)


LISTED = replace(
    sample_row(1), url=URL, fingerprint=address(URL).fingerprint, domain="here.example", status=200, canonical=""
)


def unit(outlinks: Sequence[str] = (), notes: Mapping[str, str] | None = None, head: str = "") -> list[WarcRecord]:
    lines = [f"note-{key}: {value}" for key, value in (notes or {}).items()]
    lines += [f"outlink: {one}" for one in outlinks]
    block = "".join(f"{line}\r\n" for line in lines).encode()
    answer = f"HTTP/1.1 200 OK\r\n{head}\r\nbody".encode("latin-1")
    return [
        WarcRecord(0, 1, 1, "WARC/1.1", (("warc-type", "response"),), answer),
        WarcRecord(1, 1, 2, "WARC/1.1", (("warc-type", "metadata"),), block),
    ]


def row(
    listed: CaptureRow, records: list[WarcRecord], reader: LinkReader | None = None, texts: set[str] | None = None
) -> Row | None:
    return (reader or LinkReader(IDENTIFIER, None)).row_of(listed, records, set() if texts is None else texts)


def votes(*outlinks: str, **notes: str) -> list[int]:
    found = row(LISTED, unit(outlinks, notes))
    assert found is not None
    return list(found.links)


def test_each_url_has_one_vote_and_none_is_its_own() -> None:
    """R3: whatever the spelling."""
    links = (f"{URL}#top a", "https://a.example/?b=1&utm_source=x a", "https://a.example/?b=1 a", f"{URL} a")
    assert votes(*links) == [name("https://a.example/?b=1")]


@pytest.mark.parametrize("tag", ["a", "area", "frame", "meta", "pdf", "pdf-text"])
def test_what_a_reader_can_follow_is_a_vote(tag: str) -> None:
    """R3: documents included."""
    assert votes(f"https://a.example/ {tag}") == [name("https://a.example/")]


@pytest.mark.parametrize(
    "said",
    [
        "link stylesheet",
        "iframe",
        "img",
        "srcset",
        "form",
        "a nofollow",
        "a noopener NoFollow",
        "a ugc",
        "area sponsored",
    ],
)
def test_what_nobody_follows_or_stands_for_is_none(said: str) -> None:
    """R3: resources, forms, and links whose author does not stand for them."""
    assert votes(f"https://a.example/ {said}") == []


def test_a_page_that_says_nofollow_has_no_votes() -> None:
    """R3, X2: it is a page all the same."""
    assert votes("https://a.example/ a", directives="nofollow noindex") == []
    assert votes("https://a.example/ a", directives="noindex") != []


def test_domains_that_are_linked_to_are_told_once() -> None:
    """R3: by registrable domain, without its own."""
    texts: set[str] = set()
    links = [f"https://{host}/ a" for host in ("www.a.example", "b.a.example", "x.here.example", "c.example")]
    found = row(LISTED, unit(links), texts=texts)
    assert found is not None
    assert len(found.links) == 4
    assert sorted(found.foreign) == sorted(map(text_name, ("a.example", "c.example")))
    assert texts == {"here.example", "a.example", "c.example"}


def test_a_redirect_leads_to_one_place() -> None:
    """R3: relative ones included; one to itself says nothing, one to nowhere that there is no page."""
    moved = replace(LISTED, status=301)
    found = row(moved, unit(head="Location: /other\r\n"))
    assert found is not None
    assert (found.kind, list(found.links)) == (Kind.MOVED, [name("https://here.example/other")])
    assert row(moved, unit(head=f"Location: {URL}#x\r\n")) is None
    nowhere = row(moved, unit(head="Location: mailto:a@b.example\r\n"))
    assert nowhere is not None
    assert nowhere.kind is Kind.GONE


@pytest.mark.parametrize("status", [404, 410])
def test_a_missing_page_is_gone(status: int) -> None:
    """R3, R5."""
    found = row(replace(LISTED, status=status), unit(["https://a.example/ a"]))
    assert found is not None
    assert (found.kind, list(found.links)) == (Kind.GONE, [])


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_an_answer_that_says_nothing_of_the_page_is_passed_over(status: int) -> None:
    """R3: what was known before stays."""
    assert row(replace(LISTED, status=status), unit()) is None


@pytest.mark.parametrize("note", ["softNotFound", "notFoundProbe", "listing"])
def test_what_is_no_page_is_gone(note: str) -> None:
    """R3, T4, X3: a page that stands for missing ones, a probe, a sitemap."""
    found = row(LISTED, unit(["https://a.example/ a"], {note: "x"}))
    assert found is not None
    assert (found.kind, list(found.links)) == (Kind.GONE, [])


def test_a_page_names_its_canonical_form_unless_that_is_itself() -> None:
    """R3: whatever the spelling."""
    told = {
        "https://here.example/real": name("https://here.example/real"),
        f"{URL}?utm_source=x": 0,
        "no url": 0,
        "": 0,
    }
    for canonical, expected in told.items():
        found = row(replace(LISTED, canonical=canonical), unit())
        assert found is not None
        assert found.canonical == expected


class Everywhere:
    """Aliases that leave queries away on one host."""

    def resolve(self, found: Address) -> Aliased | None:
        return Aliased(found.url.partition("?")[0], "seen") if "?" in found.url else None

    def in_force(self) -> Mapping[str, HostAliases | None]:
        return {"a.example": self, "b.example": None}


def test_aliases_that_were_learned_count_for_what_they_stand_for() -> None:
    """R3, D4."""
    reader = LinkReader(IDENTIFIER, Everywhere())  # type: ignore[arg-type]  # no more is asked of it
    links = ["https://a.example/x?ref=1 a", "https://a.example/x?ref=2 a", "https://b.example/x?ref=1 a"]
    found = row(LISTED, unit(links), reader)
    assert found is not None
    assert list(found.links) == [name("https://a.example/x"), name("https://b.example/x?ref=1")]
    moved = row(replace(LISTED, status=302), unit(head="Location: https://a.example/y?ref=1\r\n"), reader)
    assert moved is not None
    assert list(moved.links) == [name("https://a.example/y")]


def test_only_pages_are_looked_at() -> None:
    """R3: no robots.txt, no part of a visit, no 304."""
    assert is_page(LISTED)
    assert not is_page(replace(LISTED, robots=True))
    assert not is_page(replace(LISTED, fingerprint=b""))
    assert not is_page(replace(LISTED, status=304))
