"""Bytes of a real file that are written once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephila.engines.disk import LocalDisk


@pytest.mark.parametrize(("offset", "size"), [(0, 3_000_000), (1_000_001, 1_500_000), (2_999_999, 1), (5, 0)])
def test_bytes_that_are_written_again_stay_where_they_are(tmp_path: Path, offset: int, size: int) -> None:
    """W2, F10: a descriptor that appends must not do so here; and appends again afterwards."""
    data = bytes(range(250)) * 12_000
    file = LocalDisk().create(tmp_path / "file")
    file.append(data)
    file.rewrite(offset, size)
    file.sync()
    file.append(b"more")
    file.close()
    assert (tmp_path / "file").read_bytes() == data + b"more"
