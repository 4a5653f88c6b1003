"""Numbered lines of text out of bytes that somebody else wrote, in bounded memory.

Lists of seeds come from editors, spreadsheets and shells: with a byte order mark or without, CRLF, LF or a lone CR
(spreadsheets on a Mac), UTF-8 or latin-1, and sometimes what was named is a directory, a picture or a compressed file.
Each line is decoded by itself, as UTF-8 and else as latin-1 (which never fails), so that one bad byte spoils one line
at most. What cannot be a list at all is a `UsageError` that says what it is; for a regular file that is found out at
construction, before anything is read.

No line longer than `MAX_LINE_BYTES` is ever held: its end is passed over, and its beginning, being longer than any
allowed URL, is refused as too long further on.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from nephila.model.errors import UsageError

MAX_LINE_BYTES = 131_072
"""Twice the highest limit that a URL may be given (65,536 characters)."""

_PIECE = 65_536
_SNIFFED_BYTES = 8192
_UTF8_MARK = b"\xef\xbb\xbf"
_SIGNATURES = (
    (b"\xff\xfe", "is UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
    (b"\x1f\x8b", "is compressed with gzip", "unpack it first, e.g. gunzip -c FILE | nephila crawl --seeds - ..."),
    (
        b"\x28\xb5\x2f\xfd",
        "is compressed with zstd",
        "unpack it first, e.g. zstdcat FILE | nephila crawl --seeds - ...",
    ),
    (b"BZh", "is compressed with bzip2", "unpack it first, e.g. bzcat FILE | nephila crawl --seeds - ..."),
    (b"\xfd7zXZ", "is compressed with xz", "unpack it first, e.g. xzcat FILE | nephila crawl --seeds - ..."),
    (b"PK\x03\x04", "is a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    (b"%PDF", "is a PDF", "give a text file with one URL or domain a line"),
)


class NumberedLines(Protocol):
    """Lines with their numbers, counted from 1, and how people call what they stand in."""

    @property
    def name(self) -> str:
        """For the origin of seeds: ``file list.txt``, ``standard input``."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Number and text, line ends included; streaming."""


class StreamLines:
    """Lines of an open stream, e.g. standard input. It is the caller's to close."""

    def __init__(self, stream: io.BufferedReader, name: str = "standard input") -> None:
        self.name = name
        self._stream = stream

    def __iter__(self) -> Iterator[tuple[int, str]]:
        try:
            _refuse_binary(self._stream.peek(_SNIFFED_BYTES), self.name)
            yield from _numbered(self._stream)
        except OSError as error:
            raise _unreadable(self.name, error) from error


class FileLines:
    """Lines of a file, opened for as long as it is read. A pipe (``<(command)``) is as good as a file."""

    def __init__(self, path: Path) -> None:
        self.name = f"file {path.name}"
        self._path = path
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                raise UsageError(f"{path} is a directory, not a list of seeds", "name a file in it")
            if stat.S_ISREG(mode):
                # A pipe is not looked into: what is read from it here would be lost to the reader.
                with path.open("rb") as stream:
                    _refuse_binary(stream.read(_SNIFFED_BYTES), str(path))
        except OSError as error:
            raise _unreadable(str(path), error) from error

    def __iter__(self) -> Iterator[tuple[int, str]]:
        try:
            with self._path.open("rb") as stream:
                yield from StreamLines(stream, str(self._path))
        except OSError as error:
            raise _unreadable(str(self._path), error) from error


def _numbered(stream: io.BufferedReader) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_bounded(stream), start=1):
        yield number, _decoded(line.removeprefix(_UTF8_MARK) if number == 1 else line)


def _bounded(stream: io.BufferedReader) -> Iterator[bytes]:
    """Lines with their ends, as soon as they have come; of one that is too long, its beginning."""
    rest, too_long, going = b"", False, True
    while going:
        piece = stream.read1(_PIECE)
        going = bool(piece)
        lines = (rest + piece).splitlines(keepends=True)
        # What has no end yet; and a CR at the end may be half of a CRLF.
        rest = lines.pop() if going and lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            if not too_long:
                yield line[:MAX_LINE_BYTES]
            too_long = False
        if len(rest) > MAX_LINE_BYTES or too_long:
            if not too_long:
                yield rest[:MAX_LINE_BYTES]
            too_long = True
            rest = rest[-1:] if rest.endswith(b"\r") else b""


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _refuse_binary(head: bytes, name: str) -> None:
    for signature, what, hint in _SIGNATURES:
        if head.startswith(signature):
            raise UsageError(f"{name} {what}, not a list of seeds", hint)
    if b"\0" in head:
        raise UsageError(f"{name} is a binary file, not a list of seeds", "give a text with one URL or domain a line")


def _unreadable(name: str, error: OSError) -> UsageError:
    hint = "check the name" if isinstance(error, FileNotFoundError) else "check that it can be read"
    return UsageError(f"the seeds in {name} cannot be read: {error.strerror or error}", hint)
