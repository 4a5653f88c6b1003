"""What other people's tools say of our archives."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

from served import records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # FastWARC warns about its own old names while it is imported
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import WarcRecordType


WARCIO = (sys.executable, "-c", "import sys; sys.modules['brotli'] = None; from warcio.cli import main; main()")
"""warcio without the module `brotli`, which FastWARC brings: with today's release of that, warcio breaks on every br
body, whoever wrote it (it sets an attribute that the decompressor does not have). Without it, br stays undecoded."""
FASTWARC = """
import sys
from fastwarc.cli import main
for path in sys.argv[1:]:
    print(path, flush=True)
    if main(["check", path], standalone_mode=False):
        sys.exit(1)
"""
"""`fastwarc check` takes one file; a process takes all of them."""


def archives(out: Path) -> list[Path]:
    """The WARC files of a crawl."""
    found = sorted(path for path in (out / "warc").rglob("*.warc.*") if path.suffix in {".gz", ".zst"})
    assert found, f"no WARC files in {out}"
    return found


def check_archives(out: Path) -> None:
    """`warcio check` and `fastwarc check` find nothing wrong; the first cannot read Zstandard."""
    found = archives(out)
    gzipped = [path for path in found if path.suffix == ".gz"]
    warcio = [[*WARCIO, "check", *gzipped]] if gzipped else []
    for command in (*warcio, [sys.executable, "-c", FASTWARC, *found]):
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        assert "FAIL" not in result.stdout.upper().replace("FAILED: 0", ""), result.stdout


def captures_in_archives(out: Path) -> tuple[int, int]:
    """How many answers (response, revisit) and how many resource records there are, by FastWARC's count."""
    answers, resources = places_in_archives(out)
    return len(answers), len(resources)


def places_in_archives(out: Path) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Where answers (response, revisit) and resource records lie: file and offset, as FastWARC finds them."""
    answers: list[tuple[str, int]] = []
    resources: list[tuple[str, int]] = []
    for path in archives(out):
        with path.open("rb") as stream:
            for record in FastIterator(stream, parse_http=False):
                place = (path.relative_to(out / "warc").as_posix(), record.stream_pos)
                if record.record_type in (WarcRecordType.response, WarcRecordType.revisit):
                    answers.append(place)
                elif record.record_type == WarcRecordType.resource:
                    resources.append(place)
    return answers, resources


def index_lines(out: Path) -> list[str]:
    """The lines of our own CDXJ files."""
    return [line for path in sorted((out / "warc").rglob("*.cdxj")) for line in path.read_text().splitlines()]


def check_index(out: Path) -> None:
    """Every line of our CDXJ files leads to its record, in the file as it is."""
    for line in index_lines(out):
        told = json.loads(line.split(" ", 2)[2])
        with (out / "warc" / told["filename"]).open("rb") as stream:
            stream.seek(int(told["offset"]))
            record = gzip.decompress(stream.read(int(told["length"])))
        assert f"WARC-Target-URI: {told['url']}\r\n".encode() in record, line


def kinds(out: Path) -> dict[str, int]:
    """Records by type, as warcio reads them."""
    found: dict[str, int] = {}
    for _, record, _ in records(out):
        found[record.rec_type] = found.get(record.rec_type, 0) + 1
    return found


def check_books(out: Path) -> None:
    """Archives are whole; index and catalogue list what is in them, each once."""
    check_archives(out)
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    query = 'SELECT s.name, c."offset" FROM captures c JOIN segments s ON s.id = c.segment'
    catalogued = connection.execute(query).fetchall()
    connection.close()
    answers, resources = places_in_archives(out)
    assert sorted(catalogued) == sorted(answers)
    fields = [json.loads(line.split(" ", 2)[2]) for line in index_lines(out)]
    assert sorted((one["filename"], int(one["offset"])) for one in fields) == sorted(answers + resources)
