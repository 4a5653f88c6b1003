"""The index of near-duplicates between runs, boots, threads and processes."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mounts import in_mount_namespace

from nephila.dedup import LmdbNearIndex, MemoryNearIndex
from nephila.dedup.near_runs import RATIO, RunFile, choose
from nephila.model.errors import StorageError
from nephila.model.likeness import Likeness
from nephila.testing.contracts.near_duplicates import RULE, changed, sample_likeness, sample_url


def found(index: LmdbNearIndex, number: int) -> str:
    original = index.find(sample_likeness(number))
    return "" if original is None else original.url


def fill(index: LmdbNearIndex, first: int, last: int, every: int = 50) -> None:
    for number in range(first, last):
        index.remember(sample_likeness(number), sample_url(number))
        if number % every == every - 1:
            index.flush()


def end_like_a_kill(index: LmdbNearIndex) -> None:
    """What the end of a process does: nothing is written, everything is let go."""
    index._runs.close()
    index._environment.lmdb.close()
    index._environment._leave()


@settings(max_examples=40, deadline=None)
@given(data=st.data(), fold=st.sampled_from([1, 7, 1000]), seed=st.integers(0, 1 << 30))
def test_the_index_says_what_looking_at_every_page_says(
    data: st.DataObject, fold: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """D3: any row of pages, refusals, flushes and openings, in runs, log and memory: no more and no less."""
    path = tmp_path_factory.mktemp("near")
    drawn = random.Random(seed)
    plain, index = MemoryNearIndex(RULE), LmdbNearIndex(path, "boot", RULE, fold=fold)
    known: list[tuple[Likeness, str]] = []
    for step in data.draw(st.lists(st.sampled_from("aaaabbbbbbffor"), min_size=5, max_size=60)):
        if step == "f":
            index.flush()
            continue
        if step == "o":
            index.close()
            index = LmdbNearIndex(path, "boot", RULE, fold=fold)
            continue
        if step == "r" and known:
            likeness, url = drawn.choice(known)
            index.forget(likeness, url)
            plain.forget(likeness, url)
            continue
        likeness = sample_likeness(drawn.randrange(1 << 40))
        if step == "b" and known:
            bits = tuple(drawn.sample(range(64), drawn.randrange(9)))
            likeness = changed(drawn.choice(known)[0], bits, drawn.choice((0, 5, 20)))
        assert index.find(likeness) == plain.find(likeness)
        url = sample_url(drawn.randrange(20))
        assert index.remember(likeness, url) == plain.remember(likeness, url)
        known.append((likeness, url))
    assert index.snapshot().originals == plain.snapshot().originals
    index.close()


def test_runs_stay_in_a_row_of_falling_sizes_and_old_files_go(tmp_path: Path) -> None:
    """D3: a look-up asks few runs, and what was merged takes no room."""
    index = LmdbNearIndex(tmp_path, "boot", fold=10)
    for number in range(600):
        index.remember(sample_likeness(number), sample_url(number))
        if number % 10 == 9:
            index.flush()
            files = index._read(index._environment.lmdb.begin()).files()
            assert all(earlier.entries >= RATIO * later.entries for earlier, later in pairwise(files))
            assert {path.name for path in tmp_path.glob("*.run")} == {file.path(tmp_path).name for file in files}
            assert sum(file.entries for file in files) == number + 1
    assert index.snapshot().runs <= 5
    assert [found(index, number) for number in range(600)] == [sample_url(number) for number in range(600)]
    index.close()


def test_what_is_merged_depends_on_sizes() -> None:
    """D3: the newest, as long as they are less than three times what comes with them."""
    sizes = [RunFile(number, entries) for number, entries in enumerate((12_000, 2500, 290, 10))]
    assert [choose(sizes, new) for new in (1, 3, 4, 80, 200, 600, 10_000)] == [0, 0, 1, 1, 2, 3, 4]


def test_a_killed_process_loses_only_what_was_not_flushed(tmp_path: Path) -> None:
    """D3, F10: the system keeps what a process that died has written; the rest of a fold that was cut is taken away."""
    killed = LmdbNearIndex(tmp_path, "boot 1", fold=100)
    fill(killed, 0, 250)
    killed.remember(sample_likeness(1000), sample_url(1000))
    end_like_a_kill(killed)
    (tmp_path / "977.run").write_bytes(b"half a run")
    index = LmdbNearIndex(tmp_path, "boot 1", fold=100)
    assert [found(index, number) for number in range(250)] == [sample_url(number) for number in range(250)]
    assert found(index, 1000) == ""
    fill(index, 300, 400)
    assert not (tmp_path / "977.run").exists()
    index.close()


def test_an_index_open_at_a_power_loss_is_not_believed(tmp_path: Path) -> None:
    """D3: unsynced pages may be torn, and a wrong original is worse than none."""
    torn = LmdbNearIndex(tmp_path, "boot 1", fold=100)
    fill(torn, 0, 250)
    end_like_a_kill(torn)
    index = LmdbNearIndex(tmp_path, "boot 2", fold=100)
    assert (found(index, 1), index.snapshot().originals) == ("", 0)
    fill(index, 0, 250)
    index.close()
    index = LmdbNearIndex(tmp_path, "boot 3", fold=100)
    assert (found(index, 1), index.snapshot().originals) == (sample_url(1), 250)
    index.close()


def test_a_run_that_is_not_what_was_written_is_told(tmp_path: Path) -> None:
    """D3: somebody's hand in the directory is a sentence with what to do, not a wrong answer."""
    index = LmdbNearIndex(tmp_path, "boot", fold=10)
    fill(index, 0, 50)
    index.close()
    for path in tmp_path.glob("*.run"):
        path.write_bytes(path.read_bytes()[:-8])
    index = LmdbNearIndex(tmp_path, "boot", fold=10)
    with pytest.raises(StorageError, match="not what was written") as caught:
        index.find(sample_likeness(1))
    assert "deleted" in caught.value.hint
    end_like_a_kill(index)


