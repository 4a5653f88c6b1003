"""The header block of an answer: where it ends, what it says, and how the body after it is framed.

Read by libcurl's rules, which decades of bad servers have shaped; the conformance tests hold them against libcurl
itself. llhttp, with every leniency on, disagrees with libcurl on 27 % of the same raw answers and cannot tell where
a message ended, so the reading is our own. Lenient: bare LF, folded lines, odd names, a missing reason, repeated equal
Content-Length. Strict, because the alternatives smuggle: NUL and bare CR, a line without a colon, Content-Length
values that differ or are no numbers, any transfer coding but ``chunked`` at the end. The block itself is kept verbatim
by the caller.

Nearly all blocks are ordinary ones that come in one piece. The extension reads these in one call (`open_answer`); what
it leaves alone is read here, step by step.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nephila.native import AVAILABLE, native

_STATUS_LINE = re.compile(r"HTTP/(1\.[01]|2\.0)[ \t](\d\d\d)", re.IGNORECASE)
"""Three digits are all that is asked after the version; ``HTTP/2.0`` is what some servers call 1.1."""

_PREFIX = b"HTTP/"

_END = re.compile(rb"\n(?:\n|\r[^\n]*\n)")
"""A line that begins with CR or LF ends the block, as in libcurl."""

_LARGEST_LENGTH = 2**63 - 1
"""A Content-Length over this is taken for none at all, as in libcurl."""

_BLANK = " \t"

Headers = tuple[tuple[str, str], ...]

_NOTED = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
    }
)
"""Headers that the fetcher itself acts on: noted while reading, so that nobody searches for them again."""

_NONE: list[str] = []


class Head(NamedTuple):
    """Status line and headers, names in lower case, values without surrounding blanks, in order."""

    status: int
    version: str
    headers: Headers
    noted: dict[str, list[str]]

    def values(self, name: str) -> list[str]:
        """All values of a header that is noted."""
        return self.noted.get(name, _NONE)

    @property
    def says_all(self) -> bool:
        """Whether the answer is one whatever its body is: an error, a redirect, a wish to be asked later."""
        return not 200 <= self.status < 300


Opening = tuple[int, Head, bool, int | None, bool]
"""The offset after a header block, what it says, chunked, the body's length, whether the connection can be kept."""


class Malformed(NamedTuple):
    """What came is no HTTP, and why."""

    detail: str


class Framing(NamedTuple):
    """How the body ends: by chunks, after `length` bytes, or (neither) when the connection does."""

    chunked: bool = False
    length: int | None = None


def begins_like_http(data: bytes | bytearray) -> bool:
    """Whether these first bytes may still become a status line."""
    return data[:5].upper() == _PREFIX[: len(data)]


def find_end(data: bytes | bytearray, start: int = 0) -> int:
    """Where the header block ends (the offset after its empty line), or -1; `start` is a line feed already seen."""
    found = _END.search(data, start)
    return found.end() if found else -1


def read_head(block: bytes) -> Head | Malformed:
    """Read a whole block, its empty line included."""
    if block.endswith(b"\r\n\r\n"):
        return _read_lines(block[:-2])
    last = _END.search(block)
    return _read_lines(block[: last.start() + 1] if last else block)


def read_broken_head(block: bytes) -> Head | Malformed | None:
    """Read a block that the end of the connection cut short; None when not even the status line is whole.

    libcurl accepts such an answer. A last line that makes no sense is not held against the server: it is the cut.
    """
    whole = block[: block.rfind(b"\n") + 1]
    if not whole:
        return None
    head = _read_lines(whole)
    if isinstance(head, Malformed) and whole.count(b"\n") > 1 and len(whole) == len(block):
        return _read_lines(whole[: whole.rfind(b"\n", 0, -1) + 1])
    return head


def _read_lines(block: bytes) -> Head | Malformed:
    if b"\0" in block:
        return Malformed("NUL byte in the header block")
    if block.count(b"\r") != block.count(b"\r\n"):
        return Malformed("bare carriage return in the header block")
    text = block.decode("latin-1").replace("\r\n", "\n")
    status = _STATUS_LINE.match(text)
    if status is None or status[2] < "100":
        return Malformed(f"not a status line: {text[:60]!r}")
    first = text.index("\n") + 1
    fields = _FIELD.findall(text, first)
    if len(fields) != text.count("\n", first) or _is_odd(text):
        found = _read_odd_fields(text.split("\n")[1:-1])
        if isinstance(found, Malformed):
            return found
        fields = found
    headers = tuple([(name.lower(), value) for name, value in fields])
    noted: dict[str, list[str]] = {}
    for name, value in headers:
        if name in _NOTED:
            noted.setdefault(name, []).append(value)
    return Head(int(status[2]), status[1], headers, noted)


