"""One line of the chain that seals a trail: what it says, how it is spelled, how it holds to the line before it.

    {"n":7,"at":"2026-01-31T12:00:00.123Z","prev":"9f...","seals":[["warc/a.warc.gz",0,4711,"c0...",0]],"hash":"5e..."}

`hash` is the SHA-256 of the line up to it, `prev` the hash of the line before: whoever changes, removes or inserts a
line has to write every later one anew. A seal names a file of the crawl directory, a stretch of its bytes, their
SHA-256, and whether the file is closed. What a line may say beside that:

- `chain`, in the first line of a run: which chain it is; and where that is the first of all, `before`: files that were
  there already, with their length.
- `heads`: other chains, with the number and hash of their last line; those of other workers go by the workers' ids.
- `receipt`: a file was rewritten on purpose (`receipt`).
- `arrived`: files that lie in a store of objects now, and need not lie here any more.
- `end`: the run ended well, and nothing is left unsealed.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from .warc import warc_date

NO_HASH = "0" * 64
_HASH = b',"hash":"'
_HASH_BYTES = len(_HASH) + 64 + len(b'"}\n')

Seal = tuple[str, int, int, str, int]
"""File, first byte, end, SHA-256 of the bytes in between, 1 where the file is closed."""


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was rewritten: what it was, what it is now, what was taken out, and why."""

    file: str
    was: tuple[int, str]
    """Length and SHA-256 of the whole file."""
    now: tuple[int, str]
    removed: list[str]
    """Digests or fingerprints of what was taken out, never the thing itself."""
    why: str
    emptied: int = 0
    """Captures that stay, and whose payload was that of one that was taken out."""


class TrailLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a line says."""

    n: int
    at: str
    prev: str
    chain: str = ""
    before: list[tuple[str, int]] = []
    seals: list[Seal] = []
    heads: dict[str, tuple[int, str]] = {}
    receipt: Receipt | None = None
    arrived: list[str] = []
    end: bool = False
    hash: str = ""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(TrailLine)


def spelled(line: TrailLine) -> tuple[bytes, str]:
    """The line as it is written, and its hash."""
    body = _encoder.encode(msgspec.structs.replace(line, hash=""))
    digest = sha256(body).hexdigest()
    return b"".join((body[:-1], _HASH, digest.encode(), b'"}\n')), digest


def read_line(data: bytes) -> TrailLine | None:
    """A line with its line end, if it is one of ours and what it says has its hash; else None."""
    if len(data) <= _HASH_BYTES or data[-_HASH_BYTES:].partition(b'"')[0] != b"," or not data.endswith(b'"}\n'):
        return None
    try:
        line = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return line if sha256(data[:-_HASH_BYTES] + b"}").hexdigest() == line.hash else None


def instant(at: int) -> str:
    """UTC milliseconds as a line writes them."""
    return warc_date(at)


def fingerprint(data: bytes) -> str:
    """A digest for a receipt: names what was taken out without telling it."""
    return sha256(data).hexdigest()
