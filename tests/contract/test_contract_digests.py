"""The digest index's promises, on LMDB and in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nephila.dedup import LmdbDigestIndex, MemoryDigestIndex
from nephila.testing.contracts.digests import CHECKS, DURABLE_CHECKS, OpenIndex


@pytest.mark.parametrize("check", [*CHECKS, *DURABLE_CHECKS], ids=lambda check: check.__name__)
def test_lmdb_digest_index_keeps_the_contract(check: Callable[[OpenIndex], None], tmp_path: Path) -> None:
    """D2: every check of the suite."""
    check(lambda: LmdbDigestIndex(tmp_path / "digests", boot_id="this boot"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_memory_digest_index_keeps_the_contract(check: Callable[[OpenIndex], None]) -> None:
    """D2: every check that does not ask for a disk."""
    check(MemoryDigestIndex)
