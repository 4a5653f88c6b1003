"""The store's file grows ahead of its writer."""

from __future__ import annotations

import os
from pathlib import Path

from frontier_bench import PLAIN, bench, pages, run

from nephila.frontier.embedded.growing import LEAST_AHEAD
from nephila.frontier.embedded.tables import Tables, open_tables
from nephila.testing.recount import check_tables

MAP_BYTES = 1 << 28


def used_and_size(tables: Tables, path: Path) -> tuple[int, int]:
    """Bytes that LMDB uses, and the size of its file."""
    used = (int(tables.env.info()["last_pgno"]) + 1) * int(tables.env.stat()["psize"])
    return used, (path / "data.mdb").stat().st_size


def prepare(tables: Tables) -> None:
    with tables.env.begin(write=True):
        assert tables.growth is not None
        tables.growth.prepare()


def test_the_file_is_longer_than_what_is_used_and_takes_no_more_room(tmp_path: Path) -> None:
    """F8: the pages that come next are there before they are written, as a hole."""
    tables = open_tables(tmp_path, map_bytes=MAP_BYTES, sync=True)
    before = (tmp_path / "data.mdb").stat().st_blocks
    prepare(tables)
    used, size = used_and_size(tables, tmp_path)
    assert size == used + LEAST_AHEAD * 4096
    assert (tmp_path / "data.mdb").stat().st_blocks == before
    tables.close()


def test_a_file_that_another_process_made_longer_is_never_cut(tmp_path: Path) -> None:
    """F8, F10: what lies behind the end may be another writer's."""
    tables = open_tables(tmp_path, map_bytes=MAP_BYTES, sync=True)
    os.truncate(tmp_path / "data.mdb", 1 << 24)
    for number in range(50):
        prepare(tables)
        with tables.env.begin(write=True) as txn:
            txn.put(number.to_bytes(4, "big"), bytes(100_000), db=tables.web)
        used, size = used_and_size(tables, tmp_path)
        assert size >= max(used, 1 << 24)
    tables.close()


def test_what_was_committed_is_whole_when_the_file_is_cut_to_what_is_used(tmp_path: Path) -> None:
    """F10: nothing that counts lies in the part that was made ahead; a copy without it is a store like any other."""

    async def fill() -> None:
        async with bench(tmp_path, PLAIN) as one:
            for _ in range(5):
                await one.frontier.admit(pages(2_000))
                await one.frontier.admit(pages(500, "b.test"))

    run(fill())
    tables = open_tables(tmp_path / "frontier", map_bytes=MAP_BYTES, sync=True, read_only=True)
    used, size = used_and_size(tables, tmp_path / "frontier")
    tables.close()
    assert size > used
    os.truncate(tmp_path / "frontier" / "data.mdb", used)

    async def check() -> None:
        async with bench(tmp_path, PLAIN) as one:
            check_tables(one.frontier)
            assert one.frontier.snapshot().urls == 2_500

    run(check())