def test_a_run_that_somebody_took_away_is_told(tmp_path: Path) -> None:
    """D3: a copy that is not whole, say; it is not waited for until it is there."""
    index = LmdbNearIndex(tmp_path, "boot", fold=100)
    fill(index, 0, 300)
    index.close()
    next(tmp_path.glob("*.run")).unlink()
    index = LmdbNearIndex(tmp_path, "boot", fold=100)
    for ask in (lambda: found(index, 5), lambda: index.remember(sample_likeness(5), sample_url(5))):
        with pytest.raises(StorageError, match="No such file") as told:
            ask()
        assert "may be deleted" in told.value.hint
    index.close()


def test_a_full_map_is_told_and_what_was_not_written_is_still_known(tmp_path: Path) -> None:
    """D3: a limit that is reached is a sentence with what to do."""
    index = LmdbNearIndex(tmp_path, "boot", map_bytes=1 << 17)
    fill(index, 0, 2_000, every=5_000)
    with pytest.raises(StorageError, match="refused") as caught:
        index.flush()
    assert caught.value.hint
    assert index.snapshot().unwritten == 2_000
    assert [found(index, number) for number in (0, 5, 1_999)] == [sample_url(0), sample_url(5), sample_url(1_999)]
    index.close()


FULL_DISK = """
import os, sys
from pathlib import Path
from nephila.dedup import LmdbNearIndex
from nephila.model.errors import StorageError
from nephila.testing.contracts.near_duplicates import sample_likeness, sample_url

disk = Path(sys.argv[1])
index = LmdbNearIndex(disk / "near", "boot", fold=1000)
told = 0
for number in range(40_000):
    index.remember(sample_likeness(number), sample_url(number))
    if number % 500 == 499:
        try:
            index.flush()
        except StorageError as error:
            assert "no space left" in str(error), error
            told += 1
            break
assert told, "the disk was not full"
assert index.find(sample_likeness(number)).url == sample_url(number)
(disk / "ballast").unlink()
index.flush()
assert index.snapshot().unwritten == 0
index.close()
index = LmdbNearIndex(disk / "near", "another boot", fold=1000)
for one in range(number + 1):
    assert index.find(sample_likeness(one)).url == sample_url(one)
index.close()
print("ok", number)
"""


