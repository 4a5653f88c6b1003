"""The journal: what groups of verbs have written since the store's last commit, made durable group by group.

Why it exists: a commit of LMDB writes every page of the store that it has touched, all over the file, and syncs twice.
At a thousand pages of the web a second, sixty such commits wrote 40 MB a second, and whoever waited for the disk was
late (docs/decisions/0048). A record of the journal has keys and values alone, behind those before it: a tenth of the
bytes, in a row. So the store's transaction stays open over many groups, and a group is durable when its record is.

How it works: a record belongs to the transaction of the store that is open while it is written, and carries its number,
which LMDB counts up by one with every commit. Whoever begins a transaction that the journal has records of finds what
somebody acknowledged and died before committing, and writes it again (`writing`). Records of earlier transactions are
in the store, and mean nothing any more: they are cut off when the file has grown, not after every commit.

What must stay true: a record is whole or it is not there (length and checksum, the latter seeded with the crawl's
secret and the record's place); records of a transaction are numbered without a gap. After a write or a sync that
failed, what may be left of the record is cut off before anybody is told of the failure; and whatever is found in the
file then is written into the store before anything else is, so that nothing is ever appended behind a record that
nobody can read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from xxhash import xxh3_64_intdigest

from nephila.engines.disk import Disk, DiskFile
from nephila.model.errors import FrontierError

FILE_NAME = "journal"
CUT_ABOVE_BYTES = 4 << 20
"""The journal is cut when it has grown to this, at the next commit: some thousand pages of the web."""

_HEADER = struct.Struct("<QIIQ")
"""Transaction, number in it, length, checksum."""

Change = tuple[int, dict[bytes, bytes | None]]
"""What lies under some keys of a database by now, and the number of that database; None where nothing does."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Change]).decode


class Journal:
    """The journal of one store. Every call may raise OSError."""

    def __init__(self, disk: Disk, folder: Path, secret: int) -> None:
        self._disk, self._folder, self._secret = disk, folder, secret
        self._file: DiskFile | None = None
        self._end = 0
        """Where the next record goes: behind the last one that is whole."""

    def exists(self) -> bool:
        """Whether somebody has kept one."""
        return FILE_NAME in self._disk.names(self._folder)

    def _opened(self) -> DiskFile:
        """The file, for writing, made where there is none; what is left of a torn record is cut off."""
        if self._file is not None:
            return self._file
        if self.exists():
            file = self._disk.open(self._folder / FILE_NAME)
        else:
            file = self._disk.create(self._folder / FILE_NAME)
            self._disk.sync_directory(self._folder)
        self._file, self._end = file, 0
        for *_, end in self._records(file):
            self._end = end
        if file.size() > self._end:
            file.truncate(self._end)
        return file

    def append(self, transaction: int, number: int, changes: Sequence[Change]) -> int:
        """Make a record durable; its bytes."""
        file = self._opened()
        payload = _encode(changes)
        record = _HEADER.pack(transaction, number, len(payload), self._sum(transaction, number, payload)) + payload
        try:
            file.append(record)
            file.sync()
        except OSError:
            with suppress(OSError):  # a disk that refuses that, too: the file is looked through when it is opened anew
                file.truncate(self._end)
                file.sync()
            self.close()
            raise
        self._end += len(record)
        return len(record)

    def records(self, transaction: int) -> list[list[Change]]:
        """What was made durable of a transaction, in the order in which it was."""
        if self._file is not None:
            return self._of(self._file, transaction)
        if not self.exists():
            return []
        file = self._disk.open(self._folder / FILE_NAME)
        try:
            return self._of(file, transaction)
        finally:
            file.close()

    def committed(self) -> None:
        """All that it holds is in the store: it begins anew where it has grown."""
        if self._end > CUT_ABOVE_BYTES:
            self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what it holds. Only for the process that writes to it; its folder may have been moved meanwhile."""
        if self._file is not None or self.exists():
            self._opened().truncate(0)
            self._end = 0

    def take_over(self) -> None:
        """Forget what it holds, whoever wrote it: a turn of this process begins, and all of it is in the store."""
        file = self._opened()
        if file.size():
            file.truncate(0)
        self._end = 0

    def close(self) -> None:
        """Close it; it can be opened again."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what counts was synced
                file.close()

    def _of(self, file: DiskFile, transaction: int) -> list[list[Change]]:
        found: list[list[Change]] = []
        for its, number, payload, _ in self._records(file):
            if its == transaction and number == len(found):
                try:
                    found.append(_decode(payload))
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    raise FrontierError(
                        "the frontier's journal holds what this version of nephila cannot read",
                        hint="use the version that wrote it",
                    ) from error
        return found

    def _records(self, file: DiskFile) -> Iterator[tuple[int, int, bytes, int]]:
        """Every whole record from the beginning on, with the place where it ends."""
        place, size = 0, file.size()
        while len(head := file.read_at(place, _HEADER.size)) == _HEADER.size:
            transaction, number, length, checksum = _HEADER.unpack(head)
            if place + _HEADER.size + length > size:
                return
            payload = file.read_at(place + _HEADER.size, length)
            if self._sum(transaction, number, payload) != checksum:
                return
            place += _HEADER.size + length
            yield transaction, number, payload, place

    def _sum(self, transaction: int, number: int, payload: bytes) -> int:
        return xxh3_64_intdigest(payload, (self._secret + transaction * 0x9E3779B97F4A7C15 + number) & (2**64 - 1))
