"""What is told of a page as JSON lines and as Parquet: one list of fields for both, and for the documentation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from .document import Document


class Kind(StrEnum):
    """What a field holds."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "true or false"
    MOMENT = "time"
    PAIRS = "list of pairs"
    LINKS = "list of links"


class Column(NamedTuple):
    """One field."""

    name: str
    kind: Kind
    meaning: str
    value: Callable[[Document], object]


def moment(milliseconds: int) -> str:
    """An instant as JSON has it, ``2026-01-31T12:34:56.789Z``."""
    whole = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def _simhash(document: Document) -> str:
    number = document.row.simhash
    return "" if number is None else f"{number & ((1 << 64) - 1):016x}"


COLUMNS: tuple[Column, ...] = (
    Column("url", Kind.TEXT, "the URL as it was requested", lambda one: one.row.url),
    Column("host", Kind.TEXT, "host of the URL", lambda one: one.row.host),
    Column("domain", Kind.TEXT, "registrable domain of the host", lambda one: one.row.domain),
    Column("status", Kind.NUMBER, "HTTP status of the answer", lambda one: one.row.status),
    Column("fetched_at", Kind.MOMENT, "when it was requested, UTC", lambda one: one.row.at),
    Column(
        "last_seen_at", Kind.MOMENT, "the last visit that found this same content, UTC", lambda one: one.last_seen_at
    ),
    Column("content_type", Kind.TEXT, "the header Content-Type", lambda one: one.row.content_type),
    Column("media_type", Kind.TEXT, "the type by header and bytes", lambda one: one.media_type),
    Column("charset", Kind.TEXT, "the charset the text was decoded with", lambda one: one.charset),
    Column("title", Kind.TEXT, "title of the page", lambda one: one.title),
    Column("language", Kind.TEXT, "language, declared or else guessed", lambda one: one.language),
    Column("text", Kind.TEXT, "the main text", lambda one: one.text()),
    Column("links", Kind.LINKS, "url, tag, rel and text of each link", lambda one: one.links),
    Column("headers", Kind.PAIRS, "name and value of each header of the answer", lambda one: one.headers),
    Column("depth", Kind.NUMBER, "hops from a seed", lambda one: one.row.depth),
    Column("via", Kind.TEXT, "the page it was found on; empty for a seed", lambda one: one.row.via),
    Column("canonical", Kind.TEXT, "the URL that the page declares canonical", lambda one: one.row.canonical),
    Column(
        "duplicate_of", Kind.TEXT, "the URL where the same content was seen first", lambda one: one.row.duplicate_of
    ),
    Column(
        "near_duplicate_of",
        Kind.TEXT,
        "an earlier page that says nearly the same",
        lambda one: one.row.near_duplicate_of,
    ),
    Column("sha256", Kind.TEXT, "SHA-256 of the decoded body, hexadecimal", lambda one: one.sha256),
    Column("simhash", Kind.TEXT, "SimHash of the main text, hexadecimal", _simhash),
    Column("length", Kind.NUMBER, "length of the decoded body in bytes", lambda one: len(one.body)),
    Column("truncated", Kind.TEXT, "why the body is not whole; empty where it is", lambda one: one.row.truncated),
    Column(
        "rendered",
        Kind.FLAG,
        "title, text and links are from the document rendered in a browser",
        lambda one: one.rendered,
    ),
    Column("noindex", Kind.FLAG, "the page asks not to be indexed", lambda one: one.noindex),
    Column("noarchive", Kind.FLAG, "the page asks that no copy be shown", lambda one: one.noarchive),
    Column("nofollow", Kind.FLAG, "the page asks that its links not be followed", lambda one: one.nofollow),
    Column("signals", Kind.TEXT, "what robots.txt says about the use of content", lambda one: one.row.signals),
    Column("extracted", Kind.PAIRS, "field and text of each value found by plugins", lambda one: one.extracted),
    Column("elapsed_ms", Kind.NUMBER, "time the answer took, in milliseconds", lambda one: one.row.elapsed_ms),
    Column("archive_file", Kind.TEXT, "the WARC file that holds it", lambda one: one.row.segment),
    Column("archive_offset", Kind.NUMBER, "its offset in that file", lambda one: one.row.offset),
)


class Edge(NamedTuple):
    """A link of the link graph (W4)."""

    source: str
    target: str
    text: str
    rel: str
    tag: str
    nofollow: bool
    discovered_at: int


EDGE_COLUMNS: tuple[tuple[str, Kind, str], ...] = (
    ("source", Kind.TEXT, "the page with the link"),
    ("target", Kind.TEXT, "the URL it leads to"),
    ("text", Kind.TEXT, "the anchor text, up to 200 characters"),
    ("rel", Kind.TEXT, "rel of the link, in lower case"),
    ("tag", Kind.TEXT, "a, area, link, iframe, frame, form, meta ..."),
    ("nofollow", Kind.FLAG, "the link or its page asks that it not be followed"),
    ("discovered_at", Kind.MOMENT, "when the page with the link was requested, UTC"),
)


def edges_of(document: Document) -> list[Edge]:
    """Every link of a page."""
    source, at, nofollow = document.row.url, document.row.at, document.nofollow
    return [
        Edge(source, link.url, link.text, link.rel, link.tag, nofollow or "nofollow" in link.rel.split(), at)
        for link in document.links
    ]
