"""Parquet: pages, or links, as rows of typed columns (W4, W6). Written by pyarrow, which is installed on demand.

Rows are gathered up to a bound and written as a row group: memory stays bounded, and readers find groups of a size that
pays. What must stay true: a table that is given up does not become one; its library would add a footer when it is
thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nephila.model.errors import NephilaError

from .columns import COLUMNS, EDGE_COLUMNS, Kind, edges_of
from .document import Document

GROUP_ROWS = {"pages": 5_000, "edges": 100_000}
GROUP_BYTES = 16_000_000
"""Characters of a row group, about: a page may have a megabyte of text."""
CODEC = "zstd"


def is_there() -> bool:
    """Whether tables can be written."""
    return find_spec("pyarrow") is not None


def check() -> None:
    """Raise `NephilaError` where what writes tables is not installed."""
    if not is_there():
        raise NephilaError(
            "Parquet is written by pyarrow, which is not installed.",
            "Install it: `nephila setup parquet` in a checkout, else pip install 'nephila[parquet]'.",
        )


class _Table:
    """Rows on their way into a file."""

    def __init__(self, path: Path, columns: Sequence[tuple[str, Kind]], group_rows: int) -> None:
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - only where it is asked for
        from pyarrow import parquet  # noqa: PLC0415 - as above

        self._arrow = pa
        self._kinds = [kind for _, kind in columns]
        self._schema = pa.schema([(name, _type(pa, kind)) for name, kind in columns])
        self._group_rows = group_rows
        self._rows: list[Sequence[object]] = []
        self._bytes = 0
        self._file = path.open("wb")
        self._writer: Any = parquet.ParquetWriter(self._file, self._schema, compression=CODEC)

    def add(self, row: Sequence[object], size: int) -> None:
        """One row, of so many characters."""
        self._rows.append(row)
        self._bytes += size
        if len(self._rows) >= self._group_rows or self._bytes >= GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        """Write what is left, and the footer."""
        self._write_group()
        self._writer.close()
        self._file.close()

    def abandon(self) -> None:
        """Let go without a footer."""
        self._writer.is_open = False
        with suppress(OSError):  # a disk that is full does not take what is buffered, either
            self._file.close()

    def _write_group(self) -> None:
        if not self._rows:
            return
        columns = list(zip(*self._rows, strict=True))
        arrays = [
            self._arrow.array([_stored(value, kind) for value in column], type=field.type)
            for column, kind, field in zip(columns, self._kinds, self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()
        self._bytes = 0


def _type(pa: Any, kind: Kind) -> Any:  # noqa: ANN401 - untyped
    match kind:
        case Kind.TEXT:
            return pa.string()
        case Kind.NUMBER:
            return pa.int64()
        case Kind.FLAG:
            return pa.bool_()
        case Kind.MOMENT:
            return pa.timestamp("ms", tz="UTC")
        case Kind.PAIRS:
            return pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
        case Kind.LINKS:
            return pa.list_(pa.struct([(name, pa.string()) for name in ("url", "tag", "rel", "text")]))


def _stored(value: Any, kind: Kind) -> object:  # noqa: ANN401 - of the kind that is told
    """A value as the library takes it; lone surrogates, which it does not, replaced."""
    match kind:
        case Kind.TEXT:
            return _text(value)
        case Kind.PAIRS:
            return [{"name": _text(name), "value": _text(text)} for name, text in value]
        case Kind.LINKS:
            return [
                {"url": _text(one.url), "tag": one.tag, "rel": _text(one.rel), "text": _text(one.text)} for one in value
            ]
        case _:
            return value


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class PageTable:
    """Pages as rows of a file."""

    def __init__(self, path: Path) -> None:
        self._table = _Table(path, [(column.name, column.kind) for column in COLUMNS], GROUP_ROWS["pages"])

    def add(self, document: Document) -> None:
        """As the protocol."""
        row = [column.value(document) for column in COLUMNS]
        size = sum(len(value) for value in row if isinstance(value, str))
        self._table.add(row, size + 100 * len(document.links))

    def close(self) -> None:
        """As the protocol."""
        self._table.close()

    def abandon(self) -> None:
        """It will never be whole."""
        self._table.abandon()


class EdgeTable:
    """Links as rows of a file."""

    def __init__(self, path: Path) -> None:
        self._table = _Table(path, [(name, kind) for name, kind, _ in EDGE_COLUMNS], GROUP_ROWS["edges"])

    def add(self, document: Document) -> None:
        """As the protocol."""
        for edge in edges_of(document):
            self._table.add(edge, len(edge.source) + len(edge.target) + len(edge.text))

    def close(self) -> None:
        """As the protocol."""
        self._table.close()

    def abandon(self) -> None:
        """As above."""
        self._table.abandon()
