"""Content codings undone, with a cap on what comes out (H1, H2, Q5).

Servers lie about codings, cut streams short, append rubbish and send bombs. The rules here are those of browsers and
libcurl where these agree: codings are undone from the last to the first; a stream that ends early or breaks in the
middle gives what there was before; bytes after the end of a stream are ignored; checksums are not judged (the page is
there, and browsers show it). What is no coding at all, but a charset, a media type or the like, is passed over, as
browsers do. Only where nothing at all can be read, or the coding is unknown, there is no body. What must stay true: no
call allocates much more than `limit`, whatever the input says about itself.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import brotlicffi as brotli  # type: ignore[import-untyped]  # ships no types
import zstandard
from isal import isal_zlib

from nephila.model.noun import quick

ACCEPT_ENCODING = "gzip, br, zstd"
"""What is asked for: the codings that pages really come in."""

MAX_CODINGS = 5
"""Codings stacked on one answer; libcurl's limit."""

MAX_MEMBERS = 10_000
"""Members of one gzip stream: ten times what block-wise compression makes of the longest answer."""

ZSTD_WINDOW_BYTES = 8 << 20
"""The largest window that a decoder must accept (RFC 9659 3); browsers refuse more."""

_NO_CODING = re.compile(
    r"identity|none|utf-?8|utf-16|(?:us-)?ascii|iso-?8859-\d{1,2}|windows-\d{3,4}"  # a charset in the wrong header
    r"|7bit|8bit|binary"  # Content-Transfer-Encoding of mail
    r"|aws-chunked"  # how a file was once uploaded to an object store, kept beside it and sent to all
    r"|[a-z]+/[a-z0-9.+-]+"  # a media type
)
"""What servers write where codings belong, on bodies that have none."""

_SALVAGE_STEP = 8192
"""Bytes per step when a broken stream is read again to keep what precedes the break."""
_SALVAGED_AT_ONCE = (4096, 64, 1)
"""Bytes that come out of a broken stream at once, near the break."""
_BROTLI_STEP, _BROTLI_RATIO = 16_384, 6
"""Room for what comes out of a brotli stream at first: so many bytes, or as much more than what goes in."""


@quick
class Decoded(NamedTuple):
    """A body without its codings. `cut` says that there was more than the limit allowed."""

    body: bytes
    cut: bool = False


class Undecodable(NamedTuple):
    """No byte of the body can be read, and why."""

    detail: str


class _BrokenError(Exception):
    """Nothing could be read from a stream: the cause is the library's complaint."""


def codings_of(values: Sequence[str]) -> list[str]:
    """The codings named by the Content-Encoding values, in the order they were applied, left out what is none."""
    return list(_named(values[0] if len(values) == 1 else ",".join(values))) if values else []


@lru_cache(maxsize=64)
def _named(value: str) -> tuple[str, ...]:
    """Of all values in one: servers have a handful of them, and this is asked for every page."""
    names = (name.strip().lower() for name in value.split(","))
    return tuple(name for name in names if name and not _NO_CODING.fullmatch(name))


def decode(codings: list[str], data: bytes, limit: int) -> Decoded | Undecodable:
    """Undo the codings; at most `limit` bytes come out, at every stage."""
    if not codings or not data:
        return Decoded(data[:limit], len(data) > limit)
    if len(codings) > MAX_CODINGS:
        return Undecodable(f"{len(codings)} content codings on one answer")
    cut = False
    for name in reversed(codings):
        undo = _CODINGS.get(name)
        if undo is None:
            return Undecodable(f"unknown content coding {name[:40]!r}")
        try:
            data, more = undo(data, limit)
        except _BrokenError as error:
            return Undecodable(f"content coding {name}: {error.__cause__ or error}")
        cut = cut or more
    return Decoded(data, cut)


