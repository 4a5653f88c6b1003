"""A finished crawl whose files somebody changes afterwards: each change is noticed, and the file named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from simulation import PATIENT, simulate

from nephila.engines.disk import LocalDisk, LookingDisk
from nephila.model.errors import StorageError
from nephila.model.settings import Settings
from nephila.node.audit import Audit, audit
from nephila.store.reader import WarcReader
from nephila.store.receipt import check_sealed, replace_sealed
from nephila.store.trail import Trail
from nephila.store.trail_line import fingerprint
from nephila.testing.clock import VirtualClock
from nephila.testing.web import SimulatedWeb, WebSpec

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
ROLLING: Settings = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=40_000))

Tamper = Callable[[Path], str]
"""Changes something; the file that must be named."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "crawl"
    simulate(SimulatedWeb(SMALL), out, ROLLING)
    found = audit(out)
    assert found.is_clean
    assert found.trail.files > 3
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "crawl", ignore=shutil.ignore_patterns("frontier", "near", "duplicates"))
    return tmp_path / "crawl"


def archives(out: Path) -> list[Path]:
    return sorted((out / "warc").glob("*.warc.gz"))


def named(out: Path, path: Path) -> str:
    return str(path.relative_to(out))


def a_byte_of_an_archive(out: Path) -> str:
    path = archives(out)[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return named(out, path)


def capture_places(path: Path) -> list[tuple[int, int]]:
    """Where captures begin and end."""
    file = LookingDisk().open(path)
    try:
        ends = [record.end for record in WarcReader(file, path.name) if record.kind in {"warcinfo", "metadata"}]
    finally:
        file.close()
    return list(pairwise(ends))


def a_capture_taken_out(out: Path) -> str:
    path = archives(out)[1]
    start, end = capture_places(path)[1]
    data = path.read_bytes()
    path.write_bytes(data[:start] + data[end:])
    return named(out, path)


def the_last_capture_taken_off(out: Path) -> str:
    path = archives(out)[-1]
    path.write_bytes(path.read_bytes()[: capture_places(path)[-1][0]])
    return named(out, path)


def a_capture_put_in(out: Path) -> str:
    path, other = archives(out)[1], archives(out)[2]
    start, end = capture_places(other)[0]
    path.write_bytes(path.read_bytes() + other.read_bytes()[start:end])
    return named(out, path)


def an_archive_removed(out: Path) -> str:
    path = archives(out)[1]
    path.unlink()
    return named(out, path)


def two_archives_swapped(out: Path) -> str:
    first, second = archives(out)[1:3]
    between = out / "between"
    first.rename(between)
    second.rename(first)
    between.rename(second)
    return named(out, first)


def an_archive_added(out: Path) -> str:
    path = archives(out)[-1]
    added = path.with_name(path.name.replace("-w0", "-w9"))
    shutil.copy(path, added)
    return named(out, added)


def an_event_dropped(out: Path) -> str:
    path = out / "events" / "events-000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:30] + lines[31:]))
    return named(out, path)


def an_event_added(out: Path) -> str:
    path = out / "events" / "events-000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[20]]))
    return named(out, path)


def an_event_file_removed(out: Path) -> str:
    (out / "events" / "events-000001.jsonl").unlink()
    return "events/events-000001.jsonl"


def chain(out: Path) -> Path:
    return out / "chain" / "w0.jsonl"


def a_word_of_the_chain(out: Path) -> str:
    path = chain(out)
    path.write_bytes(path.read_bytes().replace(b'"n":5,', b'"n":6,', 1))
    return "chain/w0.jsonl"


def the_last_line_of_the_chain(out: Path) -> str:
    path = chain(out)
    path.write_bytes(path.read_bytes().replace(b'"end":true', b'"end":trus', 1))
    return "chain/w0.jsonl"


def a_line_of_the_chain_dropped(out: Path) -> str:
    path = chain(out)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4] + lines[5:]))
    return "chain/w0.jsonl"


def a_line_of_the_chain_made_anew(out: Path) -> str:
    """Whoever knows the format can make a line that is right in itself; the next one gives it away."""
    path = chain(out)
    lines = path.read_bytes().splitlines(keepends=True)
    body = lines[4][: lines[4].index(b',"hash"')].replace(b'"at":"2026', b'"at":"2025') + b"}"
    lines[4] = body[:-1] + b',"hash":"' + sha256(body).hexdigest().encode() + b'"}\n'
    path.write_bytes(b"".join(lines))
    return "chain/w0.jsonl"


def lines_of_the_chain_swapped(out: Path) -> str:
    path = chain(out)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4], lines[5] = lines[5], lines[4]
    path.write_bytes(b"".join(lines))
    return "chain/w0.jsonl"


@pytest.mark.parametrize(
    "tamper",
    [
        a_byte_of_an_archive,
        a_capture_taken_out,
        the_last_capture_taken_off,
        a_capture_put_in,
        an_archive_removed,
        two_archives_swapped,
        an_archive_added,
        an_event_dropped,
        an_event_added,
        an_event_file_removed,
        a_word_of_the_chain,
        the_last_line_of_the_chain,
        a_line_of_the_chain_dropped,
        a_line_of_the_chain_made_anew,
        lines_of_the_chain_swapped,
    ],
    ids=lambda tamper: tamper.__name__,
)
def test_tampering_is_noticed_and_named(out: Path, tamper: Tamper, say: Callable[[str], None]) -> None:
    """K1: a record changed, removed or added, a file, an event, a line of the chain itself."""
    file = tamper(out)
    found = audit(out)
    assert not found.is_clean
    assert file in {breach.file for breach in found.trail.breaches}
    say(f"{found.trail.breaches[0].file}: {found.trail.breaches[0].what}")


