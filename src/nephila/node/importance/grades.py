"""The ranks of a crawl as they were computed last, for whoever asks while they are computed anew (R3).

The files are mapped, and looked for again every few seconds; a newer one takes the place of an older one between two
questions. A file that is damaged, of another crawl or gone is as none. The frontier asks for a domain once, and then
has it from a small memory; where there is no file, a look at the clock is all that it costs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from nephila.ranking import (
    DOMAINS,
    PAGES,
    Computation,
    DamagedFileError,
    DomainGrades,
    DomainRanks,
    PageRanks,
    RankedDomain,
)
from nephila.urls import registrable_domain

LOOK_MS = 10_000
"""How often is looked whether a file is another one."""
HOSTS_AT_HAND = 1 << 16

_File = TypeVar("_File", PageRanks, DomainRanks, DomainGrades)
_Graded = TypeVar("_Graded", DomainRanks, DomainGrades)


class _Newest(Generic[_File]):
    """The newest file of a kind, open; None where there is none that can be read."""

    def __init__(self, path: Path, kind: Callable[[Path, str], _File]) -> None:
        self._path = path
        self._kind: Callable[[Path, str], _File] = kind
        self._stat: tuple[int, int, int] | None = None
        self.file: _File | None = None

    def look(self, identity: str) -> bool:
        """Open it where it is another one; whether it was."""
        try:
            found = self._path.stat()
            stat = (found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:
            stat = None
        if stat == self._stat:
            return False
        self.close()
        self._stat = stat
        try:
            self.file = self._kind(self._path, identity) if stat is not None else None
        except (OSError, DamagedFileError):
            self.file = None
        return True

    def close(self) -> None:
        """Let go of it."""
        if self.file is not None:
            self.file.close()
            self.file = None


class FileGrades(Generic[_Graded]):
    """Implements `interfaces.repute.Repute` by a file that others put in place. Safe for threads."""

    def __init__(
        self, path: Path, kind: Callable[[Path, str], _Graded], steady_ms: Callable[[], int], identity: str = ""
    ) -> None:
        """`identity` is the crawl's, and may be given later: until then there is nothing."""
        self.identity = identity
        self._steady_ms = steady_ms
        self._lock = threading.Lock()
        self._domains: _Newest[_Graded] = _Newest(path, kind)
        self._looked_at: int | None = None
        self._grades: dict[str, int | None] = {}

    def look(self) -> bool:
        """As the interface."""
        with self._lock:
            now = self._steady_ms()
            if self.identity and (self._looked_at is None or now - self._looked_at >= LOOK_MS):
                self._looked_at = now
                if self._domains.look(self.identity):
                    self._grades.clear()
            return self._domains.file is not None

    def grade_of(self, host: str) -> int | None:
        """As the interface."""
        with self._lock:
            if host in self._grades:
                return self._grades[host]
            if len(self._grades) >= HOSTS_AT_HAND:
                self._grades.clear()
            file = self._domains.file
            grade = self._grades[host] = file.grade_of(registrable_domain(host)) if file is not None else None
            return grade

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._domains.close()


class DirectoryRanks(FileGrades[DomainRanks]):
    """The ranks of a crawl directory: for its frontier, and for people."""

    def __init__(self, folder: Path, steady_ms: Callable[[], int], identity: str = "") -> None:
        super().__init__(folder / DOMAINS, DomainRanks, steady_ms, identity)
        self._pages = _Newest(folder / PAGES, PageRanks)

    def of_domain(self, domain: str) -> tuple[RankedDomain, Computation] | None:
        """What was computed of a domain, for people."""
        with self._lock:
            self._domains.look(self.identity)
            file = self._domains.file
            found = file.of(domain) if file is not None else None
            return None if file is None or found is None else (found, file.said)

    def of_page(self, fingerprint: bytes) -> tuple[float, Computation] | None:
        """What was computed of a page, likewise."""
        with self._lock:
            self._pages.look(self.identity)
            file = self._pages.file
            rank = file.rank_of(fingerprint) if file is not None else None
            return None if file is None or rank is None else (rank, file.said)

    def close(self) -> None:
        """Let go of the files."""
        super().close()
        with self._lock:
            self._pages.close()
