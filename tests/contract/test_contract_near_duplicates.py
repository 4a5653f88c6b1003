"""The promises of the index of near-duplicates, on LMDB and in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.dedup import LmdbNearIndex, MemoryNearIndex, NearRule
from nephila.testing.contracts.near_duplicates import CHECKS, DURABLE_CHECKS, RULE, OpenNearIndex


@pytest.mark.parametrize("fold", [1, 100, 4096])
@pytest.mark.parametrize("check", [*CHECKS, *DURABLE_CHECKS], ids=lambda check: check.__name__)
def test_lmdb_near_index_keeps_the_contract(check: Callable[[OpenNearIndex], None], fold: int, tmp_path: Path) -> None:
    """D3: every check of the suite, whether entries lie in runs or in the log."""

    def open_index(rule: NearRule = RULE) -> LmdbNearIndex:
        return LmdbNearIndex(tmp_path / "near", "this boot", rule, fold=fold)

    check(open_index)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_memory_near_index_keeps_the_contract(check: Callable[[OpenNearIndex], None]) -> None:
    """D3: every check that does not ask for a disk."""
    check(lambda rule=RULE: MemoryNearIndex(rule))
