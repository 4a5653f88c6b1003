"""The chain of a process on a disk that forgets: what is sealed is durable, what is torn is cut off."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nephila.model.errors import StorageError
from nephila.store.receipt import replace_sealed
from nephila.store.trail import SEAL_MS, Trail, last_line, lines_of
from nephila.store.trail_check import TrailCheck, TrailVerdict
from nephila.store.trail_line import NO_HASH, Receipt, TrailLine, read_line, spelled
from nephila.testing.clock import VirtualClock
from nephila.testing.disk import ForgetfulDisk

ROOT = Path("/crawl")


@dataclass
class Ground:
    """A directory whose files a test lets grow."""

    disk: ForgetfulDisk = field(default_factory=ForgetfulDisk)
    clock: VirtualClock = field(default_factory=VirtualClock)

    def trail(self, writer: int = 0) -> Trail:
        return Trail(ROOT, writer, self.disk, self.clock, self.disk)

    def grow(self, name: str, data: bytes) -> int:
        """Add bytes to a file, durably; its length."""
        path = ROOT / name
        known = self.disk.contents(path) if path.name in self.disk.names(path.parent) else b""
        self.disk.overwrite(path, known + data)
        return len(known) + len(data)

    def chain(self, name: str = "w0") -> Path:
        return ROOT / "chain" / f"{name}.jsonl"

    def check(self) -> TrailVerdict:
        return TrailCheck(ROOT, self.disk, self.disk).run()


@pytest.fixture
def ground() -> Ground:
    return Ground()


SEGMENT = "warc/a.warc.gz"


def test_a_line_is_read_back_and_every_changed_byte_is_noticed() -> None:
    """K1: the hash covers all that a line says."""
    line = TrailLine(3, "2026-01-01T00:00:00.000Z", NO_HASH, seals=[(SEGMENT, 0, 5, "ab", 0)])
    data, digest = spelled(line)
    found = read_line(data)
    assert found is not None
    assert (found.n, found.seals, found.hash) == (3, line.seals, digest)
    for place in range(len(data)):
        for bit in (1, 128):  # the other one makes of it what is no text
            changed = bytearray(data)
            changed[place] ^= bit
            assert read_line(bytes(changed)) is None, place
    assert read_line(data[:-1]) is None
    assert read_line(b"") is None


def test_seals_tile_a_file_and_the_check_follows_them(ground: Ground) -> None:
    """K1: a line at most once a second; what comes in between waits."""
    trail = ground.trail()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"first"))
    trail.seal(now=True)
    size = ground.disk.contents(ground.chain())
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"second"))
    trail.seal()
    assert ground.disk.contents(ground.chain()) == size, "not yet"
    assert ground.check().unsealed_bytes == 6
    ground.clock.advance(SEAL_MS / 1000)
    trail.seal()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"third"), closed=True)
    trail.close()
    found = ground.check()
    assert not found.breaches
    assert (found.sealed_bytes, found.unsealed_bytes, found.ended) == (16, 0, True)
    assert found.head == last_line(ground.disk, ground.chain()).hash  # type: ignore[union-attr]
    ground.grow(SEGMENT, b"more")
    assert "added" in ground.check().breaches[0].what


def test_an_empty_file_that_no_seal_names_tells_nothing_and_one_with_bytes_is_tampering(ground: Ground) -> None:
    """K1, K2: an idle process leaves its event file before anything is in it, where a takedown asks for that."""
    trail = ground.trail()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"bytes"), closed=True)
    trail.close()
    ground.grow("events/events-000007.jsonl", b"")
    assert not ground.check().breaches
    ground.grow("events/events-000007.jsonl", b"{}\n")
    (breach,) = ground.check().breaches
    assert "the file was added" in breach.what


@pytest.mark.parametrize("seed", range(40))
def test_power_may_fail_at_any_time(seed: int) -> None:
    """K1, Q4: seals never say more than the files hold, and the next run seals what is left."""
    draw = random.Random(seed)
    ground = Ground()
    for _ in range(4):
        trail = ground.trail()
        name = f"{draw.random()}.warc.gz"
        file = ground.disk.create(ROOT / "warc" / name)
        for _ in range(draw.randint(0, 6)):
            file.append(draw.randbytes(draw.randint(1, 300)))
            if draw.random() < 0.6:
                file.sync()
                ground.disk.sync_directory(ROOT / "warc")
                trail.grown(f"warc/{name}", file.size())
                ground.clock.advance(draw.choice((0.1, 2)))
                trail.seal()
        ground.disk = ground.disk.lose_power(draw)
        assert not ground.check().breaches
        again = ground.trail()
        for name in ground.disk.names(ROOT / "warc"):
            if size := len(ground.disk.contents(ROOT / "warc" / name)):
                again.left(f"warc/{name}", size)
            else:
                ground.disk.remove(ROOT / "warc" / name)  # as recovery does
        again.close()
        found = ground.check()
        assert not found.breaches
        assert found.unsealed_bytes == 0


def test_a_torn_last_line_is_cut_off_and_the_chain_goes_on(ground: Ground) -> None:
    """K1, Q4: what kill -9 or a power loss leaves is no tampering."""
    ground.trail()
    whole = ground.disk.contents(ground.chain())
    for torn in (b'{"n":1,"at', b"\0" * 50, whole.splitlines()[0]):
        ground.disk.overwrite(ground.chain(), whole + torn)
        assert not ground.check().breaches
        assert ground.check().notes
        ground.trail()
        assert not ground.check().breaches
        assert not ground.check().notes
    assert [line.n for line in lines_of(ground.disk, ground.chain())] == [0, 1]


def test_a_line_longer_than_any_window_is_found(ground: Ground) -> None:
    """K1: thousands of files may grow within a second."""
    trail = ground.trail()
    for number in range(2000):
        name = f"warc/{number:04d}.warc.gz"
        trail.grown(name, ground.grow(name, b"x"), closed=True)
    trail.seal(now=True)
    ground.trail().close()
    found = ground.check()
    assert not found.breaches
    assert found.files == 2000


def test_chains_of_others_are_noted_and_their_loss_is_noticed(ground: Ground) -> None:
    """K1, N3: the first process notes the heads of the others."""
    first, second = ground.trail(0), ground.trail(1)
    second.grown(SEGMENT, ground.grow(SEGMENT, b"bytes"), closed=True)
    second.close()
    first.close()
    found = ground.check()
    assert not found.breaches
    assert set(found.heads) == {"w0", "w1"}
    lines = ground.disk.contents(ground.chain("w1")).splitlines(keepends=True)
    ground.disk.overwrite(ground.chain("w1"), b"".join(lines[:-1]))
    assert "chain/w1.jsonl" in {breach.file for breach in ground.check().breaches}
    ground.disk.remove(ground.chain("w1"))
    assert "chain/w1.jsonl" in {breach.file for breach in ground.check().breaches}


def test_what_a_dead_worker_left_is_sealed_once(ground: Ground) -> None:
    """K1, N3: from where its own chain ends, whoever does it, however often."""
    dead = ground.trail(1)
    dead.grown(SEGMENT, ground.grow(SEGMENT, b"sealed"))
    dead.seal()
    end = ground.grow(SEGMENT, b" and not")
    first = ground.trail(0)
    first.left(SEGMENT, end)
    first.seal(now=True)
    first.left(SEGMENT, end)
    first.close()
    again = ground.trail(0)
    again.left(SEGMENT, end)
    again.close()
    found = ground.check()
    assert not found.breaches
    assert found.sealed_bytes == end


def test_events_are_synced_before_they_are_sealed(ground: Ground) -> None:
    """K1, Q4: a seal must not outlive its bytes."""
    trail = ground.trail()
    events = ground.disk.create(ROOT / "events" / "events-000001.jsonl")
    ground.disk.sync_directory(ROOT / "events")
    events.append(b"{}\n")
    trail.event_marks = lambda: [("events-000001.jsonl", 3)]
    trail.seal(now=True)
    ground.disk = ground.disk.lose_power()
    found = ground.check()
    assert not found.breaches
    assert found.sealed_bytes == 3


def test_a_full_disk_leaves_a_whole_chain(ground: Ground) -> None:
    """K1: half a line is taken back, and the next run seals what was not."""
    trail = ground.trail()
    end = ground.grow(SEGMENT, b"bytes")
    trail.grown(SEGMENT, end)
    ground.disk.capacity = len(ground.disk.contents(ground.chain())) + end + 20
    with pytest.raises(StorageError, match="no space"):
        trail.seal(now=True)
    assert not ground.check().breaches
    assert not ground.check().notes
    ground.disk.capacity = None
    trail.close()
    again = ground.trail()
    again.left(SEGMENT, end)
    again.close()
    assert ground.check().sealed_bytes == end


def test_what_was_there_before_is_told_and_not_sealed(ground: Ground) -> None:
    """K1: a crawl of an earlier version goes on; its old bytes are not vouched for."""
    ground.grow("warc/old.warc.gz", b"old")
    ground.grow("events/events-000001.jsonl", b"{}\n")
    trail = ground.trail()
    trail.event_marks = lambda: [("events-000001.jsonl", ground.grow("events/events-000001.jsonl", b"{}\n"))]
    trail.close()
    found = ground.check()
    assert not found.breaches
    assert found.older_files == 2
    ground.disk.remove(ROOT / "warc/old.warc.gz")
    assert "was there when the chain was begun" in ground.check().breaches[0].what


def test_a_file_that_somebody_takes_away_stops_nobody(ground: Ground) -> None:
    """K1: the crawl goes on, and the check says what is missing."""
    trail = ground.trail()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"bytes"))
    trail.seal(now=True)
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"more"))
    ground.disk.remove(ROOT / SEGMENT)
    trail.close()
    assert [(breach.file, breach.what) for breach in ground.check().breaches] == [(SEGMENT, "the file is missing")]


def test_a_run_from_which_files_were_moved_away_did_not_end_well(ground: Ground) -> None:
    """K1: what they hold beyond their seals is not sealed, and nobody's tampering, when they are back."""
    trail = ground.trail()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"bytes"))
    trail.seal(now=True)
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"more"))
    kept = ground.disk.contents(ROOT / SEGMENT)
    ground.disk.remove(ROOT / SEGMENT)
    trail.seal(now=True)
    trail.close()
    ground.disk.overwrite(ROOT / SEGMENT, kept)
    found = ground.check()
    assert not found.breaches
    assert not found.ended


