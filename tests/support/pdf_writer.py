"""Small PDFs of every structure that links are found in, written by hand.

A table or a stream of cross-references, object streams, three kinds of encryption under an empty password, and damage
of several kinds. The writer shares nothing with what reads: what it puts in is what must come out.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
"""ISO 32000-1, 7.6.3.3: what a password is filled up with."""
FILE_ID = bytes(range(16))


class Security(Enum):
    """How the file is encrypted; the user's password is empty in each."""

    NONE = "none"
    RC4_128 = "rc4-128"
    AES_128 = "aes-128"
    AES_256 = "aes-256"


@dataclass(frozen=True)
class PdfPage:
    """One page: its links as annotations, and lines of text."""

    annotations: Sequence[str] = ()
    """URIs; each becomes a link annotation with a URI action."""
    text: Sequence[str] = ()
    remote: Sequence[str] = ()
    """Files of GoToR actions, which lead to no web page."""
    kerned: bool = False
    """The text is written in pieces with gaps between them, as typesetters do."""
    raw_annotations: Sequence[bytes] = ()
    """Further annotation dictionaries as they stand."""


@dataclass(frozen=True)
class PdfShape:
    """How the file is written."""

    compressed: bool = False
    """Content streams are deflated."""
    object_streams: bool = False
    """All that can lie in object streams does, under a stream of cross-references."""
    security: Security = Security.NONE
    base: str = ""
    """The base of relative URIs, in the catalogue."""
    extra_catalogue: bytes = b""
    info_title: str = ""


@dataclass
class _Object:
    body: bytes
    stream: bytes | None = None
    strings: list[bytes] = field(default_factory=list)


def literal(text: bytes) -> bytes:
    """A string as PDF writes it."""
    return b"(" + text.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"


def make_pdf(pages: Sequence[PdfPage], shape: PdfShape = PdfShape()) -> bytes:  # noqa: B008 - frozen
    """The whole file."""
    return _Writer(pages, shape).write()


