from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from nephila.export import table
from nephila.export.columns import COLUMNS, EDGE_COLUMNS
from nephila.export.table import EdgeTable, PageTable
from nephila.model.errors import NephilaError

from .conftest import MakeDocument


def test_pages_are_rows_of_typed_columns(tmp_path: Path, document: MakeDocument) -> None:
    """W6: the columns of JSON lines; times are times, links lists of records."""
    path = tmp_path / "pages.parquet"
    writer = PageTable(path)
    writer.add(document())
    writer.add(document("https://spiders.example/z", title="a\ud800b", links=[]))
    writer.close()
    found = parquet.read_table(path)
    assert found.column_names == [column.name for column in COLUMNS]
    first, second = found.to_pylist()
    assert first["fetched_at"] == datetime(2026, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC)
    assert first["links"][0] == {
        "url": "https://spiders.example/b",
        "tag": "a",
        "rel": "nofollow ugc",
        "text": "the other",
    }
    assert first["headers"][2] == {"name": "x", "value": "2"}
    assert (first["status"], first["noarchive"], first["text"]) == (200, True, "Silk.")
    assert (second["title"], second["links"]) == ("a?b", [])
    assert found.schema.field("fetched_at").type == pa.timestamp("ms", tz="UTC")


def test_links_are_rows(tmp_path: Path, document: MakeDocument) -> None:
    """W4: edges with anchor text and the time of discovery."""
    path = tmp_path / "graph.parquet"
    writer = EdgeTable(path)
    writer.add(document())
    writer.close()
    found = parquet.read_table(path)
    assert found.column_names == [name for name, _, _ in EDGE_COLUMNS]
    assert found.column("target").to_pylist() == ["https://spiders.example/b", "https://x.example/"]
    assert found.column("text").to_pylist() == ["the other", ""]
    assert found.column("nofollow").to_pylist() == [True, False]


def test_rows_are_written_in_groups_and_not_held(
    tmp_path: Path, document: MakeDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W6: by their number and by their size; all of them are there."""
    monkeypatch.setitem(table.GROUP_ROWS, "pages", 4)
    path = tmp_path / "pages.parquet"
    writer = PageTable(path)
    for number in range(10):
        writer.add(document(f"https://spiders.example/{number}"))
    assert len(writer._table._rows) == 2
    writer.close()
    file = parquet.ParquetFile(path)
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [4, 4, 2]
    monkeypatch.setattr(table, "GROUP_BYTES", 10)
    writer = PageTable(tmp_path / "other.parquet")
    writer.add(document())
    assert writer._table._rows == []
    writer.close()


def test_an_export_of_nothing_is_a_table(tmp_path: Path) -> None:
    """W6: with its columns and no row."""
    PageTable(tmp_path / "x.parquet")._table.close()
    assert parquet.read_table(tmp_path / "x.parquet").num_rows == 0


def test_a_table_that_is_given_up_does_not_become_one(tmp_path: Path, document: MakeDocument) -> None:
    """W6: its library would write a footer when it is thrown away."""
    path = tmp_path / "x.parquet"
    writer = PageTable(path)
    writer.add(document())
    writer.abandon()
    del writer
    with pytest.raises(pa.ArrowInvalid):
        parquet.read_table(path)


def test_a_full_disk_is_an_error_of_the_system(document: MakeDocument) -> None:
    """W6: told in a sentence by whoever made the file."""
    writer = PageTable(Path("/dev/full"))
    writer.add(document())
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        writer.close()
    writer.abandon()


def test_what_is_missing_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """W6: before anything is done."""
    monkeypatch.setattr(table, "find_spec", lambda _: None)
    with pytest.raises(NephilaError, match="pyarrow, which is not installed") as told:
        table.check()
    assert "nephila setup parquet" in told.value.hint
