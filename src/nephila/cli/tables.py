"""Rows of somebody's making as a table that fits a terminal, as CSV, or as JSON lines.

Memory does not grow with the number of rows: widths are those of the first hundred, and what is wider later is cut.
Where there are more columns than a terminal has room for, a row is told field by field. Nothing in a cell can act on
the terminal, or on a spreadsheet: a text that one would take for a formula gets an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from rich.cells import cell_len, set_cell_size

from nephila.interfaces.queries import Answered
from nephila.model.plain import plain

from .looking import labelled
from .output import printable

SAMPLE = 100
GAP = 2
LEAST = 6
"""Columns of a cell that tells anything."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the first ones in full width, which some spreadsheets take for the same."""


def shown(value: object) -> str:
    """A value as a cell has it: hashes in hexadecimal, nothing for NULL."""
    match plain(value):
        case None:
            return ""
        case bool() as flag:
            return "true" if flag else "false"
        case str() as text:
            return printable(text)
        case (list() | dict()) as several:
            return printable(json.dumps(several))
        case other:
            return str(other)


def table_lines(answer: Answered, width: int | None) -> Iterator[str]:
    """A table within so many columns; None: as wide as it is."""
    rows = iter(answer.rows)
    first = [[shown(value) for value in row] for row in islice(rows, SAMPLE)]
    names = [printable(name) for name in answer.columns]
    natural = [max(map(cell_len, column)) for column in zip(names, *first, strict=True)]
    further = ([shown(value) for value in row] for row in rows)
    if width is not None and len(names) > 1 and sum(min(one, LEAST) + GAP for one in natural) - GAP > width:
        yield from _records(names, chain(first, further), width)
        return
    widths = natural if width is None else _fitted(natural, width)
    right = [_is_numeric(column) for column in zip(*first, strict=True)] if first else [False] * len(names)
    yield _line(names, widths, [False] * len(names), cut=width is not None)
    yield "  ".join("-" * one for one in widths)
    for row in chain(first, further):
        yield _line(row, widths, right, cut=width is not None)


def _records(names: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    for number, row in enumerate(rows):
        if number:
            yield ""
        yield from labelled(zip(names, row, strict=True), width)


def _fitted(natural: Sequence[int], width: int) -> list[int]:
    """Widths that fit: narrow columns keep theirs, the others share what is left."""
    left, widths = width - GAP * (len(natural) - 1), [0] * len(natural)
    open_ones = sorted(range(len(natural)), key=lambda index: natural[index])
    while open_ones:
        index = open_ones.pop(0)
        widths[index] = max(1, min(natural[index], left // (len(open_ones) + 1)))
        left -= widths[index]
    return widths


def _is_numeric(column: Sequence[str]) -> bool:
    return all(one == "" or one.lstrip("-").replace(".", "", 1).isdigit() for one in column)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], *, cut: bool) -> str:
    parts = []
    for cell, width, to_the_right in zip(cells, widths, right, strict=True):
        wide = cell_len(cell)
        if wide > width and cut:
            parts.append(set_cell_size(cell, width - 1) + "~")
        elif to_the_right:
            parts.append(" " * (width - wide) + cell)
        else:
            parts.append(cell + " " * (width - wide))
    return "  ".join(parts).rstrip()


def json_lines(answer: Answered) -> Iterator[str]:
    """An object a row, in ASCII. Of columns with the same name the last one counts."""
    for row in answer.rows:
        yield json.dumps(dict(zip(answer.columns, map(plain, row), strict=True)), allow_nan=False)


def csv_lines(answer: Answered) -> Iterator[str]:
    """Names, then rows, as RFC 4180 has it but for the line ends."""
    for row in chain([answer.columns], answer.rows):
        text = io.StringIO()
        csv.writer(text).writerow([_cell(value) for value in row])  # quotes line ends because it writes them itself
        yield text.getvalue().removesuffix("\r\n")


def _cell(value: object) -> object:
    told = plain(value)
    if isinstance(told, str) and told.startswith(_FORMULA):
        return f"'{told}"
    return json.dumps(told) if isinstance(told, list | dict) else told