EVENTS = "events/events-000001.jsonl"


def test_an_event_file_that_was_rewritten_may_grow_and_its_growth_is_sealed(ground: Ground) -> None:
    """K1, K2: the next run goes on in the last file; what it adds is held against its own seals."""
    trail = ground.trail()
    trail.grown(EVENTS, ground.grow(EVENTS, b'{"url":"x"}\n'))
    trail.seal(now=True)
    ground.disk.overwrite(ROOT / "events/draft", b'{"url":"*"}\n')
    replace_sealed(trail, ground.disk, ROOT, EVENTS, "events/draft", removed=["ab"], why="takedown 1")
    trail.close()
    assert not ground.check().breaches
    again = ground.trail()
    again.grown(EVENTS, ground.grow(EVENTS, b"{}\n"))
    again.close()
    assert not ground.check().breaches
    ground.grow(EVENTS, b"{}\n")
    (breach,) = ground.check().breaches
    assert "were added after" in breach.what


def test_a_takedown_that_is_repeated_after_a_crash_writes_a_second_receipt(ground: Ground) -> None:
    """K1, K2: the first was not carried out, which the second one shows; any other state is tampering."""
    trail = ground.trail()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"the old bytes"), closed=True)
    trail.seal(now=True)
    was = ground.disk.contents(ROOT / SEGMENT)
    for _ in range(2):
        ground.disk.overwrite(ROOT / SEGMENT, was)  # as a crash right after the receipt leaves it
        ground.disk.overwrite(ROOT / "warc/draft", b"the new bytes")
        replace_sealed(trail, ground.disk, ROOT, SEGMENT, "warc/draft", removed=["ab"], why="takedown 1")
    trail.close()
    found = ground.check()
    assert not found.breaches
    assert len(found.receipts) == 2
    third = ground.trail()
    ground.disk.overwrite(ROOT / SEGMENT, b"other bytes")
    ground.disk.overwrite(ROOT / "warc/draft", b"newer bytes")
    replace_sealed(third, ground.disk, ROOT, SEGMENT, "warc/draft", removed=["ab"], why="takedown 2")
    third.close()
    assert "changed between two receipts" in ground.check().breaches[0].what


def test_after_a_line_that_could_not_be_synced_nothing_is_added_to_the_chain(ground: Ground) -> None:
    """K1, K2: nobody can tell whether it is there; a second line in its place would pass for tampering."""
    trail = ground.trail()
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"first"))
    trail.seal(now=True)
    before = ground.disk.contents(ground.chain())
    receipt = Receipt(SEGMENT, (5, "a"), (5, "b"), [], "takedown 1")
    ground.disk.refuses_sync = True
    with pytest.raises(StorageError):
        trail.receipt(receipt)
    ground.disk.refuses_sync = False
    trail.note({"w1": (1, "a" * 64)})
    trail.grown(SEGMENT, ground.grow(SEGMENT, b"second"), closed=True)
    trail.close()
    with pytest.raises(StorageError):
        trail.receipt(receipt)
    assert ground.disk.contents(ground.chain()) == before
    ground.disk = ground.disk.lose_power()
    trail = ground.trail()
    trail.left(SEGMENT, 11)
    trail.close()
    assert not ground.check().breaches
