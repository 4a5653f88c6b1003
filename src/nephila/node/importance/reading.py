"""From captures in the archive to rows of the link graph (R3).

The links of a page are those of its metadata record: every reference that it had, with its tag and what it says of
itself. What counts as a vote is decided here: an anchor, an area, a frame, a refresh, a link in a document. What a page
loads (images, frames inside it), posts to, or is related to (`link`) is no vote, nor is what its author does not stand
for (`nofollow`, `ugc`, `sponsored`, or a page that says nofollow). URLs are told apart as the crawl does, aliases that
it has learned included, as they were in force when the capture was read.

The archive is read in the order of its files, from where the last reading ended to where the catalogue has listed it:
what is not listed yet is read the next time, what is listed nowhere belongs to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from nephila.engines.disk import DiskFile
from nephila.interfaces.aliases import Aliases
from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.model.exchange import REDIRECTS
from nephila.model.record import SegmentId
from nephila.pipeline.capturing import NOTE_LISTING, NOTES
from nephila.ranking import Kind, LinkGraph, Row, RunBuffer, page_name, rest_of, text_name
from nephila.store.metadata import MetadataFields
from nephila.store.readback import parse_head, units
from nephila.store.reader import DamagedArchiveError, WarcReader, WarcRecord
from nephila.store.tombstone import is_tombstone
from nephila.urls import Address, Identifier, UrlRefused, registrable_domain, resolve_location

FLUSH_BYTES = 32 << 20
"""What was read is written when it is so large: that bounds memory, and what a kill costs."""

NO_VOTES = frozenset({"link", "iframe", "form", "img", "srcset"})
"""Tags of references that nobody follows by reading a page."""
NOT_MEANT = frozenset({"nofollow", "ugc", "sponsored"})
"""Words of a link's rel by which its author does not stand for it."""
NOT_MODIFIED = 304
MISSING = frozenset({404, 410})
_NO_PAGE = frozenset({NOTE_LISTING, *NOTES.values()})
_DOMAINS_AT_HAND = 1 << 16


@dataclass(slots=True)
class Read:
    """What a reading came to."""

    captures: int = 0
    links: int = 0
    missing: list[SegmentId] = field(default_factory=list)
    """Files that the catalogue lists and that are not there."""
    damaged: list[str] = field(default_factory=list)
    """Where files could not be read on, in sentences."""


