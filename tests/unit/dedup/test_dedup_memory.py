"""What is told where there is no memory for a look into an index: not that anything is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from nephila.dedup import LmdbDigestIndex, LmdbNearIndex
from nephila.dedup.learned import LearnedEnvironment
from nephila.frontier.embedded.tables import refused
from nephila.model.errors import MemoryShortageError
from nephila.model.likeness import Likeness
from nephila.testing.contracts.digests import sample_digest


class Short:
    """An environment for whose transactions there is no memory."""

    def begin(self, *_: object, **__: object) -> None:
        raise lmdb.MemoryError("mdb_txn_begin: Cannot allocate memory")


def look_for_bodies(path: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    index = LmdbDigestIndex(path, "boot")
    patch.setattr(index, "_environment", Short())
    return lambda: index.find(sample_digest(1))


def look_for_near(path: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    index = LmdbNearIndex(path, "boot")
    patch.setattr(index._environment, "lmdb", Short())
    return lambda: index.find(Likeness(1, b"s" * 64))


def look_for_learned(path: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    environment = LearnedEnvironment(path)
    patch.setattr(environment, "_environment", Short())
    return lambda: environment.get("votes", b"key")


@pytest.mark.parametrize("begin", [look_for_bodies, look_for_near, look_for_learned])
def test_no_memory_for_a_look_ends_the_crawl_with_the_reason(
    tmp_path: Path, begin: Callable[[Path, pytest.MonkeyPatch], Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C4, F10: nobody is told to delete an index for it."""
    look = begin(tmp_path / "index", monkeypatch)
    with pytest.raises(MemoryShortageError, match="not enough memory"):
        look()


def test_no_memory_for_the_frontier_is_told_as_that() -> None:
    """C4, F10: nor to make room on a disk."""
    assert isinstance(refused(lmdb.MemoryError("mdb_put: Cannot allocate memory")), MemoryShortageError)