def _gunzip(data: bytes, limit: int) -> tuple[bytes, bool]:
    """Members one after the other; whatever follows the last one is ignored."""
    bare = data[:4] == b"\x1f\x8b\x08\0" and len(data) >= 10  # no name, no comment: as servers send it
    start = 10 if bare else _after_gzip_header(data, 0)
    if start is None:
        raise _BrokenError("no gzip header")
    hint = int.from_bytes(data[-4:], "little")  # ISIZE, RFC 1952 2.3.1: a guess that saves growing the buffer
    body, rest = _inflate(data[start:], limit + 1, hint)
    pieces, size = [body], len(body)
    at = None if rest is None else len(data) - len(rest)
    while at is not None and at + 8 < len(data) and size <= limit:
        start = _after_gzip_header(data, at + 8)  # CRC32 and ISIZE
        if start is None:
            break
        if len(pieces) == MAX_MEMBERS:
            return b"".join(pieces)[:limit], True
        body, at = _inflate_member(data, start, limit + 1 - size)
        pieces.append(body)
        size += len(body)
    whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return whole[:limit], size > limit


def _inflate_member(data: bytes, at: int, cap: int) -> tuple[bytes, int | None]:
    """One more member: its content, and where its deflate stream ends, None when it does not.

    Fed in small steps that grow, because what is left of a step is copied: members of a few bytes cost a few bytes.
    """
    begun, step = at, 512
    stream = isal_zlib.decompressobj(-15)
    pieces: list[bytes] = []
    room = cap
    try:
        while at < len(data) and room > 0 and not stream.eof:
            piece = stream.decompress(data[at : at + step], room)
            pieces.append(piece)
            room -= len(piece)
            at += step
            step *= 2
    except isal_zlib.IsalError as error:  # type: ignore[misc]  # declared as an instance in its stubs
        try:
            return _salvage_deflate(data[begun:], cap, error), None
        except _BrokenError:
            return b"", None  # the members before it are worth keeping
    return b"".join(pieces), min(at, len(data)) - len(stream.unused_data) if stream.eof else None


def _after_gzip_header(data: bytes, at: int) -> int | None:
    """Where the deflate stream begins (RFC 1952 2.3); the end of the data when it stops inside the header."""
    size = len(data) - at
    if size <= 0 or data[at : at + 3] != b"\x1f\x8b\x08"[:size]:
        return None
    if size < 10:
        return len(data)
    flags = data[at + 3]
    at += 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):  # name and comment, each up to a zero byte
        if flags & flag:
            zero = data.find(b"\0", at)
            at = len(data) if zero < 0 else zero + 1
    if flags & 2:
        at += 2
    return at


def _undeflate(data: bytes, limit: int) -> tuple[bytes, bool]:
    """``deflate`` means zlib by the standard and raw deflate by half of those who send it."""
    headed = len(data) > 1 and data[0] & 15 == 8 and not data[1] & 32 and (data[0] << 8 | data[1]) % 31 == 0
    try:
        body, _ = _inflate(data[2:] if headed else data, limit + 1, 0)
    except _BrokenError:
        if not headed:
            raise
        body, _ = _inflate(data, limit + 1, 0)
    return body[:limit], len(body) > limit


def _inflate(data: bytes, cap: int, hint: int) -> tuple[bytes, bytes | None]:
    """Raw deflate; also what follows the stream's end, None when that was not reached."""
    stream = isal_zlib.decompressobj(-15)
    pieces: list[bytes] = []
    room, pending = cap, data
    step = max(hint, 4 * len(data), 16_384) + 1
    try:
        while room > 0 and not stream.eof:
            piece = stream.decompress(pending, min(step, room))
            pending = stream.unconsumed_tail
            pieces.append(piece)
            room -= len(piece)
            if not piece and not pending:
                break
    except isal_zlib.IsalError as error:  # type: ignore[misc]  # declared as an instance in its stubs
        return _salvage_deflate(data, cap, error), None
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return body, (stream.unused_data if stream.eof else None)