def test_whoever_cuts_chain_and_archive_together_is_caught_by_a_noted_head(out: Path) -> None:
    """K1: a chain that ends earlier is right in itself; only what was noted elsewhere shows that something is gone."""
    head = audit(out).trail.head
    lines = chain(out).read_bytes().splitlines(keepends=True)[:3]
    chain(out).write_bytes(b"".join(lines))
    sealed = {file: end for line in lines for file, _, end, _, _ in json.loads(line).get("seals", [])}
    for path in [*archives(out), *(out / "warc").glob("*.cdxj"), *(out / "events").iterdir()]:
        if path.suffix != ".cdxj" and named(out, path) in sealed:
            path.write_bytes(path.read_bytes()[: sealed[named(out, path)]])
        else:
            path.unlink()
    assert not audit(out).trail.breaches
    found = audit(out, expect=[head])
    assert found.trail.missing == [head]
    assert not found.is_clean


def test_a_noted_head_is_still_there_when_the_crawl_has_gone_on(tmp_path: Path) -> None:
    """K1: what was noted once holds for ever."""
    clock, web = VirtualClock(), SimulatedWeb(SMALL)
    few = replace(PATIENT, limits=replace(PATIENT.limits, max_pages=10))
    simulate(web, tmp_path / "crawl", few, clock=clock)
    head = audit(tmp_path / "crawl").trail.head
    simulate(web, tmp_path / "crawl", clock=clock)
    found = audit(tmp_path / "crawl", expect=[head.upper()])
    assert found.is_clean
    assert found.trail.head != head


def test_a_crawl_without_chains_is_told_apart(out: Path) -> None:
    """K1: what was crawled before there were chains is not sealed, which is no violation."""
    shutil.rmtree(out / "chain")
    found = audit(out)
    assert found.is_clean
    assert not found.trail.sealed


def test_a_crawl_that_is_older_than_its_chain_goes_on_under_one(tmp_path: Path) -> None:
    """K1: files that were there before are told as such, what comes after is sealed."""
    clock, web, out = VirtualClock(), SimulatedWeb(SMALL), tmp_path / "crawl"
    simulate(web, out, replace(ROLLING, limits=replace(PATIENT.limits, max_pages=20)), clock=clock)
    shutil.rmtree(out / "chain")
    simulate(web, out, ROLLING, clock=clock)
    found = audit(out)
    assert found.is_clean, found.trail.breaches
    assert found.trail.older_files >= 2
    assert found.trail.files > found.trail.older_files
    path = archives(out)[-1]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert audit(out).trail.breaches


# Receipts


def rewrite(out: Path) -> tuple[str, bytes]:
    """Take a capture out of an archive, under a receipt."""
    path = archives(out)[1]
    start, end = capture_places(path)[1]
    data = path.read_bytes()
    draft = path.with_name("draft")
    draft.write_bytes(data[:start] + data[end:])
    trail = Trail(out, 0, LocalDisk(), VirtualClock())
    removed = [fingerprint(data[start:end])]
    check_sealed(LocalDisk(), LocalDisk(), out, {named(out, path)})
    replace_sealed(trail, LocalDisk(), out, named(out, path), f"warc/{draft.name}", removed=removed, why="takedown 7")
    trail.close()
    return named(out, path), data


def test_a_file_that_was_rewritten_under_a_receipt_is_accepted(out: Path) -> None:
    """K1, K2, W5: the receipt says what was taken out and why, and the audit says so too."""
    file, _ = rewrite(out)
    found = audit(out)
    assert found.is_clean, (found.trail.breaches, found.findings)
    ((_, receipt),) = found.trail.receipts
    assert receipt.file == file
    assert receipt.why == "takedown 7"
    assert found.lost == 1, "the event of what was taken out is left"


def test_a_file_that_was_changed_again_after_its_receipt_is_refused(out: Path) -> None:
    """K1, W5: a receipt is for one file, not for whatever comes in its place."""
    file, _ = rewrite(out)
    (out / file).write_bytes((out / file).read_bytes()[:-10])
    assert file in {breach.file for breach in audit(out).trail.breaches}


def test_a_receipt_that_was_not_carried_out_is_told(out: Path) -> None:
    """K1, W5: a crash between receipt and renaming leaves the old file, which has its seals."""
    file, data = rewrite(out)
    (out / file).write_bytes(data)
    found = audit(out)
    assert found.is_clean
    assert any("was to be rewritten" in note for note in found.trail.notes)
    (out / file).write_bytes(data[:-1] + b"x")
    assert not audit(out).is_clean


def test_rewriting_twice_needs_two_receipts(out: Path) -> None:
    """K1, W5: receipts follow from one another."""
    rewrite(out)
    rewrite(out)
    found: Audit = audit(out)
    assert found.is_clean, found.trail.breaches
    assert len(found.trail.receipts) == 2


def test_a_receipt_does_not_cover_up_what_happened_before(out: Path) -> None:
    """K1, W5: a file that is not what was sealed is not rewritten."""
    a_capture_put_in(out)
    with pytest.raises(StorageError, match="is not rewritten, because"):
        rewrite(out)
    assert not audit(out).is_clean