class _Writer:
    def __init__(self, pages: Sequence[PdfPage], shape: PdfShape) -> None:
        self._shape = shape
        self._objects: dict[int, _Object] = {}
        self._lock = _lock_of(shape.security)
        self._lay_out(pages)

    def _add(self, number: int, body: bytes, stream: bytes | None = None, strings: Sequence[bytes] = ()) -> None:
        """Strings stand in the body as ``%s``, because they are encrypted under the number of their object."""
        self._objects[number] = _Object(body, stream, list(strings))

    def _lay_out(self, pages: Sequence[PdfPage]) -> None:
        kids, number = [], 10
        for page in pages:
            own, content, annots = number, number + 1, number + 2
            number += 3
            kids.append(own)
            references = []
            for uri in page.annotations:
                self._add(
                    number,
                    b"<< /Type /Annot /Subtype /Link /Rect [10 10 90 20] /Border [0 0 0] /A %d 0 R >>" % (number + 1),
                )
                self._add(number + 1, b"<< /S /URI /URI %s >>", strings=[uri.encode()])
                references.append(number)
                number += 2
            for name in page.remote:
                body = b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /GoToR /F %s /D [0 /Fit] >> >>"
                self._add(number, body, strings=[name.encode()])
                references.append(number)
                number += 1
            for raw in page.raw_annotations:
                self._add(number, raw.replace(b"%", b"%%"))
                references.append(number)
                number += 1
            self._add(annots, b"[" + b" ".join(b"%d 0 R" % one for one in references) + b"]")
            drawn = _drawn(page)
            filters = b""
            if self._shape.compressed:
                drawn, filters = zlib.compress(drawn), b"/Filter /FlateDecode "
            self._add(content, b"<< " + filters + b"/Length %d >>", drawn)
            self._add(
                own,
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R /Annots %d 0 R "
                b"/Resources << /Font << /F1 3 0 R >> >> >>" % (content, annots),
            )
        extra, strings = self._shape.extra_catalogue.replace(b"%", b"%%"), []
        if self._shape.base:
            extra += b" /URI << /Base %s >>"
            strings.append(self._shape.base.encode())
        self._add(1, b"<< /Type /Catalog /Pages 2 0 R " + extra + b" >>", strings=strings)
        listed = b" ".join(b"%d 0 R" % one for one in kids)
        self._add(2, b"<< /Type /Pages /Count %d /Kids [" % len(kids) + listed + b"] >>")
        self._add(3, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
        if self._shape.info_title:
            self._add(5, b"<< /Title %s >>", strings=[self._shape.info_title.encode()])

    def write(self) -> bytes:
        out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        offsets: dict[int, int] = {}
        inside: dict[int, tuple[int, int]] = {}
        packed = self._packed() if self._shape.object_streams else []
        for at, number in enumerate(packed):
            inside[number] = (4, at)
        for number, one in sorted(self._objects.items()):
            if number not in inside:
                offsets[number] = len(out)
                out += self._spelled(number, one)
        if packed:
            offsets[4] = len(out)
            out += self._object_stream(packed)
        if self._lock is not None:
            offsets[6] = len(out)
            out += b"6 0 obj\n" + self._lock.dictionary() + b"\nendobj\n"
        trailer = b"/Root 1 0 R /ID [<%b> <%b>]" % ((FILE_ID.hex().encode(),) * 2)
        trailer += b" /Info 5 0 R" if self._shape.info_title else b""
        trailer += b" /Encrypt 6 0 R" if self._lock is not None else b""
        start = len(out)
        size = max([*self._objects, 7]) + 1
        if self._shape.object_streams:
            out += self._reference_stream(offsets, inside, size, start, trailer)
        else:
            out += _reference_table(offsets, size) + b"trailer\n<< /Size %d " % size + trailer + b" >>\n"
        return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)

    def _packed(self) -> list[int]:
        return sorted(number for number, one in self._objects.items() if one.stream is None)

    def _body(self, number: int, one: _Object, *, plain: bool = False) -> bytes:
        texts = one.strings
        if self._lock is not None and not plain:
            return one.body % tuple(b"<" + self._lock.encrypt(number, text).hex().encode() + b">" for text in texts)
        return one.body % tuple(literal(text) for text in texts)

    def _spelled(self, number: int, one: _Object) -> bytes:
        if one.stream is None:
            return b"%d 0 obj\n" % number + self._body(number, one) + b"\nendobj\n"
        stream = one.stream if self._lock is None else self._lock.encrypt(number, one.stream)
        return b"%d 0 obj\n" % number + one.body % len(stream) + b"\nstream\n" + stream + b"\nendstream\nendobj\n"

    def _object_stream(self, packed: Sequence[int]) -> bytes:
        """Object 4. Strings in it are not encrypted by themselves: the stream is, as a whole."""
        head, bodies = b"", b""
        for number in packed:
            head += b"%d %d " % (number, len(bodies))
            bodies += self._body(number, self._objects[number], plain=True) + b" "
        data = zlib.compress(head + bodies)
        data = data if self._lock is None else self._lock.encrypt(4, data)
        first = b"<< /Type /ObjStm /N %d /First %d /Filter /FlateDecode /Length %d >>" % (
            len(packed),
            len(head),
            len(data),
        )
        return b"4 0 obj\n" + first + b"\nstream\n" + data + b"\nendstream\nendobj\n"

    def _reference_stream(
        self, offsets: dict[int, int], inside: dict[int, tuple[int, int]], size: int, start: int, trailer: bytes
    ) -> bytes:
        offsets[7] = start
        rows = bytearray()
        for number in range(size):
            if number in inside:
                rows += struct.pack(">BIH", 2, *inside[number])
            elif number in offsets:
                rows += struct.pack(">BIH", 1, offsets[number], 0)
            else:
                rows += struct.pack(">BIH", 0, 0, 65535 if number == 0 else 0)
        data = zlib.compress(bytes(rows))
        head = b"<< /Type /XRef /Size %d /W [1 4 2] /Filter /FlateDecode /Length %d " % (size, len(data))
        return b"7 0 obj\n" + head + trailer + b" >>\nstream\n" + data + b"\nendstream\nendobj\n"


def _drawn(page: PdfPage) -> bytes:
    lines = [b"BT /F1 10 Tf 12 TL 20 780 Td"]
    for line in page.text:
        raw = line.encode("latin-1")
        if page.kerned:
            pieces = [raw[at : at + 5] for at in range(0, len(raw), 5)]
            lines.append(b"[" + b" -8 ".join(map(literal, pieces)) + b"] TJ T*")
        else:
            lines.append(literal(raw) + b" Tj T*")
    return b"\n".join([*lines, b"ET"])


def _reference_table(offsets: dict[int, int], size: int) -> bytes:
    out = b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        kind = b"n" if number in offsets else b"f"
        out += b"%010d 00000 %b \n" % (offsets.get(number, 0), kind)
    return out


# Encryption: ISO 32000-1, 7.6, and ISO 32000-2, 7.6.4 for AES-256