class LinkReader:
    """Makes rows of captures."""

    def __init__(self, identifier: Identifier, aliases: Aliases | None) -> None:
        self._identifier = identifier
        self._aliases = aliases
        self._domains: dict[str, tuple[str, int]] = {}

    def row_of(self, listed: CaptureRow, unit: list[WarcRecord], texts: set[str]) -> Row | None:
        """The row of a page's capture; None for one that says nothing. `texts` gets the domains that occur."""
        status, name = listed.status, page_name(listed.fingerprint)
        kind, links = Kind.GONE, dict[int, str]()
        if 200 <= status < 300:
            fields = MetadataFields.parse(unit[-1].block)
            notes = dict(fields.notes)
            if notes.keys().isdisjoint(_NO_PAGE):
                kind = Kind.PAGE
                if "nofollow" not in notes.get("directives", "").split():
                    links = self._votes(fields.outlinks)
        elif status in REDIRECTS:
            links = self._target(listed, unit[0])
            if name in links:
                return None  # another spelling of itself
            kind = Kind.MOVED if links else Kind.GONE
        elif status not in MISSING:
            return None  # it says nothing of what is there
        links.pop(name, None)
        texts.add(listed.domain)
        foreign = {domain for host in {*links.values()} if (domain := self._domain(host))[0] != listed.domain}
        texts.update(text for text, _ in foreign)
        return Row(
            name,
            rest_of(listed.fingerprint),
            listed.at,
            kind,
            text_name(listed.domain),
            text_name(listed.segment),
            listed.offset,
            self._canonical(listed, name) if kind is Kind.PAGE else 0,
            list(links),
            sorted(number for _, number in foreign),
        )

    def _votes(self, outlinks: tuple[str, ...]) -> dict[int, str]:
        """The hosts of what a page votes for, by name."""
        urls: list[str] = []
        for outlink in outlinks:
            url, _, said = outlink.partition(" ")
            tag, _, rel = said.partition(" ")
            if tag not in NO_VOTES and not (rel and not NOT_MEANT.isdisjoint(rel.lower().split())):
                urls.append(url)
        return self._named(self._identifier.identify_resolved(urls))

    def _target(self, listed: CaptureRow, answer: WarcRecord) -> dict[int, str]:
        """Where a redirect leads: the same."""
        _, headers = parse_head(answer.block.partition(b"\r\n\r\n")[0])
        location = next((value for name, value in headers if name == "location"), "")
        url = resolve_location(listed.url, location) if location else None
        return self._named([self._identifier.identify(url)] if url is not None else ())

    def _named(self, found: Sequence[Address | UrlRefused]) -> dict[int, str]:
        """Hosts by the names of their URLs, aliases under what they stand for."""
        rules = self._aliases.in_force() if self._aliases is not None else None
        hosts: dict[int, str] = {}
        for address in found:
            if isinstance(address, UrlRefused):
                continue
            own = rules[address.host] if rules is not None else None
            aliased = own.resolve(address) if own is not None else None
            other = self._identifier.address_of(aliased.url) if aliased is not None and aliased.url else None
            meant = other or address
            hosts[page_name(meant.fingerprint)] = meant.host
        return hosts

    def _canonical(self, listed: CaptureRow, name: int) -> int:
        """The name of the page that a page names as its canonical form; 0 where that is itself, or none."""
        address = self._identifier.identify(listed.canonical) if listed.canonical else None
        other = page_name(address.fingerprint) if isinstance(address, Address) else name
        return 0 if other == name else other

    def _domain(self, host: str) -> tuple[str, int]:
        known = self._domains.get(host)
        if known is None:
            if len(self._domains) >= _DOMAINS_AT_HAND:
                self._domains.clear()
            domain = registrable_domain(host)
            known = self._domains[host] = (domain, text_name(domain))
        return known


def read_links(
    graph: LinkGraph,
    marks: Mapping[SegmentId, int],
    catalogue: Catalogue,
    open_file: Callable[[SegmentId], DiskFile],
    reader: LinkReader,
) -> Read:
    """Bring a graph up to date with the archive; `marks` says up to where each of its files is confirmed."""
    read, buffer = Read(), RunBuffer()
    for segment, confirmed in sorted(marks.items()):
        start = graph.upto(segment)
        upto = catalogue.upto(segment) if start < confirmed else 0
        if start >= upto:
            continue
        listed = {row.offset: row for row in catalogue.captures(segment) if start <= row.offset < upto and is_page(row)}
        try:
            file = open_file(segment)
        except FileNotFoundError:
            read.missing.append(segment)
            continue
        with closing(file):
            for unit in _units(file, segment, start, upto, read):
                row = listed.get(unit[0].offset)
                made = reader.row_of(row, unit, buffer.texts) if row is not None else None
                if made is not None:
                    buffer.add(made)
                    read.captures += 1
                    read.links += len(made.links)
                if buffer.size > FLUSH_BYTES:
                    buffer.cover(segment, start, unit[-1].end)
                    graph.add(buffer)
                    buffer, start = RunBuffer(), unit[-1].end
        buffer.cover(segment, start, upto)
    graph.add(buffer)
    return read


def is_page(row: CaptureRow) -> bool:
    """Whether a row of the catalogue tells of a page: not of a robots.txt, nor of a part of a visit."""
    return bool(row.fingerprint) and not row.robots and row.status != NOT_MODIFIED


def _units(file: DiskFile, segment: SegmentId, start: int, upto: int, read: Read) -> Iterator[list[WarcRecord]]:
    """The captures of a stretch of a file, those that were taken out apart."""
    try:
        for unit in units(WarcReader(file, segment, start)):
            if unit[0].offset >= upto:
                return
            if not is_tombstone(unit[0]):
                yield unit
    except DamagedArchiveError as error:
        if error.offset < upto:
            read.damaged.append(str(error))
