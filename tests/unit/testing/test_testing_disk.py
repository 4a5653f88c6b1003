"""What a forgetful disk keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


def test_a_folder_that_was_made_is_a_name_in_the_one_above_it() -> None:
    """Q4, W1: a file whose own directory was synced is gone all the same with a folder that was not."""
    deep = FILE.parent / "2026" / "ab" / "two"
    for synced, survives in (([deep.parent], False), ([deep.parent, deep.parent.parent, FILE.parent], True)):
        disk = ForgetfulDisk()
        disk.names(FILE.parent)
        disk.make_folder(deep.parent)
        disk.create(deep).sync()
        for directory in synced:
            disk.sync_directory(directory)
        assert disk.names(FILE.parent) == ["2026/ab/two"]
        assert disk.sizes(FILE.parent) == {"2026/ab/two": 0}
        assert disk.lose_power().names(FILE.parent) == (["2026/ab/two"] if survives else [])


def test_folders_are_removed_as_far_as_they_are_empty() -> None:
    """W1: as a file system does it."""
    disk = ForgetfulDisk()
    one, other = FILE.parent / "2026" / "ab" / "two", FILE.parent / "2026" / "three"
    for path in (one, other):
        disk.make_folder(path.parent)
        disk.create(path)
    disk.remove_folders(one.parent, FILE.parent)
    assert disk.names(one.parent) == ["two"]
    disk.remove(one)
    disk.remove_folders(one.parent, FILE.parent)
    assert disk.names(FILE.parent) == ["2026/three"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.binary(min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["truncate", "rewrite"]), st.integers(0, 12), st.integers(1, 6)),
        st.tuples(st.sampled_from(["sync", "sync that fails"])),
    ),
    max_size=12,
)


@given(STEPS)
@example([("append", b"ab"), ("sync that fails",), ("sync",), ("rewrite", 0, 6), ("sync",)])
@example([("append", b"ab"), ("sync",), ("truncate", 1, 1), ("append", b"cd"), ("sync",)])
def test_a_sync_brings_all_to_the_platter_but_what_an_earlier_one_has_dropped(steps: list[tuple[object, ...]]) -> None:
    """Q4: whatever was appended, cut, rewritten and synced before; followed byte by byte."""
    disk = ForgetfulDisk()
    file = disk.create(FILE)
    disk.sync_directory(FILE.parent)
    seen, durable, dropped = b"", b"", set[int]()
    for step in steps:
        match step:
            case ("append", bytes(data)):
                file.append(data)
                seen += data
            case ("truncate", int(size), _):
                file.truncate(size)
                seen, dropped = seen[:size], {at for at in dropped if at < size}
            case ("rewrite", int(start), int(size)):
                file.rewrite(start, size)
                dropped -= set(range(start, start + size))
            case ("sync",):
                file.sync()
                durable = bytes(0 if at in dropped else byte for at, byte in enumerate(seen))
            case _:
                disk.refuses_sync = True
                with pytest.raises(OSError, match="rror"):
                    file.sync()
                disk.refuses_sync = False
                shared = min(len(seen), len(durable))
                start = next((at for at in range(shared) if seen[at] != durable[at]), shared)
                dropped |= set(range(start, len(seen)))
    assert disk.contents(FILE) == seen
    assert disk.lose_power().contents(FILE) == durable