def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(tmp_path: Path) -> None:
    """D3, W2: neither a crash nor a hole: the next flush that finds room writes all of it."""
    script = 'mount -t tmpfs -o size=6m none "$1"; head -c 2000000 /dev/zero >"$1/ballast"; shift; exec "$@"'
    disk = tmp_path / "disk"
    disk.mkdir()
    result = in_mount_namespace(script, disk, sys.executable, "-c", FULL_DISK, disk)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("ok")


SHARING = """
import sys
from pathlib import Path
from nephila.dedup import LmdbNearIndex
from nephila.testing.contracts.near_duplicates import sample_likeness, sample_url

path, first = Path(sys.argv[1]), int(sys.argv[2])
index = LmdbNearIndex(path, "boot", fold=150)
for line in sys.stdin:
    verb, number = line.split()
    match verb:
        case "remember":
            for one in range(first, first + int(number)):
                index.remember(sample_likeness(one), sample_url(one))
            index.flush()
            first += int(number)
            print("done", flush=True)
        case "find":
            original = index.find(sample_likeness(int(number)))
            print(original.url if original else "nothing", flush=True)
        case "close":
            index.close()
            print("done", flush=True)
            break
"""


class Sharer:
    """Another process on the same index."""

    def __init__(self, path: Path, first: int) -> None:
        command = [sys.executable, "-c", SHARING, str(path), str(first)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, verb: str, number: int = 0) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{verb} {number}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def test_processes_find_what_others_have_flushed(tmp_path: Path) -> None:
    """D3, F10: at once, while both fold; a kill takes nothing with it; the last one to close makes it safe."""
    one, other = Sharer(tmp_path, 0), Sharer(tmp_path, 10_000)
    assert (one.ask("find", 0), other.ask("find", 0)) == ("nothing", "nothing")
    for round_ in range(12):
        assert one.ask("remember", 70) == "done"
        assert other.ask("find", 70 * round_ + 69) == sample_url(70 * round_ + 69)
        assert other.ask("remember", 70) == "done"
        assert one.ask("find", 10_000 + 70 * round_) == sample_url(10_000 + 70 * round_)
    one.kill()
    assert other.ask("remember", 70) == "done"
    third = Sharer(tmp_path, 20_000)
    assert third.ask("remember", 10) == "done"
    for known in (0, 839, 10_000, 10_909):
        assert third.ask("find", known) == sample_url(known)
    assert third.ask("close") == "done"
    third.end()
    assert (tmp_path / "open-since-boot").read_text() == "boot", "another one is still at work"
    assert other.ask("close") == "done"
    other.end()
    assert (tmp_path / "open-since-boot").read_text() == ""
    index = LmdbNearIndex(tmp_path, "the next boot")
    assert index.snapshot().originals == 840 + 910 + 10
    index.close()


def test_pages_that_are_taken_down_are_nobodys_originals_any_more(tmp_path: Path) -> None:
    """D3, K2: in runs, log and memory; what comes afterwards is kept as ever."""
    index = LmdbNearIndex(tmp_path, "boot", RULE, fold=20)
    fill(index, 0, 65, every=20)
    gone = {sample_url(number) for number in (3, 41, 64)}
    assert index.forget_named(gone.__contains__) == 3
    assert {number for number in range(65) if not found(index, number)} == {3, 41, 64}
    fill(index, 65, 90, every=5)
    assert found(index, 89) == sample_url(89)
    index.close()
