"""The record of a takedown: one JSON file each in `takedowns/` of the crawl directory, or of a fleet's store.

It is written, whole and synced, before anything else is done: whatever is cut off is found there and carried out by
the next crawl or the next `nephila purge`. Numbers only grow; several processes may file takedowns at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec

from nephila.model.errors import StorageError, remedy

_NAME = re.compile(r"([0-9]{6,})\.json")
_LISTED_AT_ONCE = 1000
MOST_DIGITS = 20


class TakedownState(StrEnum):
    """How far it has come."""

    PENDING = "pending"
    """Blocked; what was stored is still to be taken out, or some of it."""
    DONE = "done"


class Rewritten(msgspec.Struct, frozen=True):
    """A file that was rewritten: what the receipt in the chain says of it."""

    file: str
    at: str
    was: str
    """SHA-256 of the whole file before."""
    now: str
    removed: int
    """Captures that were taken out; of an event file, 1 for all lines that were masked."""
    emptied: int = 0
    """Captures of other pages that had their payload from those."""


class Order(msgspec.Struct, frozen=True):
    """What somebody asks for."""

    urls: tuple[str, ...]
    domains: tuple[str, ...]
    reason: str
    who: str


class Takedown(msgspec.Struct, frozen=True):
    """One takedown."""

    id: str
    order: Order
    at: int
    """UTC milliseconds."""
    state: TakedownState = TakedownState.PENDING
    done_at: int = 0
    captures: int = 0
    """Captures that were taken out of the archive."""
    emptied: int = 0
    """Captures of other pages that had their payload from what was taken out, and have lost it."""
    files: tuple[Rewritten, ...] = ()
    head: str = ""
    """The head of the chain when all receipts were in it."""
    outside: tuple[str, ...] = ()
    """Where workers outside keep what they fetched of it: to be deleted there, by whoever can."""

    @property
    def why(self) -> str:
        """What receipts say: the number, and no word that somebody might want to have removed one day."""
        return f"takedown {self.id}"


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Takedown)


def is_number(text: str) -> bool:
    """Whether a takedown could be called so."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def encoded(takedown: Takedown) -> bytes:
    """As it is kept."""
    return _encoder.encode(takedown) + b"\n"


def decoded(data: bytes, number: str) -> Takedown:
    """The same read. Raises `StorageError`."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StorageError(f"the record of takedown {number} cannot be read: {error}") from error


class TakedownRecords(Protocol):
    """All takedowns of a crawl. Every call blocks, and may raise `StorageError`."""

    def add(self, order: Order, at: int) -> Takedown:
        """File one; durable when it returns."""

    def get(self, number: str) -> Takedown | None:
        """One by its id; None where there is none."""

    def newest(self, limit: int, before: str = "") -> list[Takedown]:
        """The last ones, the newest first."""

    def pending(self) -> list[Takedown]:
        """Those that are not carried out, the oldest first."""

    def count(self) -> int:
        """How many there are."""

    def save(self, takedown: Takedown) -> None:
        """Keep the record of one that is carried out."""


class TakedownFolder:
    """`TakedownRecords` of a crawl directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, bool] | None = None

    def add(self, order: Order, at: int) -> Takedown:
        """File one; durable when it returns. Raises `StorageError`."""
        try:
            self.path.mkdir(exist_ok=True)
            number = max((int(one) for one in self._numbers()), default=0) + 1
            while True:
                found = Takedown(f"{number:06d}", order, at)
                draft = self._draft(found)
                try:
                    os.link(draft, self._file(found.id))
                except FileExistsError:  # another process was faster
                    number += 1
                    continue
                finally:
                    draft.unlink(missing_ok=True)
                self._sync()
                _sync_folder(self.path.parent)
                return found
        except OSError as error:
            raise _refused(self.path, error) from error

    def save(self, takedown: Takedown) -> None:
        """Replace the record of one. Raises `StorageError`."""
        try:
            self._draft(takedown).replace(self._file(takedown.id))
            self._sync()
        except OSError as error:
            raise _refused(self.path, error) from error

    def get(self, number: str) -> Takedown | None:
        """One by its id; None where there is none."""
        if not is_number(number):
            return None
        try:
            return decoded(self._file(number).read_bytes(), number)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"the record of takedown {number} cannot be read: {error}") from error

    def newest(self, limit: int = _LISTED_AT_ONCE, before: str = "") -> list[Takedown]:
        """The last ones, the newest first."""
        numbers = [number for number in self._numbers() if not before or int(number) < int(before)]
        found = (self.get(number) for number in sorted(numbers, key=int, reverse=True)[:limit])
        return [one for one in found if one is not None]

    def pending(self) -> list[Takedown]:
        """Those that are not carried out, the oldest first. Nothing is read where nothing was changed."""
        try:
            changed = self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        if self._seen == (changed, False):
            return []
        found = [one for one in reversed(self.newest()) if one.state is TakedownState.PENDING]
        self._seen = (changed, bool(found))
        return found

    def count(self) -> int:
        """How many there are."""
        return len(self._numbers())

    def _numbers(self) -> list[str]:
        try:
            return [match[1] for path in self.path.iterdir() if (match := _NAME.fullmatch(path.name))]
        except FileNotFoundError:
            return []

    def _file(self, number: str) -> Path:
        return self.path / f"{int(number):06d}.json"

    def _draft(self, takedown: Takedown) -> Path:
        draft = self.path / f"{takedown.id}.{os.getpid()}.new"
        with draft.open("wb") as stream:
            stream.write(encoded(takedown))
            stream.flush()
            os.fsync(stream.fileno())
        return draft

    def _sync(self) -> None:
        _sync_folder(self.path)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}", hint=remedy(error))


def named(takedowns: Sequence[Takedown]) -> str:
    """Their ids in a sentence."""
    return ", ".join(one.id for one in takedowns)
