"""The records of a fleet's takedowns: in the store, beside the archive that they change (K2).

    PREFIX/takedowns/000007.json         the order, there before anything else is done
    PREFIX/takedowns/000007.done.json    what came of it, and the proof

Both are made once and never changed: two who file at the same moment get different numbers, for the store lets only one
of them make an object. A takedown without the second object is one that is to be carried out.
"""

from __future__ import annotations

import asyncio
import re
from hashlib import sha256

from nephila.interfaces.objects import ObjectBody, ObjectStore
from nephila.model.errors import ObjectExistsError, StorageError
from nephila.node.takedown import Order, Takedown
from nephila.node.takedown.record import decoded, encoded, is_number
from nephila.store import ArchivePlace

FOLDER = "takedowns"
_NAME = re.compile(r"([0-9]{6,})(\.done)?\.json")
_READ_BYTES = 64 << 20
_LISTED_AT_ONCE = 1000


class TakedownObjects:
    """`TakedownRecords` in a store of objects. Not for a loop that runs."""

    def __init__(self, objects: ObjectStore, place: ArchivePlace) -> None:
        self._objects = objects
        self._place = place

    def add(self, order: Order, at: int) -> Takedown:
        """As the protocol."""
        number = max((int(one) for one in self._listed()), default=0) + 1
        while True:
            filed = Takedown(f"{number:06d}", order, at)
            if self._made(self._key(filed.id), encoded(filed)):
                return filed
            number += 1

    def save(self, takedown: Takedown) -> None:
        """As the protocol; the first who says so is believed."""
        self._made(self._key(takedown.id, done=True), encoded(takedown))

    def get(self, number: str) -> Takedown | None:
        """As the protocol."""
        if not is_number(number):
            return None
        for done in (True, False):
            if (data := self._read(self._key(number, done=done))) is not None:
                return decoded(data, number)
        return None

    def newest(self, limit: int = _LISTED_AT_ONCE, before: str = "") -> list[Takedown]:
        """As the protocol."""
        numbers = [number for number in self._listed() if not before or int(number) < int(before)]
        found = (self.get(number) for number in sorted(numbers, key=int, reverse=True)[:limit])
        return [one for one in found if one is not None]

    def pending(self) -> list[Takedown]:
        """As the protocol."""
        waiting = sorted((number for number, done in self._listed().items() if not done), key=int)
        found = (self.get(number) for number in waiting)
        return [one for one in found if one is not None]

    def count(self) -> int:
        """As the protocol."""
        return len(self._listed())

    def look(self) -> str:
        """What they look like: other when one was filed or carried out."""
        return "".join(f"{number} {done:d}\n" for number, done in sorted(self._listed().items()))

    def _listed(self) -> dict[str, bool]:
        """Numbers, and whether each is carried out."""
        prefix = self._place.key(f"{FOLDER}/")
        found: dict[str, bool] = {}
        for key in asyncio.run(self._objects.keys(prefix)):
            if match := _NAME.fullmatch(key.removeprefix(prefix)):
                found[match[1]] = found.get(match[1], False) or match[2] is not None
        return found

    def _key(self, number: str, *, done: bool = False) -> str:
        return self._place.key(f"{FOLDER}/{int(number):06d}{'.done' if done else ''}.json")

    def _made(self, key: str, data: bytes) -> bool:
        """Whether the object under this key is this one: an answer that was lost has it made all the same."""
        body = ObjectBody(len(data), sha256(data).hexdigest(), lambda offset, size: data[offset : offset + size])
        try:
            asyncio.run(self._objects.create(key, body))
        except ObjectExistsError:
            return self._read(key) == data
        return True

    def _read(self, key: str) -> bytes | None:
        try:
            return self._objects.read(key, 0, _READ_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{key} cannot be read: {error.strerror or error}") from error