def _salvage_deflate(data: bytes, cap: int, cause: Exception) -> bytes:
    """Read a broken stream again in steps, the one with the break in small ones: an error loses its call's output."""
    stream = zlib.decompressobj(-15)
    out = bytearray()
    for at in range(0, len(data), _SALVAGE_STEP):
        step = data[at : at + _SALVAGE_STEP]
        before = stream.copy()
        try:
            out += stream.decompress(step, cap - len(out))
        except zlib.error:
            _inflate_to_the_break(before, step, out, cap)
            break
        if len(out) >= cap:
            break
    if not out:
        raise _BrokenError from cause
    return bytes(out)


def _inflate_to_the_break(stream: zlib._Decompress, data: bytes, out: bytearray, cap: int) -> None:
    """Append all that precedes a break, taking less and less at once: one byte of a stream may stand for hundreds."""
    for most in _SALVAGED_AT_ONCE:
        while len(out) < cap:
            before = stream.copy()
            try:
                piece = stream.decompress(data, min(most, cap - len(out)))
            except zlib.error:
                stream = before
                break
            out += piece
            data = stream.unconsumed_tail
            if not piece and not data:
                return


def _unbrotli(data: bytes, limit: int) -> tuple[bytes, bool]:
    out = bytearray()
    try:
        _feed_brotli(brotli.Decompressor(), data, out, limit + 1)
    except brotli.error as error:
        out = _salvage_brotli(data, limit + 1)
        if not out:
            raise _BrokenError from error
    return bytes(out[:limit]), len(out) > limit


def _feed_brotli(stream: brotli.Decompressor, data: bytes, out: bytearray, cap: int) -> None:
    """Append what `data` gives; stops at `cap` (which the library may overshoot by one of its blocks).

    In steps, because the library fills a buffer of the whole limit with zeros first: milliseconds for a small page.
    """
    step = max(_BROTLI_STEP, _BROTLI_RATIO * len(data))
    out += stream.process(data, output_buffer_limit=max(min(step, cap - len(out)), 1))
    while len(out) < cap and not stream.can_accept_more_data():
        step *= 2
        out += stream.process(b"", output_buffer_limit=min(step, cap - len(out)))


def _salvage_brotli(data: bytes, cap: int) -> bytearray:
    """What precedes a break, or the whole stream when rubbish follows its end (which the library calls an error)."""
    stream, out, at = brotli.Decompressor(), bytearray(), 0
    try:
        while at < len(data) and len(out) < cap:
            _feed_brotli(stream, data[at : at + _SALVAGE_STEP], out, cap)
            at += _SALVAGE_STEP
    except brotli.error:
        stream, out = brotli.Decompressor(), bytearray()
        _feed_brotli(stream, data[:at], out, cap)
    try:
        for last in range(at, min(at + _SALVAGE_STEP, len(data))):
            if len(out) >= cap or stream.is_finished():
                break
            _feed_brotli(stream, data[last : last + 1], out, cap)
    except brotli.error:
        return out
    return out


def _unzstd(data: bytes, limit: int) -> tuple[bytes, bool]:
    step = max(65_536, 6 * len(data))
    pieces: list[bytes] = []
    try:
        size = _read_zstd(data, pieces, limit + 1, step, across=True)
    except zstandard.ZstdError as error:
        pieces = []
        try:  # rubbish after the first frame loses the output of its call: that frame alone, in small steps
            size = _read_zstd(data, pieces, limit + 1, _SALVAGE_STEP, across=False)
        except zstandard.ZstdError:
            size = sum(map(len, pieces))
        if not size:
            raise _BrokenError from error
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return body[:limit], size > limit


def _read_zstd(data: bytes, pieces: list[bytes], cap: int, step: int, *, across: bool) -> int:
    decoder = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    reader = decoder.stream_reader(data, read_across_frames=across)
    size = 0
    while size < cap and (piece := reader.read(min(step, cap - size))):
        pieces.append(piece)
        size += len(piece)
    return size


_CODINGS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
