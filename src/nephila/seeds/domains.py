"""Seeds from a CSV of domains, as rankings and registries publish them: ``1,example.org``, with or without header.

The first field of a row that is a domain counts, wherever it stands; a URL will do as well. The delimiter (comma,
semicolon, tab, bar) is the one with which most of the first rows show a domain. Quoted fields may run over several
lines, but a stray quote must not swallow the file: after `_MAX_RECORD_LINES` lines without its partner, the line where
it stands is read alone. A first row without a domain and without a number is the header; every other row without a
domain is passed on whole, to be refused by name.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from nephila.model.task import Level

from .lines import NumberedLines
from .seed import SEED_LEVEL, Seed
from .spelling import is_site

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_LINES = 50
_MAX_RECORD_LINES = 100


class DomainSeeds:
    """The domains among the comma-separated lines of a file or stream."""

    def __init__(self, lines: NumberedLines, level: Level = SEED_LEVEL) -> None:
        self._lines = lines
        self._level = level

    def __iter__(self) -> Iterator[Seed]:
        source = ((number, line) for number, line in self._lines if line.strip() and not line.startswith("#"))
        head = list(islice(source, _SNIFFED_LINES))
        delimiter = sniff_delimiter([line for _, line in head])
        first = True
        for number, fields in _records(chain(head, source), delimiter):
            site = next((field for field in fields if is_site(field)), None)
            if site is None and not (first and _is_header(fields)):
                site = ",".join(fields)
            first = False
            if site:
                yield Seed(site, f"{self._lines.name}:{number}", self._level)


def sniff_delimiter(lines: list[str]) -> str:
    """The delimiter with which most lines show a domain; the comma when none is better."""

    def rows_with_domain(delimiter: str) -> int:
        return sum(any(map(is_site, fields)) for _, fields in _records(enumerate(lines), delimiter))

    return max(_DELIMITERS, key=rows_with_domain)


def _is_header(fields: list[str]) -> bool:
    return not any(field.replace(".", "").isdigit() for field in fields)


def _records(lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of stripped fields, each with the number of its first line."""
    source = iter(lines)
    waiting: deque[tuple[int, str]] = deque()
    while True:
        group = _group(source, waiting)
        if not group:
            return
        if len(group) == 1 and '"' not in group[0][1]:
            # Nearly every row; a reader costs more to make than such a row to split.
            yield group[0][0], [field.strip() for field in group[0][1].split(delimiter)]
            continue
        reader = csv.reader([line for _, line in group], delimiter=delimiter, skipinitialspace=True)
        begin = 0
        try:
            for fields in reader:
                yield group[begin][0], [field.strip() for field in fields]
                begin = reader.line_num
        except csv.Error:
            # A field over csv's own limit, or a stray carriage return: the row is handed on as one field.
            yield group[begin][0], [group[begin][1].strip()]
            waiting.extendleft(reversed(group[begin + 1 :]))


def _group(source: Iterator[tuple[int, str]], waiting: deque[tuple[int, str]]) -> list[tuple[int, str]]:
    """The next line, with those after it that its open quote reaches into; what was read too far goes to `waiting`."""
    group: list[tuple[int, str]] = []
    quotes = 0
    while len(group) < _MAX_RECORD_LINES:
        item = waiting.popleft() if waiting else next(source, None)
        if item is None:
            break
        group.append(item)
        quotes += item[1].count('"')
        if quotes % 2 == 0:
            return group
    waiting.extendleft(reversed(group[1:]))
    return group[:1]
