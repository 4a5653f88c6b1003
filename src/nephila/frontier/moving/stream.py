"""The file that a frontier travels in: JSON lines under gzip, with counts and a digest at the end.

The last line says how many rows of each kind there were and what the SHA-256 of all lines before it is. So a file that
was cut, damaged or glued together is known for it: `check_stream` reads all of it before anything is written anywhere.
It is written beside its name, under one that nobody could have taken, and renamed when it is whole and synced.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import msgspec

from nephila.model.errors import FrontierError, StorageError

from .rows import KINDS, VERSION, CrawlRow, Row

_LEVEL = 4
_LONGEST_LINE = 16 * 1024 * 1024
"""A robots.txt of half a megabyte in base64, a scope of a million seeds, and room."""


class EndRow(msgspec.Struct, tag="end", tag_field="kind", frozen=True):
    """The last line."""

    rows: dict[str, int]
    sha256: str


_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Row | EndRow] = msgspec.json.Decoder(Row | EndRow).decode


def write_stream(path: Path, rows: Iterable[Row]) -> EndRow:
    """Write rows to a file that is there when all of them are; what is in the way is not overwritten."""
    if path.exists():
        raise StorageError(f"{path} exists already", "name another file, or remove it")
    draft = path.with_name(f".nephila-{token_hex(8)}.part")
    digest, counts = sha256(), Counter[str]()
    try:
        with draft.open("xb") as raw:
            with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
                for row in rows:
                    line = _encode(row) + b"\n"
                    digest.update(line)
                    counts[KINDS[type(row)]] += 1
                    packed.write(line)
                end = EndRow(dict(counts), digest.hexdigest())
                packed.write(_encode(end) + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}", "choose another place") from error
    finally:
        with suppress(OSError):
            draft.unlink()
    return end


def check_stream(path: Path, judge: Callable[[Row], None] | None = None) -> tuple[CrawlRow, EndRow]:
    """Read all of a file; its first and last row. Raises `FrontierError` where it is not whole, or as `judge`."""
    first: CrawlRow | None = None
    end: EndRow | None = None
    for row in _rows(path):
        if isinstance(row, EndRow):
            end = row
            continue
        if first is None:
            first = _begun(path, row)
        if judge is not None:
            judge(row)
    if first is None or end is None:
        raise _cut(path)
    return first, end


def read_stream(path: Path) -> Iterator[Row]:
    """The rows of a file, the first one included; raises as `check_stream` does, when it comes to what is wrong."""
    for row in _rows(path):
        if not isinstance(row, EndRow):
            yield row


def _rows(path: Path) -> Iterator[Row | EndRow]:
    digest, counts, ended = sha256(), Counter[str](), False
    try:
        with gzip.open(path, "rb") as stream:
            while line := stream.readline(_LONGEST_LINE):
                row = _decode(line)
                if ended or not line.endswith(b"\n"):
                    raise _damaged(path)
                if isinstance(row, EndRow):
                    ended = True
                    if row.sha256 != digest.hexdigest() or row.rows != dict(counts):
                        raise _damaged(path)
                else:
                    digest.update(line)
                    counts[KINDS[type(row)]] += 1
                yield row
    except (EOFError, zlib.error) as error:
        raise _cut(path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path) from error
    except gzip.BadGzipFile as error:
        raise FrontierError(f"{path} holds no exported frontier", "`nephila frontier export` makes one") from error
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if not ended:
        raise _cut(path)


def _begun(path: Path, row: Row) -> CrawlRow:
    if not isinstance(row, CrawlRow):
        raise _damaged(path)
    if row.version != VERSION:
        raise FrontierError(
            f"{path} has the version {row.version} of exported frontiers, this version of nephila reads {VERSION}",
            "use the version that made it",
        )
    return row


def _cut(path: Path) -> FrontierError:
    return FrontierError(f"{path} is cut short: its end is missing", "export it again")


def _damaged(path: Path) -> FrontierError:
    return FrontierError(f"{path} was damaged: what it says of itself at its end is not so", "export it again")
