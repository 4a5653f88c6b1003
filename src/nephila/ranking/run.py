"""A *run*: what was read of the archive in one go, as columns in a file that is never changed (R3).

    names rests times kinds domains segments offsets canonicals    a number of 64 bits a capture
    links_of foreign_of                                            how many names of each a capture has
    links foreign                                                  these names, one behind the other
    texts                                                          the domains that occur, one a line

Columns, because most questions need one or two of them, and because joining two runs is writing each column of one
behind that of the other. 80 bytes a capture and 8 a link: a page with 80 links takes 0.7 KB.

`spans` says which stretches of which files of the archive it covers. A file that grows is covered by several runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TypeAlias

from .row import Kind, Row
from .sections import DamagedFileError, Sections, write_sections
from .words import text_name

KIND = "links 1"
"""What such a file is called in it, with the version of what it holds."""
COLUMNS = (
    "names", "rests", "times", "kinds", "domains", "segments", "offsets", "canonicals", "links_of", "foreign_of",
    "links", "foreign",
)  # fmt: skip
_OF_ROWS = COLUMNS[:-2]

Spans: TypeAlias = dict[str, list[tuple[int, int]]]
"""Stretches by file, in order, none touching the next."""


class RunBuffer:
    """Rows that are to become a run."""

    def __init__(self) -> None:
        self.columns = {name: array("Q") for name in COLUMNS}
        self.texts: set[str] = set()
        self.spans: Spans = {}

    def __len__(self) -> int:
        return len(self.columns["names"])

    @property
    def size(self) -> int:
        """Bytes of it, about."""
        return sum(8 * len(column) for column in self.columns.values()) + 24 * len(self.texts)

    def add(self, row: Row) -> None:
        """One more capture; the texts of its domains are the caller's to add."""
        columns = self.columns
        fixed = (*row[:8], len(row.links), len(row.foreign))
        for name, value in zip(_OF_ROWS, fixed, strict=True):
            columns[name].append(value)
        columns["links"].extend(row.links)
        columns["foreign"].extend(row.foreign)

    def cover(self, segment: str, start: int, end: int) -> None:
        """A stretch of a file was read."""
        self.spans |= joined_spans(({segment: self.spans.get(segment, [])}, {segment: [(start, end)]}))

    def take(self, run: Run) -> None:
        """All of a run that is there."""
        for name, column in self.columns.items():
            column.frombytes(run.raw(name))
        self.texts |= set(run.texts())
        self.spans = joined_spans((self.spans, run.spans))

    def write(self, path: Path, identity: str, replaces: Sequence[str] = ()) -> int:
        """Make a run of it; its size. `replaces` are runs that it stands for from then on."""
        about = {"spans": self.spans, "replaces": list(replaces)}
        texts = "\n".join(sorted(self.texts)).encode("utf-8", "surrogatepass")
        return write_sections(path, f"{KIND} {identity}", about, {**self.columns, "texts": texts})


class Run:
    """A run on disk."""

    def __init__(self, path: Path, identity: str) -> None:
        """Raises `DamagedFileError` for what is none, or belongs to another crawl."""
        self._file = Sections(path, f"{KIND} {identity}")
        self.path = path
        self.size = self._file.size
        try:
            about = self._file.about
            self.spans: Spans = {
                str(segment): [(int(start), int(end)) for start, end in spans]
                for segment, spans in about["spans"].items()
            }
            self.replaces = tuple(map(str, about["replaces"]))
            self.rows = len(self.column("names"))
            self._check()
        except (DamagedFileError, KeyError, TypeError, ValueError) as error:
            self.close()
            raise DamagedFileError(path.name) from error

    def _check(self) -> None:
        whole = all(len(self.column(name)) == self.rows for name in _OF_ROWS)
        sums = (sum(self.column("links_of")), sum(self.column("foreign_of")))
        if not whole or sums != (len(self.column("links")), len(self.column("foreign"))):
            raise DamagedFileError(self.path.name)

    def column(self, name: str) -> memoryview[int]:
        """One of the columns."""
        return self._file.words(name)

    def raw(self, name: str) -> memoryview[int]:
        """The bytes of one of the columns."""
        return self._file.bytes(name)

    def texts(self) -> Iterator[str]:
        """The domains that occur."""
        whole = bytes(self._file.bytes("texts")).decode("utf-8", "surrogatepass")
        yield from whole.split("\n") if whole else ()

    def sifted(self, stays: Callable[[int, int], bool], gone: frozenset[str]) -> RunBuffer | None:
        """Its rows of which `stays` says so by file and offset, without the files that are `gone`; None if that is all.

        Domains that do not occur any more are left out, too.
        """
        places = zip(self.column("segments"), self.column("offsets"), strict=True)
        kept = [row for row, (segment, offset) in enumerate(places) if stays(segment, offset)]
        if len(kept) == self.rows and not gone & self.spans.keys():
            return None
        anew = RunBuffer()
        fixed = [self.column(name) for name in COLUMNS[:8]]
        links, foreign = self.column("links"), self.column("foreign")
        link_ends = list(pairwise(accumulate(self.column("links_of"), initial=0)))
        foreign_ends = list(pairwise(accumulate(self.column("foreign_of"), initial=0)))
        for row in kept:
            name, rest, at, kind, domain, segment, offset, canonical = (column[row] for column in fixed)
            own = links[slice(*link_ends[row])], foreign[slice(*foreign_ends[row])]
            anew.add(Row(name, rest, at, Kind(kind), domain, segment, offset, canonical, *own))
        known = set(chain(anew.columns["domains"], anew.columns["foreign"]))
        anew.texts = {text for text in self.texts() if text_name(text) in known}
        anew.spans = {segment: spans for segment, spans in self.spans.items() if segment not in gone}
        return anew

    def close(self) -> None:
        """Give the memory back."""
        self._file.close()


def joined_spans(several: Iterable[Mapping[str, Iterable[tuple[int, int]]]]) -> Spans:
    """All stretches, those that touch as one."""
    every: dict[str, list[tuple[int, int]]] = {}
    for spans in several:
        for segment, stretches in spans.items():
            every.setdefault(segment, []).extend(stretches)
    joined: Spans = {}
    for segment, stretches in every.items():
        own: list[tuple[int, int]] = []
        for start, end in sorted(stretches):
            if own and start <= own[-1][1]:
                own[-1] = (own[-1][0], max(own[-1][1], end))
            else:
                own.append((start, end))
        joined[segment] = own
    return joined
