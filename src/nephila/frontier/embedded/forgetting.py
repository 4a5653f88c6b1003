"""Forgetting what captures left behind that were taken out of the archive (K2).

The URL itself stays known, for that is what keeps it from being taken for a new one; that it is not asked for again is
the matter of its block. What goes is where its capture lay, what it said (its digest) and what its server said of it
(validators). A URL whose capture stays, but whose payload was that of another one, keeps its place and loses digest and
validators: it is asked for in full the next time.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .book import Book
from .coding import pack, read_url
from .marks import PARKED
from .origins import put_note
from .records import CaptureNote

Named = Sequence[tuple[str, bytes]]
"""Hosts and fingerprints."""

TAKEN_DOWN = "taken_down"


def forget(book: Book, gone: Named, emptied: Named, origins: Sequence[str]) -> None:
    """Forget captures that are `gone`, contents that are `emptied`, and the rules of origins, which are asked anew."""
    for host, fingerprint in gone:
        _change(book, host, fingerprint, taken_down=True)
    for host, fingerprint in emptied:
        _change(book, host, fingerprint, taken_down=False)
    for origin in origins:
        put_note(book, origin, None)
        book.txn.delete(origin.encode(), db=book.db["rules"])


def _change(book: Book, host: str, fingerprint: bytes, *, taken_down: bool) -> None:
    url_key = book.tables.url_key(host, fingerprint)
    raw = book.txn.get(url_key)
    if raw is None or raw[0] <= PARKED:
        return
    record = read_url(raw)
    fate = record.fate
    if fate is None or fate.capture is None:
        return
    if taken_down:
        fate.capture = CaptureNote(fate.capture.status, "", -1, 0, count=fate.capture.count, page=fate.capture.page)
        fate.reason, fate.detail, fate.trail = TAKEN_DOWN, "", ()
    else:
        fate.capture = replace(fate.capture, digest=b"", etag="", last_modified="")
    book.txn.put(url_key, pack(record))
