"""`domains.grades`: what scores need of the ranks of domains and nothing else, for those who compute none (R3).

Nine bytes a domain, where `domains.ranks` has 33: it is brought to every worker of a fleet. Names are spread evenly and
sorted, so one of them is found by guessing where it stands: `GradesAfar` reads a few kilobytes of a file that lies in a
store of objects.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from .sections import DamagedFileError, Sections, placed_in, write_sections
from .words import Words, text_name

GRADES: Final = "domains.grades"
_KIND = "grades 1"
_NAMES = 1 << 64
_AT_ONCE = 8192
"""Names that are read together. Ten million of them are some thousands from where they would be if spread evenly."""
_WORD = 8


def write_grades(path: Path, identity: str, names: Words, grades: bytes | memoryview[int], made_at: int) -> None:
    """Write the grades of domains, by their names in order; there may be none. Raises `StorageError`."""
    write_sections(path, f"{_KIND} {identity}", {"made_at": made_at}, {"names": names, "grades": grades})


class DomainGrades:
    """Such a file, mapped. Raises `DamagedFileError` for what is none, or of another crawl; FileNotFoundError."""

    def __init__(self, path: Path, identity: str) -> None:
        self._file = Sections(path, f"{_KIND} {identity}")
        try:
            self._names, self._grades = self._file.words("names"), self._file.bytes("grades")
        except (KeyError, TypeError, ValueError) as error:
            self._file.close()
            raise DamagedFileError(path.name) from error

    def grade_of(self, domain: str) -> int | None:
        """The grade of a domain; None for one that is not among them."""
        name = text_name(domain)
        place = bisect_left(self._names, name)
        return self._grades[place] if place < len(self._names) and self._names[place] == name else None

    def close(self) -> None:
        """Give the memory back."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class GradesAfar:
    """Such a file that lies elsewhere, for whoever asks for a domain or two. Its checksum is not looked at."""

    def __init__(self, read_at: Callable[[int, int], bytes], size: int, identity: str) -> None:
        """Raises `DamagedFileError` for what is none, or of another crawl."""
        self._read_at = read_at
        places = placed_in(read_at, size, f"{_KIND} {identity}")
        try:
            self._names_at, length = places["names"]
            self._grades_at, _ = places["grades"]
        except KeyError as error:
            raise DamagedFileError from error
        self._count = length // _WORD

    def grade_of(self, domain: str) -> int | None:
        """As `DomainGrades`."""
        name, low, high = text_name(domain), 0, self._count
        while low < high:
            first = max(low, min(name * self._count // _NAMES - _AT_ONCE // 2, high - _AT_ONCE))
            if low > 0 or high < self._count:  # they are not spread so evenly
                first = max(low, (low + high - _AT_ONCE) // 2)
            names = self._names(first, min(_AT_ONCE, high - first))
            place = bisect_left(names, name)
            if place < len(names) and names[place] == name:
                return self._read_at(self._grades_at + first + place, 1)[0]
            if 0 < place < len(names):
                return None
            low, high = (low, first) if place == 0 else (first + len(names), high)
        return None

    def _names(self, first: int, count: int) -> tuple[int, ...]:
        data = self._read_at(self._names_at + _WORD * first, _WORD * count)
        return struct.unpack(f"={len(data) // _WORD}Q", data)