class _Lock:
    def __init__(self, security: Security) -> None:
        self._security = security
        permissions = struct.pack("<i", -4)
        if security is Security.AES_256:
            self._key = hashlib.sha256(b"a file key of our own").digest()
            return
        self._owner = _owner_entry()
        digest = hashlib.md5(PAD + self._owner + permissions + FILE_ID, usedforsecurity=False).digest()
        for _ in range(50):
            digest = hashlib.md5(digest, usedforsecurity=False).digest()
        self._key = digest

    def encrypt(self, number: int, data: bytes) -> bytes:
        if self._security is Security.AES_256:
            return _aes(self._key, data)
        salt = b"sAlT" if self._security is Security.AES_128 else b""
        own = hashlib.md5(self._key + struct.pack("<I", number)[:3] + b"\0\0" + salt, usedforsecurity=False).digest()
        return _aes(own, data) if salt else rc4(own, data)

    def dictionary(self) -> bytes:
        if self._security is Security.AES_256:
            return self._dictionary_256()
        digest = hashlib.md5(PAD + FILE_ID, usedforsecurity=False).digest()
        user = rc4(self._key, digest)
        for turn in range(1, 20):
            user = rc4(bytes(byte ^ turn for byte in self._key), user)
        entries = b"/O <%b> /U <%b> /P -4" % (self._owner.hex().encode(), (user + bytes(16)).hex().encode())
        if self._security is Security.RC4_128:
            return b"<< /Filter /Standard /V 2 /R 3 /Length 128 " + entries + b" >>"
        filters = b"/CF << /StdCF << /CFM /AESV2 /AuthEvent /DocOpen /Length 16 >> >> /StmF /StdCF /StrF /StdCF "
        return b"<< /Filter /Standard /V 4 /R 4 /Length 128 " + filters + entries + b" >>"

    def _dictionary_256(self) -> bytes:
        validation, key_salt = b"validate", b"key-salt"
        user = _hash_r6(validation, b"") + validation + key_salt
        user_key = _aes_plain(_hash_r6(key_salt, b""), self._key)
        owner = hashlib.sha256(b"nobody knows").digest() + b"ownerval" + b"ownerkey"
        owner_key = bytes(32)
        told = struct.pack("<i", -4) + b"\xff\xff\xff\xffTadb" + b"nice"
        sealed = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()  # noqa: S305 - as the standard says
        permissions = sealed.update(told) + sealed.finalize()
        entries = {b"O": owner, b"U": user, b"OE": owner_key, b"UE": user_key, b"Perms": permissions}
        spelled = b" ".join(b"/%b <%b>" % (name, value.hex().encode()) for name, value in entries.items())
        filters = b"/CF << /StdCF << /CFM /AESV3 /AuthEvent /DocOpen /Length 32 >> >> /StmF /StdCF /StrF /StdCF "
        return b"<< /Filter /Standard /V 5 /R 6 /Length 256 /P -4 " + filters + spelled + b" >>"


def _lock_of(security: Security) -> _Lock | None:
    return None if security is Security.NONE else _Lock(security)


def _owner_entry() -> bytes:
    digest = PAD
    for _ in range(51):
        digest = hashlib.md5(digest, usedforsecurity=False).digest()
    entry = rc4(digest, PAD)
    for turn in range(1, 20):
        entry = rc4(bytes(byte ^ turn for byte in digest), entry)
    return entry


def rc4(key: bytes, data: bytes) -> bytes:
    """The stream cipher of old PDFs."""
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) & 255
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) & 255
        j = (j + state[i]) & 255
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) & 255])
    return bytes(out)


def _aes(key: bytes, data: bytes) -> bytes:
    start = hashlib.md5(key + data, usedforsecurity=False).digest()
    padding = 16 - len(data) % 16
    lock = Cipher(algorithms.AES(key), modes.CBC(start)).encryptor()
    return start + lock.update(data + bytes([padding]) * padding) + lock.finalize()


def _aes_plain(key: bytes, data: bytes) -> bytes:
    lock = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    return lock.update(data) + lock.finalize()


def _hash_r6(salt: bytes, password: bytes) -> bytes:
    """ISO 32000-2, algorithm 2.B, for the user's password."""
    known, turn = hashlib.sha256(password + salt).digest(), 0
    while True:
        lock = Cipher(algorithms.AES(known[:16]), modes.CBC(known[16:32])).encryptor()
        sealed = lock.update((password + known) * 64) + lock.finalize()
        name = ("sha256", "sha384", "sha512")[sum(sealed[:16]) % 3]
        known = hashlib.new(name, sealed).digest()
        turn += 1
        if turn >= 64 and sealed[-1] <= turn - 32:
            return known[:32]


# Damage


def without_references(pdf: bytes) -> bytes:
    """The table of cross-references, the trailer and all after them are gone."""
    return pdf[: pdf.rindex(b"xref\n0 ")] if b"xref\n0 " in pdf else pdf[: pdf.rindex(b"startxref")]


def with_wrong_offsets(pdf: bytes, shift: int = 7) -> bytes:
    """As a file that somebody edited by hand: bytes in front, and a startxref that points nowhere."""
    head, _, rest = pdf.rpartition(b"startxref\n")
    number = int(rest.split(b"\n", 1)[0])
    return head + b"startxref\n%d\n%%%%EOF\n" % (number + shift)


def with_garbage_in_front(pdf: bytes) -> bytes:
    """As a server sends it that prints something first."""
    return b"<!-- generated -->\r\n\r\n" + pdf


def with_wrong_lengths(pdf: bytes) -> bytes:
    """Stream lengths that lie."""
    return pdf.replace(b"/Length ", b"/Length 9", 1) if b"/Length " in pdf else pdf


def cut(pdf: bytes, share: float = 0.9) -> bytes:
    """The end did not arrive."""
    return pdf[: int(len(pdf) * share)]
