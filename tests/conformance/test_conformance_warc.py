"""Archives that others made, good, odd and damaged, through our reader."""

import csv
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from nephila.store import LocalDisk
from nephila.store.reader import DamagedArchiveError, WarcReader, WarcRecord
from nephila.store.recovery import valid_end
from nephila.store.verify import digest_problems


@pytest.fixture
def archives(material: Path) -> Path:
    return material / "04-warc"


@dataclass(frozen=True)
class _Reading:
    records: list[WarcRecord]
    damage: DamagedArchiveError | None

    @property
    def problems(self) -> list[str]:
        return [problem for record in self.records for problem in digest_problems(record)]


def _read(archives: Path, name: str) -> _Reading:
    records: list[WarcRecord] = []
    with closing(LocalDisk().open(archives / name)) as file:
        reader = iter(WarcReader(file, name))
        try:
            while record := next(reader, None):
                records.append(record)
        except DamagedArchiveError as damage:
            return _Reading(records, damage)
    return _Reading(records, None)


def _matrix(archives: Path) -> list[dict[str, str]]:
    """What each validator said of the files that are here."""
    with (archives / "validator_matrix.csv").open() as lines:
        return [row for row in csv.DictReader(lines) if (archives / row["file"]).is_file()]


Tell = Callable[[str, int, int], None]

DAMAGED = {
    "warcio/example-trunc.warc": (2, "two empty lines"),
    "warcio/example-bad.warc.gz.bad": (0, "several records in one gzip member"),
    "warcio/example-bad-non-chunked.warc.gz": (0, "several records in one gzip member"),
    "warcio/example-wrong-chunks.warc.gz": (0, "shorter than its Content-Length"),
}
"""How many records come before the damage, and what is said of it."""


def test_whole_archives_are_read_to_the_end(archives: Path, tell: Tell) -> None:
    """W1: as many records as a validator of the standard counts, in every good or merely odd file."""
    whole = [row for row in _matrix(archives) if row["file"] not in DAMAGED]
    wrong = {}
    for row in whole:
        reading = _read(archives, row["file"])
        if reading.damage or len(reading.records) != int(row["jwat_records"]):
            wrong[row["file"]] = reading.damage or len(reading.records)
    tell("W1 whole archives read to the end", len(whole) - len(wrong), len(whole))
    assert wrong == {}
    assert len(whole) >= 15


def test_damaged_archives_are_refused_where_the_damage_is(archives: Path, tell: Tell) -> None:
    """W1, Q5: earlier records are given out, nothing is read as one record that is several."""
    for name, (count, reason) in DAMAGED.items():
        reading = _read(archives, name)
        assert reading.damage is not None, name
        assert (len(reading.records), reason in reading.damage.reason) == (count, True), name
    tell("W1 damaged archives refused at the right place", len(DAMAGED), len(DAMAGED))


def test_recovery_finds_the_end_of_what_is_whole(archives: Path) -> None:
    """F10: a cut file of others is whole up to a record's end."""
    file = LocalDisk().open(archives / "warcio/example-trunc.warc")
    end, size = valid_end(file, "example-trunc.warc"), file.size()
    file.close()
    assert end <= _read(archives, "warcio/example-trunc.warc").records[-1].end < size


def test_digests_hold_where_others_say_so(archives: Path, tell: Tell) -> None:
    """W1: the same files fail that `warcio check` fails, for the digests alone."""
    compared = 0
    for row in _matrix(archives):
        if row["file"] in DAMAGED or row["warcio_check"] == "crash":
            continue
        assert bool(_read(archives, row["file"]).problems) == (row["warcio_check"] == "FAIL"), row["file"]
        compared += 1
    tell("W1 digests judged as warcio judges them", compared, compared)
    assert len(_read(archives, "warcio/example-digest.warc").problems) == 1


def test_no_arc_file_is_taken_for_a_warc_file(archives: Path) -> None:
    """Q5: the older format is refused, not guessed at."""
    older = [path for path in archives.rglob("*") if ".arc" in path.name]
    assert older
    for path in older:
        reading = _read(archives, str(path.relative_to(archives)))
        assert (reading.records, reading.damage is not None) == ([], True)


def test_odd_target_uris_are_put_right(archives: Path) -> None:
    """W1: spaces and angle brackets of other writers do not reach us."""
    for name in ("warcio/example-space-in-target-uri.warc.gz", "warcio/example-wget-bad-target-uri.warc.gz"):
        targets = [record.target for record in _read(archives, name).records]
        assert any(targets)
        assert not any(set(target) & set(" <>") for target in targets)
