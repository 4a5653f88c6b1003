"""What is kept for pages in browsers, as files (J3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nephila.render import FolderShelf
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual

LIMIT = 1 << 20


def shelf_of(folder: Path, clock: VirtualClock) -> FolderShelf:
    return FolderShelf(folder / "rendering", LIMIT, clock, threaded=False)


def test_it_is_there_for_its_time_and_for_every_process(tmp_path: Path) -> None:
    """J3: what one keeps another finds, until its time is over or it is dropped."""
    clock = VirtualClock()

    async def main() -> None:
        one, other = shelf_of(tmp_path, clock), shelf_of(tmp_path, clock)
        assert await one.find("x") is None
        assert await one.keep("x", b"script", 10_000)
        assert await other.find("x") == b"script"
        assert await other.keep("x", b"newer", 10_000)
        assert await one.find("x") == b"newer"
        await asyncio.sleep(10)
        assert await one.find("x") is None
        assert await one.keep("y", b"z", 10_000)
        await other.drop("y")
        assert await one.find("y") is None

    run_virtual(main, clock)


def test_what_is_torn_is_not_there(tmp_path: Path) -> None:
    """J3, Q4: a file that was cut or changed by a crash costs a request, and gives no page a wrong script."""
    clock = VirtualClock()

    async def main() -> None:
        shelf = shelf_of(tmp_path, clock)
        await shelf.keep("x", b"script", 10_000)
        (path,) = (tmp_path / "rendering").iterdir()
        whole = path.read_bytes()
        for damaged in (whole[:-1], whole[:4], b"", whole[:-1] + b"!"):
            path.write_bytes(damaged)
            assert await shelf.find("x") is None
        path.write_bytes(whole)
        assert await shelf.find("x") == b"script"

    run_virtual(main, clock)


def test_it_is_bounded(tmp_path: Path) -> None:
    """J3, Q5: what is over its time goes first, then what is oldest; one thing may not fill it."""
    clock = VirtualClock()
    folder = tmp_path / "rendering"

    async def main() -> None:
        shelf = shelf_of(tmp_path, clock)
        assert not await shelf.keep("huge", bytes(LIMIT), 10_000)
        await shelf.keep("short", bytes(100), 1_000)
        await asyncio.sleep(2)
        for number in range(100):
            assert await shelf.keep(f"n{number}", bytes(LIMIT // 16), 1_000_000)
            there = sum(path.stat().st_size for path in folder.iterdir())
            assert there < LIMIT * 1.25
        assert await shelf.find("n99") is not None
        assert await shelf.find("n0") is None
        assert not (folder / "short.kept").exists()

    run_virtual(main, clock)


def test_a_disk_that_takes_nothing_is_no_failure(tmp_path: Path) -> None:
    """J3, W2: the caller is told, and the page is judged with what there is."""
    clock = VirtualClock()
    (tmp_path / "rendering").write_text("no folder")

    async def main() -> None:
        shelf = shelf_of(tmp_path, clock)
        assert not await shelf.keep("x", b"script", 10_000)
        assert await shelf.find("x") is None
        await shelf.drop("x")

    run_virtual(main, clock)
