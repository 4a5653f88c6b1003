"""Room after what is used of a file: a hole that is there before it is written to."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest

from nephila.engines import room_ahead
from nephila.engines.room_ahead import LEAST_BYTES, MOST_BYTES, SMALL_BYTES, RoomAhead
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits


def length(path: Path) -> int:
    return path.stat().st_size


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(b"used")
    return path


def test_a_file_is_longer_than_what_is_used_of_it_and_takes_no_room_for_that(store: Path) -> None:
    """F8, Q3: by a megabyte at least, by twice what it has grown by of late, and by twice what is under way."""
    blocks, used = store.stat().st_blocks, 2 * SMALL_BYTES
    room = RoomAhead(store)
    room.used(used)
    assert used + LEAST_BYTES <= length(store) <= used + 2 * LEAST_BYTES
    room.used(used + 5 * LEAST_BYTES)
    assert length(store) >= used + (5 + 2 * 5) * LEAST_BYTES
    room.take(20 * LEAST_BYTES)
    assert length(store) >= used + (5 + 20) * LEAST_BYTES
    room.take(1 << 40)
    assert length(store) <= used + 5 * LEAST_BYTES + MOST_BYTES + LEAST_BYTES
    room.close()
    assert store.stat().st_blocks == blocks
    assert store.read_bytes().rstrip(b"\0") == b"used"


def test_a_file_never_gets_shorter(store: Path) -> None:
    """F10: what others have written after it, or made ready, stays."""
    os.truncate(store, 4 * SMALL_BYTES)
    room = RoomAhead(store)
    room.used(2 * SMALL_BYTES)
    room.close()
    assert length(store) == 4 * SMALL_BYTES


def test_a_small_file_is_left_alone(store: Path) -> None:
    """F8: large pieces are what it is written in best."""
    room = RoomAhead(store)
    room.used(SMALL_BYTES - 1)
    room.take(MOST_BYTES)
    room.close()
    assert length(store) == 4


def test_a_limit_on_files_is_no_error_and_is_met_once(store: Path) -> None:
    """Q5: nothing depends on the room, so what refuses it is not told."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = RoomAhead(store)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_BYTES, limits[1]))
    try:
        room.used(2 * SMALL_BYTES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    room.used(2 * SMALL_BYTES)
    assert length(store) == 4
    RoomAhead(store.with_name("missing")).used(2 * SMALL_BYTES)
    assert not store.with_name("missing").exists()


def test_a_frontier_has_room_ahead_of_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F8, F10: while it is written to, by whoever writes; and it opens again as it was."""
    monkeypatch.setattr(room_ahead, "SMALL_BYTES", 0)
    identifier = Identifier(7, NormalRules(), UrlLimits())

    def found(number: int) -> Candidate:
        address = identifier.identify(f"https://site{number % 50}.test/a-page-of-it/{number}")
        assert isinstance(address, Address)
        return Candidate(address, 1)

    async def run() -> int:
        policy = Policy(FrontierSettings(linger_ms=0), base_delay_ms=1000, robots=False)
        frontier = LmdbFrontier(tmp_path, VirtualClock(), policy, threaded=False)
        before = sum(frontier.snapshot().queued.values())
        await frontier.admit([found(before + number) for number in range(500)])
        await frontier.close()
        return before

    assert [asyncio.run(run()) for _ in range(3)] == [0, 500, 1000]
    assert length(tmp_path / "data.mdb") > LEAST_BYTES > (tmp_path / "data.mdb").stat().st_blocks * 512