_FIELD = re.compile(r"^([^:\n]*+):[ \t]*+([^\n]*+)\n", re.MULTILINE)
"""All fields of a block in one call, where every line is an ordinary one: this runs for every page. A line is tried
from its beginning only: one without a colon may be as long as a block."""


def _is_odd(text: str) -> bool:
    """Whether a line begins or ends with a blank."""
    return " \n" in text or "\t\n" in text or "\n " in text or "\n\t" in text


def _read_odd_fields(lines: list[str]) -> list[tuple[str, str]] | Malformed:
    """The same, line by line, for blocks with folded lines, blanks at line ends or lines that are no fields."""
    fields = []
    for line in _unfolded(lines):
        name, colon, value = line.partition(":")
        if not colon:
            return Malformed(f"header line without a colon: {line[:60]!r}")
        fields.append((name, value.strip(_BLANK)))
    return fields


def _unfolded(lines: list[str]) -> list[str]:
    """Lines that begin with a blank joined to the one before (RFC 9112 5.2); the first one has none before it."""
    joined = lines[:1]
    for line in lines[1:]:
        if line[0] in _BLANK:
            joined[-1] = f"{joined[-1].rstrip(_BLANK)} {line.strip(_BLANK)}"
        else:
            joined.append(line)
    return joined


def framing_of(head: Head) -> Framing | Malformed:
    """How the body of this answer to a GET is framed (RFC 9112 6.3, by libcurl's reading)."""
    if head.status in {204, 304}:  # no body, whatever they say of its length
        return Framing(length=0)
    if head.status == 101:  # nobody asked for it: libcurl takes all that follows for the body
        return Framing()
    lengths = head.noted.get("content-length")
    length = _agreed_length(",".join(lengths).split(",")) if lengths else None
    if isinstance(length, Malformed):
        return length
    if "transfer-encoding" in head.noted:
        # Line by line: behind ``chunked`` there must not be a coding, but a line that says ``identity`` says nothing.
        said = [_is_chunked(value.lower().split(",")) for value in head.values("transfer-encoding")]
        odd = next((one for one in said if isinstance(one, Malformed)), None)
        if odd is not None:
            return odd
        if True in said:
            return Framing(chunked=True)
    return Framing(length=length)


def _agreed_length(values: list[str]) -> int | Malformed | None:
    """The one number that all values name; None when it is beyond all reason."""
    numbers = set()
    for value in values:
        digits = value.strip(_BLANK)
        if not (digits.isascii() and digits.isdigit()):
            return Malformed(f"Content-Length is no number: {value[:40]!r}")
        numbers.add(digits.lstrip("0") or "0")
    if len(numbers) > 1:
        return Malformed("Content-Length given twice, and differently")
    digits = numbers.pop()
    if len(digits) > 19 or int(digits) > _LARGEST_LENGTH:
        return None
    return int(digits)


def _is_chunked(codings: list[str]) -> bool | Malformed:
    chunked = False
    for coding in codings:
        name = coding.strip(_BLANK)
        if name == "chunked":
            chunked = True
        elif name == "identity" and not chunked:
            continue
        elif name:
            return Malformed(f"transfer coding {name[:40]!r} that was not asked for")
    return chunked


def keeps_alive(head: Head, framing: Framing) -> bool:
    """Whether the server promises to keep the connection open after this answer (RFC 9112 9.3)."""
    if not framing.chunked and framing.length is None:
        return False
    values = head.values("connection") + head.values("proxy-connection")
    options = [option.strip(_BLANK) for value in values for option in value.lower().split(",")] if values else values
    if "close" in options:
        return False
    return head.version == "1.1" or "keep-alive" in options


def promised_idle_s(head: Head) -> float | None:
    """The seconds of ``Keep-Alive: timeout=N``, None when the server does not say."""
    for value in head.values("keep-alive"):
        found = _KEEP_ALIVE_TIMEOUT.search(value)
        if found:
            return float(found[1])
    return None


def plain_open_answer(data: bytes, _: type[Head]) -> Opening | None:
    """A final answer whose header block is whole and says how the body ends; None where there is more to it."""
    end = find_end(data)
    head = read_head(data[:end]) if end >= 0 else None
    if not isinstance(head, Head) or head.status < 200:
        return None
    framing = framing_of(head)
    if isinstance(framing, Malformed):
        return None
    return end, head, framing.chunked, framing.length, keeps_alive(head, framing)


open_answer = native.open_answer if AVAILABLE else plain_open_answer

_KEEP_ALIVE_TIMEOUT = re.compile(r"timeout\s*=\s*(\d{1,6})", re.IGNORECASE | re.ASCII)
