"""Archive, index and catalogue after a crawl: three books that must tell the same, in files that others can read."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import zstandard

from nephila.frontier.embedded import LmdbFrontier
from nephila.model.record import SegmentId
from nephila.model.task import PageTask
from nephila.node.archiving import Medium, local_archive
from nephila.node.directory import CrawlDirectory
from nephila.store import SqliteCatalogue
from nephila.store.reader import DamagedArchiveError, WarcReader
from nephila.store.verify import digest_problems

if TYPE_CHECKING:
    from .world import World

Place = tuple[str, int]
WARC, INDEX, DRAFT = (".warc.gz", ".warc.zst"), ".cdxj", ".part"
"""After a power loss the name of a draft may be there beside that of the index which it became."""
FOREIGN_EVERY = 10
"""Of so many seeds one has its archive read by another program, too."""
_NOT_MODIFIED = 304
_GZIP = 31
"""What zlib calls it."""


class Books:
    """What a crawl directory holds, by each of its books."""

    def __init__(self, world: World, frontier: LmdbFrontier) -> None:
        self._world = world
        self._frontier = frontier
        self._folder = world.out / "warc"
        self._names = world.disk.names(self._folder)
        self.answers: set[Place] = set()
        """Response and revisit records that somebody owns."""
        self.cut: set[Place] = set()
        """Those whose body did not come whole."""
        self._unlisted: set[Place] = set()
        """Those of them that the index leaves out: 304."""
        self._pages: Counter[str] = Counter()
        """Pages stored whole, by identity."""

    def check(self) -> list[str]:
        """Read all three; whatever does not agree."""
        try:
            return self._check()
        except DamagedArchiveError as error:
            return [f"an archive file is damaged: {error}"]

    def _check(self) -> list[str]:
        segments = [SegmentId(name) for name in self._names if name.endswith(WARC)]
        told = [f"{name} is nothing that we write" for name in self._names if not name.endswith((*WARC, INDEX, DRAFT))]
        for segment in segments:
            told += self._read_records(segment)
        told += self._read_captures(segments)
        told += self._compare_catalogue(segments)
        told += self._compare_index()
        if self._frontier.snapshot().states["pending"]:
            told.append(f"{self._frontier.snapshot().states['pending']} page(s) wait for their bytes to be synced")
        twice = {url: count for url, count in self._pages.items() if count > 1}
        told += [f"stored {count} times: {url}" for url, count in sorted(twice.items())]
        if self._world.scenario.seed % FOREIGN_EVERY == 0:
            told += self._read_with_another_program(segments)
        return told

    def _read_records(self, segment: SegmentId) -> list[str]:
        """Every record is whole, and its digests hold."""
        told = []
        file = self._world.disk.open(self._folder / segment)
        try:
            for record in WarcReader(file, segment, 0):
                told += [f"{segment} at {record.offset}: {problem}" for problem in digest_problems(record)]
        finally:
            file.close()
        return told

    def _read_captures(self, segments: list[SegmentId]) -> list[str]:
        """What somebody owns, and whether bodies are what the servers sent."""
        world, told = self._world, []
        directory = CrawlDirectory(world.out)
        medium = Medium(world.clock, world.disk)
        archive = local_archive(directory.warc, world.scenario.settings, medium, self._frontier.secret)
        originals: set[str] = set()
        referred: list[tuple[Place, str]] = []
        for segment in segments:
            orphans = self._frontier.view.orphans(segment)
            for capture, stored in archive.tail(segment, 0):
                originals.add(stored.record_id)
                place = (segment, stored.ref.offset)
                if place[1] in orphans:
                    continue
                self.answers.add(place)
                if capture.fetched.truncated is not None:
                    self.cut.add(place)
                if capture.fetched.status == _NOT_MODIFIED:
                    self._unlisted.add(place)
                if capture.revisit_of is not None:
                    referred.append((place, capture.revisit_of.record_id))
                fetched = capture.fetched
                if isinstance(capture.task, PageTask) and fetched.truncated is None and _is_final(fetched.status):
                    self._pages[f"{fetched.status} {fetched.url}"] += 1
                if isinstance(capture.task, PageTask) and 200 <= fetched.status < 300 and fetched.truncated is None:
                    self._pages[world.web.identify(fetched.url) or fetched.url] += 1
                    expected = world.web.expected_body(fetched.url)
                    kept = capture.revisit_of is None and not capture.body_left_out and not fetched.unwanted
                    if kept and expected is not None and fetched.body != expected:
                        told.append(f"the body of {fetched.url} is not what was sent")
        told += [
            f"{place} refers to a record that is not there: {one}" for place, one in referred if one not in originals
        ]
        return told

    def _compare_catalogue(self, segments: list[SegmentId]) -> list[str]:
        catalogue = SqliteCatalogue(self._world.out / "catalogue.sqlite", read_only=True)
        try:
            listed = [(str(row.segment), row.offset) for segment in segments for row in catalogue.captures(segment)]
            rows = catalogue.capture_count()
        finally:
            catalogue.close()
        return _differences("the catalogue", listed, self.answers) + (
            [f"the catalogue has {rows} rows, {len(listed)} of files that are there"] if rows != len(listed) else []
        )

    def _compare_index(self) -> list[str]:
        lines = [
            line
            for name in self._names
            if name.endswith(INDEX)
            for line in self._world.disk.contents(self._folder / name).decode().splitlines()
        ]
        fields = [json.loads(line.split(" ", 2)[2]) for line in lines]
        listed = [(str(one["filename"]), int(one["offset"])) for one in fields]
        mine = [place for place in listed if place in self.answers]
        return _differences("the index", mine, self.answers - self._unlisted)

    def _read_with_another_program(self, segments: list[SegmentId]) -> list[str]:
        """Others' code must find the same records, each a member or frame of its own that begins as WARC does."""
        told: list[str] = []
        places: set[Place] = set()
        for segment in segments:
            data, offset = self._world.disk.contents(self._folder / segment), 0
            while offset < len(data):
                member = _unpacker(segment)
                head = member.decompress(data[offset:]).partition(b"\r\n\r\n")[0].split(b"\r\n")
                if not member.eof or not head[0].startswith(b"WARC/"):
                    told.append(f"gzip finds no record in {segment} at {offset}")
                    break
                if not {b"WARC-Type: response", b"WARC-Type: revisit"}.isdisjoint(head):
                    places.add((segment, offset))
                offset = len(data) - len(member.unused_data)
        return told + [f"gzip does not find {place}" for place in sorted(self.answers - places)]


def _unpacker(segment: SegmentId) -> Any:  # noqa: ANN401 - of one library or another
    """What unpacks one record of a file."""
    if segment.endswith(".zst"):
        return zstandard.ZstdDecompressor().decompressobj()
    return zlib.decompressobj(_GZIP)


def _is_final(status: int) -> bool:
    """Whether an answer that is no page ends its URL."""
    return 300 <= status < 500 and status != 429


def _differences(book: str, listed: list[Place], answers: set[Place]) -> list[str]:
    told = [f"{book} lists {place} twice" for place, count in Counter(listed).items() if count > 1]
    told += [f"{book} lacks {place}" for place in sorted(answers - set(listed))[:5]]
    return told + [f"{book} lists {place}, which is nobody's" for place in sorted(set(listed) - answers)[:5]]
