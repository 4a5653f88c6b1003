"""The link graph of a crawl on disk: a folder of runs, which grows with the archive (R3).

What was read of the archive stays read. Each reading adds runs; small ones are joined with their neighbours, so that
there are some dozens of them at any size. A run that is damaged or was deleted leaves a gap, and what it covered is
read again: rows that are there twice do no harm. Runs that another one stands for, drafts and files of another crawl
are removed when the folder is opened.

One process at a time, which holds the folder's lock (`held`). Nothing here is needed by the crawl.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Self

from .run import Run, RunBuffer, joined_spans
from .sections import DRAFT, DamagedFileError, refused
from .words import text_name

MOST_RUN_BYTES = 256 << 20
"""A run is joined with its neighbour up to this size: in memory, so that it bounds what that takes."""

_NAME = re.compile(r"([0-9]{8})\.links")
LOCK = "lock"


@contextmanager
def held(folder: Path, waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold the folder; whether that was possible. `waiting` is called before another holder is waited for.

    Where it is not given, nobody is waited for.
    """
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise refused(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if waiting is None:
                yield False
                return
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield True
    finally:
        os.close(descriptor)


class LinkGraph:
    """The runs of one crawl, for whoever holds its folder."""

    def __init__(self, folder: Path, identity: str, most_bytes: int = MOST_RUN_BYTES) -> None:
        """`identity` tells the crawl's names from those of others."""
        self._folder = folder
        self._identity = identity
        self._most_bytes = most_bytes
        self.runs: list[Run] = []
        """In the order in which they were written."""
        try:
            self._open()
        except OSError as error:
            self.close()
            raise refused(folder, error) from error

    def _open(self) -> None:
        self._folder.mkdir(exist_ok=True)
        names = sorted(path.name for path in self._folder.iterdir())
        for name in names:
            path = self._folder / name
            if name.endswith(DRAFT):
                path.unlink(missing_ok=True)
            elif _NAME.fullmatch(name):
                try:
                    self.runs.append(Run(path, self._identity))
                except DamagedFileError:
                    path.unlink(missing_ok=True)
        replaced = {name for run in self.runs for name in run.replaces}
        for run in [run for run in self.runs if run.path.name in replaced]:
            self._drop(run)
        numbers = [int(found[1]) for name in names if (found := _NAME.fullmatch(name))]
        self._numbers = count(max(numbers, default=0) + 1)
        self._spans = joined_spans(run.spans for run in self.runs)

    def upto(self, segment: str) -> int:
        """Up to where a file of the archive was read without a gap."""
        start, end = next(iter(self._spans.get(segment, ())), (0, 0))
        return end if start == 0 else 0

    @property
    def segments(self) -> frozenset[str]:
        """Files of the archive of which something was read."""
        return frozenset(self._spans)

    @property
    def mark(self) -> str:
        """What it consists of, in a few letters: another one after every change."""
        return f"{text_name(' '.join(run.path.name for run in self.runs)):016x}"

    @property
    def rows(self) -> int:
        """Captures, repeated ones included."""
        return sum(run.rows for run in self.runs)

    def add(self, buffer: RunBuffer) -> None:
        """Keep what was read; durable when it returns."""
        if not buffer.spans:
            return
        self._write(buffer, ())
        self._spans = joined_spans((self._spans, buffer.spans))
        while len(self.runs) > 1 and self._is_to_be_joined():
            last, before = self.runs[-1], self.runs[-2]
            whole = RunBuffer()
            whole.take(before)
            whole.take(last)
            self._write(whole, (before, last))

    def _is_to_be_joined(self) -> bool:
        """Each run is twice as large as the next one at least, unless it is large enough."""
        last, before = self.runs[-1].size, self.runs[-2].size
        return before < 2 * last and before + last <= self._most_bytes

    def forget(self, segments: frozenset[str]) -> None:
        """Files that are not in the archive any more."""
        if not segments & self.segments:
            return
        gone = {text_name(segment) for segment in segments}
        self._sift(lambda segment, _: segment not in gone, segments)
        self._spans = joined_spans(run.spans for run in self.runs)

    def hold_against(self, listed: Callable[[str], set[int]]) -> None:
        """Leave out captures that are not listed any more; `listed` has the offsets of those that are, by file."""
        spelled = {text_name(segment): segment for segment in self.segments}
        known: dict[int, set[int]] = {}

        def is_listed(segment: int, offset: int) -> bool:
            if segment not in known:
                known[segment] = listed(spelled[segment]) if segment in spelled else set()
            return offset in known[segment]

        self._sift(is_listed)

    def _sift(self, stays: Callable[[int, int], bool], gone: frozenset[str] = frozenset()) -> None:
        for run in list(self.runs):
            anew = run.sifted(stays, gone)
            if anew is None:
                continue
            if anew.spans:
                self._write(anew, (run,))
            else:
                self._drop(run)

    def _write(self, buffer: RunBuffer, instead_of: tuple[Run, ...]) -> None:
        path = self._folder / f"{next(self._numbers):08d}.links"
        buffer.write(path, self._identity, [run.path.name for run in instead_of])
        place = self.runs.index(instead_of[0]) if instead_of else len(self.runs)
        for run in instead_of:
            self._drop(run)
        self.runs.insert(place, Run(path, self._identity))

    def _drop(self, run: Run) -> None:
        self.runs.remove(run)
        run.close()
        with suppress(OSError):  # what stands for it says so
            run.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give the memory back."""
        for run in self.runs:
            run.close()
        self.runs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
