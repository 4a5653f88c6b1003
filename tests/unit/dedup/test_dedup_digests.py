"""The digest index between runs, boots and processes."""

import os
from pathlib import Path

import pytest

from nephila.dedup import LmdbDigestIndex, LmdbNearIndex
from nephila.dedup.digests import FLUSH_ENTRIES
from nephila.model.errors import StorageError
from nephila.model.record import Original
from nephila.testing.contracts.digests import sample_digest, sample_original


def test_a_killed_process_loses_only_what_was_not_flushed(tmp_path: Path) -> None:
    """D2, F10: the system keeps the pages of a process that died."""
    killed = LmdbDigestIndex(tmp_path, "boot 1")
    killed.remember(sample_digest(1), sample_original(1))
    killed.flush()
    killed.remember(sample_digest(2), sample_original(2))
    killed._environment.close()  # what the end of a process does
    index = LmdbDigestIndex(tmp_path, "boot 1")
    assert index.find(sample_digest(1)) == sample_original(1)
    assert index.find(sample_digest(2)) is None
    index.close()


def test_an_index_open_at_a_power_loss_is_not_believed(tmp_path: Path) -> None:
    """D2: unsynced pages may be torn, and a wrong original is worse than a second copy."""
    torn = LmdbDigestIndex(tmp_path, "boot 1")
    torn.remember(sample_digest(1), sample_original(1))
    torn.flush()
    torn._environment.close()
    index = LmdbDigestIndex(tmp_path, "boot 2")
    assert index.find(sample_digest(1)) is None
    index.remember(sample_digest(1), sample_original(2))
    index.close()
    index = LmdbDigestIndex(tmp_path, "boot 3")
    assert index.find(sample_digest(1)) == sample_original(2)
    index.close()


def test_a_full_map_is_told(tmp_path: Path) -> None:
    """D2: a limit that is reached is a sentence with what to do."""
    index = LmdbDigestIndex(tmp_path, "boot", map_bytes=1 << 16)
    for number in range(2_000):
        index.remember(sample_digest(number), sample_original(number))
    with pytest.raises(StorageError, match="refused") as caught:
        index.flush()
    assert caught.value.hint
    assert index.find(sample_digest(5)) == sample_original(5)


def test_who_joins_writes_at_once_and_leaves_the_marker_alone(tmp_path: Path) -> None:
    """D2: others look for the same bodies; the index counts as open as long as the process that opened it has it."""
    marker = tmp_path / "open-since-boot"
    LmdbDigestIndex(tmp_path, "boot 1").close()
    marker.write_text("boot 1", encoding="utf-8")  # of the process that supervises
    joined = LmdbDigestIndex(tmp_path, "boot 1", joining=True)
    joined.remember(sample_digest(1), sample_original(1))
    joined._environment.close()  # what the end of a process does
    assert marker.read_text(encoding="utf-8") == "boot 1"
    again = LmdbDigestIndex(tmp_path, "boot 1", joining=True)
    assert again.find(sample_digest(1)) == sample_original(1)
    again.close()
    assert marker.exists()


def test_a_large_flush_is_written_in_parts_and_whole(tmp_path: Path) -> None:
    """D2, Q3: the pages that one transaction changes stay in memory for good, so that it must not change many."""
    index = LmdbDigestIndex(tmp_path, "boot")
    before = index._environment.info()["last_txnid"]
    count = 2 * FLUSH_ENTRIES + 1
    for number in range(count):
        index.remember(sample_digest(number), sample_original(number))
    index.flush()
    assert index._environment.info()["last_txnid"] - before == 3
    assert index._environment.stat()["entries"] == count
    assert not index._recent
    index.close()


def test_captures_of_urls_that_are_taken_down_are_forgotten_and_no_others(tmp_path: Path) -> None:
    """D2, K2: written or not; what could not name them is not unpacked."""
    index = LmdbDigestIndex(tmp_path, "boot")
    for number in range(6):
        index.remember(sample_digest(number), sample_original(number))
        if number == 3:
            index.flush()
    gone = {sample_original(number).url for number in (1, 5)}
    assert index.forget_named(lambda _: False, gone.__contains__) == 0
    assert index.forget_named(lambda _: True, gone.__contains__) == 2
    assert [index.find(sample_digest(number)) is None for number in range(6)] == [
        False,
        True,
        False,
        False,
        False,
        True,
    ]
    index.close()


def test_what_is_forgotten_while_it_is_being_written_stays_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2, K2: the one happens in a thread, the other beside it; new captures would refer to what is gone."""
    index = LmdbDigestIndex(tmp_path, "boot")
    for number in (1, 2):
        index.remember(sample_digest(number), sample_original(number))
    write = index._write

    def forgotten_meanwhile(entries: list[tuple[bytes, Original]]) -> None:
        index.forget(sample_digest(1), sample_original(1).record_id)
        index.remember(sample_digest(1), sample_original(3))
        write(entries)

    monkeypatch.setattr(index, "_write", forgotten_meanwhile)
    index.flush()
    monkeypatch.undo()
    index.close()
    index = LmdbDigestIndex(tmp_path, "boot")
    assert index.find(sample_digest(1)) == sample_original(3)
    assert index.find(sample_digest(2)) == sample_original(2)
    index.close()


@pytest.mark.parametrize("kind", [LmdbDigestIndex, LmdbNearIndex])
def test_that_an_index_is_open_is_durable_before_anything_is_written_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LmdbDigestIndex | LmdbNearIndex]
) -> None:
    """D2, D3, Q4: a power loss that took the mark and left torn pages would have them believed."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    for boot in ("boot 1", "boot 1", "boot 2"):
        synced.clear()
        index = kind(tmp_path / "index", boot)
        assert synced[:2] == ["open-since-boot", "index"]
        index.close()
