"""What a forgetful disk keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephila.testing.disk import ForgetfulDisk

FILE = Path("/crawl/warc/one")


@pytest.mark.parametrize("added", [b"", b"DEF", b"xyzxyz"])
def test_what_was_durable_outlives_a_failed_sync_of_a_file_that_was_cut(added: bytes) -> None:
    """Q4, D2: a sync that fails drops what it was to carry, and nothing that was on the platter before."""
    disk = ForgetfulDisk()
    disk.overwrite(FILE, b"abcdef")
    file = disk.open(FILE)
    file.truncate(3)
    file.append(added)
    disk.refuses_sync = True
    with pytest.raises(OSError, match="rror"):
        file.sync()
    disk.refuses_sync = False
    file.sync()  # the system believes that all is written
    assert disk.contents(FILE) == b"abc" + added
    after = disk.lose_power()
    assert after.contents(FILE)[:3] == b"abc"
    assert after.contents(FILE)[3:] == bytes(len(added))


def test_names_belong_to_their_directory() -> None:
    """Q4: a name is durable when its own directory was synced, and nobody else's."""
    disk = ForgetfulDisk()
    other = Path("/crawl/spool/two")
    for path in (FILE, other):
        disk.create(path).sync()
    disk.sync_directory(FILE.parent)
    assert disk.names(FILE.parent) == ["one"]
    assert disk.lose_power().names_of_all() == {FILE}
