"""Archive, index and catalogue of a simulated crawl, read and held against each other."""

from __future__ import annotations

import io
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from crashes import World
from warc_checks import FastIterator
from warcio.archiveiterator import ArchiveIterator

from nephila.frontier.embedded import LmdbFrontierView
from nephila.model.record import SegmentId

Place = tuple[str, int]


@dataclass(frozen=True)
class Contents:
    """What a crawl directory holds, by each of its three books."""

    answers: frozenset[Place]
    """Response and revisit records of the archive that somebody owns."""
    unchanged: frozenset[Place]
    """Those of them that are a 304, which the index leaves out."""
    listed: frozenset[Place]
    catalogued: frozenset[Place]
    pages: Counter[str]
    """Pages stored whole, by identity."""
    plans: dict[str, tuple[object, object]]
    """Pages whose next visit the catalogue and the frontier tell otherwise: what they tell."""
    planned: int
    """Pages whose next visit the catalogue knows."""


def _records(name: str, data: bytes) -> Iterator[tuple[str, int, str]]:
    """Type, place and profile of every record, as warcio reads them; FastWARC, where that cannot."""
    if name.endswith(".zst"):
        for found in FastIterator(io.BytesIO(data), parse_http=False):
            yield found.headers["WARC-Type"], found.stream_pos, found.headers.get("WARC-Profile", "")
        return
    iterator = ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    for record in iterator:
        yield record.rec_type, iterator.get_record_offset(), record.rec_headers.get("WARC-Profile", "")
        record.raw_stream.read()


def contents(world: World) -> Contents:
    """Read the archive, its index and the catalogue."""
    files = world.archive()
    view = LmdbFrontierView.open(world.out / "frontier", world.clock, 1 << 30)
    answers, unchanged, others = set[Place](), set[Place](), set[Place]()
    for name, data in files.items():
        if not name.endswith((".warc.gz", ".warc.zst")):
            continue
        orphans = view.orphans(SegmentId(name))
        orphaned = False
        for kind, offset, profile in _records(name, data):
            place = (name, offset)
            if kind in {"response", "revisit"}:
                orphaned = place[1] in orphans
                answers |= set() if orphaned else {place}
                if profile.endswith("/server-not-modified"):
                    unchanged.add(place)
            elif kind == "resource" and not orphaned:
                others.add(place)
    plans, planned = _plans(world, view)
    view.close()
    lines = [line for name, data in files.items() if name.endswith(".cdxj") for line in data.decode().splitlines()]
    fields = [json.loads(line.split(" ", 2)[2]) for line in lines]
    listed = [(one["filename"], int(one["offset"])) for one in fields]
    assert len(set(listed)) == len(listed), "a capture is listed twice"
    connection = sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)
    rows = connection.execute(
        'SELECT s.name, c."offset", c.url, c.status, c.truncated, c.robots FROM captures c JOIN segments s'
        " ON s.id = c.segment"
    ).fetchall()
    connection.close()
    pages = Counter(
        world.web.identify(url) or url
        for _, _, url, status, truncated, robots in rows
        if not robots and not truncated and 200 <= status < 300
    )
    catalogued = frozenset((name, offset) for name, offset, *_ in rows)
    own = frozenset(listed) - frozenset(others)
    return Contents(frozenset(answers), frozenset(unchanged), own, catalogued, pages, plans, planned)


def _plans(world: World, view: LmdbFrontierView) -> tuple[dict[str, tuple[object, object]], int]:
    """Where the catalogue and the frontier differ about the next visit of pages that have ended."""
    connection = sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)
    rows = connection.execute("SELECT url_hash, host, url, next_crawl_at, change_rate FROM pages").fetchall()
    connection.close()
    found: dict[str, tuple[object, object]] = {}
    for fingerprint, host, url, next_at, rate in rows:
        story = view.story(host, fingerprint)
        if story is None or story.state not in {"stored_pending", "completed"}:
            continue
        told, known = None if next_at is None else (next_at, rate), story.outlook
        if told != (None if known is None else tuple(known)):
            found[url] = (told, known)
    return found, sum(next_at is not None for *_, next_at, _ in rows)


def check_books(found: Contents) -> None:
    """Archive, catalogue and index tell the same."""
    assert found.catalogued == found.answers, "the catalogue is the archive's"
    assert found.listed == found.answers - found.unchanged, "so is the index"
    assert found.plans == {}, "the catalogue shows what the frontier has planned (W3)"


def check_whole(world: World, wanted: set[str]) -> None:
    """Same pages as an undisturbed crawl, none twice, three books that agree, nothing impolite."""
    found = contents(world)
    check_books(found)
    assert set(found.pages) == wanted
    assert found.planned >= len(wanted)
    assert {url: count for url, count in found.pages.items() if count > 1} == {}
    audit = world.auditor.report()
    assert {violation.kind for violation in audit.violations} <= {"repeat"}, audit.violations
    if world.power is None:
        on_the_wire = world.runs * len(audit.hosts)
        assert len(audit.violations) <= on_the_wire, "only what was on the wire may be asked for again"
