"""Stores that a full disk cut off while they were being made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from nephila.dedup import LearnedEnvironment, LmdbDigestIndex, LmdbNearIndex
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.model.settings import FrontierSettings
from nephila.testing.clock import VirtualClock


def frontier(path: Path) -> None:
    policy = Policy(FrontierSettings(linger_ms=0), base_delay_ms=1000, robots=False)
    asyncio.run(LmdbFrontier(path, VirtualClock(), policy, threaded=False).close())


OPENED: dict[str, Callable[[Path], None]] = {
    "contents": lambda path: LmdbDigestIndex(path, "boot").close(),
    "near": lambda path: LmdbNearIndex(path, "boot").close(),
    "learned": lambda path: LearnedEnvironment(path).close(),
    "frontier": frontier,
}


@pytest.mark.parametrize("what", OPENED)
@pytest.mark.parametrize("left", [0, 1, 4095, 4096, 8191])
def test_a_store_that_was_not_made_to_its_end_is_made_anew(tmp_path: Path, what: str, left: int) -> None:
    """F10, W2: the same command goes on when there is room, without a hand in the directory."""
    with lmdb.open(str(tmp_path / "whole")):
        """Made."""
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "data.mdb").write_bytes((tmp_path / "whole" / "data.mdb").read_bytes()[:left])
    OPENED[what](begun)
    OPENED[what](begun)
    assert (begun / "data.mdb").stat().st_size >= 8192
