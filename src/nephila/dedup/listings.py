"""What sitemaps and feeds have shown, kept in memory or in the environment of what was learned (X3).

One table, keyed by a letter for what it is and the fingerprint, host or writer that it is about. Several processes may
write: each adds to totals of its own, and what two of them learn of a host in the same second may cost one of the two
observations, never more.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TypeVar

import msgspec

from nephila.model.listing import ListedNote, ListNote, ListTotals, SiteTrust
from nephila.urls import Fingerprint

from .learned import LearnedEnvironment
from .travelling import TravellingNotes
from .untold import Untold

Note = ListNote | ListedNote | SiteTrust | ListTotals
N = TypeVar("N", bound=Note)

_LETTERS: dict[type, bytes] = {ListNote: b"l", ListedNote: b"u", SiteTrust: b"h", ListTotals: b"t"}
_pack = msgspec.msgpack.Encoder().encode
_NOTHING = SiteTrust()


MISSED = 16_384
"""Names that nothing is known of, remembered until the next flush: a page asks for its own twice."""


def _key(note: type, key: Fingerprint | str) -> bytes:
    return _LETTERS[note] + (key.encode() if isinstance(key, str) else key)


class MemoryListings:
    """In memory, for simulations and tests."""

    def __init__(self) -> None:
        self._known: dict[bytes, Note] = {}
        self._totals = ListTotals()

    def list_of(self, fingerprint: Fingerprint) -> ListNote | None:
        """As the interface."""
        return self._find(ListNote, fingerprint)

    def listed(self, fingerprint: Fingerprint) -> ListedNote | None:
        """As the interface."""
        return self._find(ListedNote, fingerprint)

    def site(self, host: str) -> SiteTrust:
        """As the interface."""
        return self._find(SiteTrust, host) or _NOTHING

    def totals(self) -> ListTotals:
        """As the interface."""
        return self._totals

    def keep(self, key: Fingerprint | str, note: Note) -> None:
        """As the interface."""
        if isinstance(note, ListTotals):
            self._totals = self._totals.plus(note)
        else:
            self._known[_key(type(note), key)] = note

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def _find(self, kind: type[N], key: Fingerprint | str) -> N | None:
        note = self._known.get(_key(kind, key))
        return note if isinstance(note, kind) else None


class LmdbListings:
    """On disk. Does not close the environment: others may use it too."""

    def __init__(self, environment: LearnedEnvironment, writer: int = 0) -> None:
        """`writer` is the number of the process: totals are kept apart."""
        self._env = environment
        self._writer = str(writer)
        self._lock = threading.Lock()
        self._recent: dict[bytes, Note] = {}
        self._missed: set[bytes] = set()
        """Nothing was known of these, and this process has kept nothing of them since."""
        self._empty = self._look_for_empty()
        """Letters of the kinds of which there was nothing at the last look: most crawls meet no list, or few."""
        self.untold: Untold[SiteTrust] | None = None
        """Hears what is kept of hosts, where other workers are to know it."""

    def list_of(self, fingerprint: Fingerprint) -> ListNote | None:
        """As the interface."""
        name = b"l" + fingerprint
        return None if name in self._missed else self._find(ListNote, name)

    def listed(self, fingerprint: Fingerprint) -> ListedNote | None:
        """As the interface."""
        name = b"u" + fingerprint
        return None if name in self._missed else self._find(ListedNote, name)

    def site(self, host: str) -> SiteTrust:
        """As the interface."""
        return self._find(SiteTrust, _key(SiteTrust, host)) or _NOTHING

    def totals(self) -> ListTotals:
        """As the interface."""
        letter = _LETTERS[ListTotals]
        found: dict[bytes, ListTotals] = {}
        if "listings" not in self._env.db:
            return ListTotals()
        with self._env.reading() as txn, txn.cursor(db=self._env.db["listings"]) as cursor:
            going = cursor.set_range(letter)
            while going and cursor.key().startswith(letter):
                found[cursor.key()] = msgspec.msgpack.decode(cursor.value(), type=ListTotals)
                going = cursor.next()
        found.update({key: note for key, note in self._recent.items() if isinstance(note, ListTotals)})
        total = ListTotals()
        for note in found.values():
            total = total.plus(note)
        return total

    def keep(self, key: Fingerprint | str, note: Note) -> None:
        """As the interface."""
        if isinstance(note, ListTotals):
            key = self._writer
            note = (self._find(ListTotals, _key(ListTotals, key)) or ListTotals()).plus(note)
        name = _key(type(note), key)
        with self._lock:
            self._recent[name] = note
            self._missed.discard(name)
        if self.untold is not None and isinstance(note, SiteTrust) and isinstance(key, str):
            self.untold.keep(key, note)

    def travelling(self) -> TravellingNotes[SiteTrust]:
        """Let other workers know how far hosts are to be believed.

        The pages that are compared stay here, and so does their number: whoever takes a host over chooses its own.
        """
        self.untold = Untold(lambda site: replace(site, sampled=0) != _NOTHING)
        return TravellingNotes("t", SiteTrust, _Sites(self), self.untold, _with_own_samples)

    def flush(self) -> None:
        """As the interface."""
        with self._lock:
            batch = dict(self._recent)
            self._missed.clear()  # others may know them by now
        if not batch:
            self._empty = self._look_for_empty()
            return
        with self._env.writing() as txn:
            for key, note in sorted(batch.items()):
                txn.put(key, _pack(note), db=self._env.db["listings"])
        self._empty = self._look_for_empty()
        with self._lock:  # what was kept meanwhile stays
            for key, note in batch.items():
                if self._recent.get(key) is note:
                    del self._recent[key]

    def close(self) -> None:
        """As the interface."""
        self.flush()

    def _find(self, kind: type[N], name: bytes) -> N | None:
        recent = self._recent.get(name)
        if isinstance(recent, kind):
            return recent
        if name[:1] in self._empty:
            return None
        packed = self._env.get("listings", name)
        if packed is not None:
            return msgspec.msgpack.decode(packed, type=kind)
        if len(self._missed) < MISSED:
            self._missed.add(name)
        return None

    def _look_for_empty(self) -> frozenset[bytes]:
        """Of which kinds there is nothing; others may have kept the first of them by the next look."""
        table = self._env.db.get("listings")
        if table is None:
            return frozenset(_LETTERS.values())
        with self._env.reading() as txn, txn.cursor(db=table) as cursor:
            found = [letter for letter in _LETTERS.values() if cursor.set_range(letter) and cursor.key()[:1] == letter]
        return frozenset(_LETTERS.values()).difference(found)


class _Sites:
    """What is kept of hosts, as notes that travel."""

    def __init__(self, listings: LmdbListings) -> None:
        self._listings = listings
        self.keep = listings.keep

    def of(self, host: str) -> SiteTrust | None:
        site = self._listings.site(host)
        return None if site is _NOTHING else site


def _with_own_samples(brought: SiteTrust, known: SiteTrust | None) -> SiteTrust:
    return replace(brought, sampled=0 if known is None else known.sampled)
