"""Near-duplicates on disk (D3): every page within a few bits of a given one is found, among tens of millions.

Three tiers, all asked by `find`:

- *recent*: what this process remembered since its last flush, in memory;
- the *log*: what all processes flushed since the last fold, in LMDB; each process keeps a copy and adds what is new;
- *runs*: sorted tables in files (`near_run`, `near_runs`), made of the log when it has `FOLD` entries.

An original, its URL and its sketch, lies in LMDB under its id. Ids grow and are never used twice; the least one is the
earliest page. A flush is one write transaction, folding and merging included, and LMDB lets one process write at a
time: so there is one state that all agree on, and a process that is killed leaves the state before or after, never
between.

The environment is not synced (`environment`): an entry that is lost costs a mark. It is thrown away after a crash of
the machine, where it could be torn. A run that was made is in the system's cache before the state names it.

What is forgotten after it was flushed loses its original; its fingerprint stays in the tables, leads nowhere and is
passed over. That is rare: a result that came after its lease was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import lmdb
import msgspec

from nephila.model.errors import MemoryShortageError, StorageError
from nephila.model.likeness import Likeness
from nephila.model.near import NearOriginal, NearSnapshot

from .environment import UnsyncedEnvironment
from .near_recent import RecentPages
from .near_rule import STANDARD, NearRule
from .near_run import find_in_runs, pack_entry, scan_entries
from .near_runs import FOLD, MappedRuns, RunFile, choose, discard, write_run

MAP_BYTES = 1 << 38
"""Address space, sparse: room for a billion originals at ~200 bytes each."""

CONFIRMED_AT_MOST = 64
"""Candidates whose sketches are looked at, the earliest first: bounds what pages that are made alike on purpose
cost."""

_STATE = b"state"
_ID_BYTES = 4


class _State(msgspec.Struct, array_like=True, frozen=True):
    """What all processes agree on. The field order is the format in the store."""

    next_id: int = 0
    next_run: int = 0
    log_from: int = 0
    """Chunks of the log from here up to `log_to` are not in a run yet."""
    log_to: int = 0
    logged: int = 0
    """Entries in them."""
    runs: tuple[tuple[int, int], ...] = ()
    """Number and entries of each, the oldest first."""

    def files(self) -> list[RunFile]:
        return [RunFile(*run) for run in self.runs]


class _Found(NamedTuple):
    """An entry on disk that may be near."""

    id: int
    distance: int
    url: str
    sketch: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode


class LmdbNearIndex:
    """Implements `interfaces.near_duplicates.NearIndex`. Processes may share it; `flush` may run in a thread."""

    def __init__(
        self, path: Path, boot_id: str, rule: NearRule = STANDARD, *, map_bytes: int = MAP_BYTES, fold: int = FOLD
    ) -> None:
        """`boot_id` names this boot of the machine (`Clock.boot_id`); `fold` is how long the log may grow."""
        self._rule = rule
        self._fold_at = fold
        self._lock = threading.RLock()
        """Held while memory is looked at or changed; never while the disk is written."""
        self._flushing = threading.Lock()
        """Held for a whole flush, and to forget: what is being written cannot be taken out of it."""
        self._recent, self._writing = RecentPages(), RecentPages()
        what, loss = "index of near-duplicates", "pages met so far are then nobody's originals"
        self._environment = UnsyncedEnvironment(path, boot_id, what, loss, map_bytes=map_bytes, tables=3)
        try:
            opened = self._environment.lmdb
            self._meta, self._log, self._originals = (opened.open_db(name) for name in (b"meta", b"log", b"originals"))
        except lmdb.Error as error:
            self._environment.close()
            raise self._environment.refused(error) from error
        self._runs = MappedRuns(path)
        self._known = b""
        """The state that runs and log in memory are of, as it is stored."""
        self._state = _State()
        self._tail = bytearray()
        """The log: packed entries."""
        self._alone: int | None = None
        """What was looked for last, where nothing on disk was near it: a page is remembered right after that."""

    def find(self, likeness: Likeness) -> NearOriginal | None:
        """As the interface."""
        rule = self._rule
        with self._lock:
            on_disk = self._on_disk(likeness.simhash, rule.max_distance)
            self._alone = None if on_disk else likeness.simhash
            for found in on_disk:
                if (original := rule.confirm(likeness.sketch, found.sketch, found.url, found.distance)) is not None:
                    return original
            for recent in (self._writing, self._recent):
                for page, distance in recent.near(likeness.simhash, rule.max_distance):
                    if (original := rule.confirm(likeness.sketch, page.sketch, page.url, distance)) is not None:
                        return original
        return None

    def remember(self, likeness: Likeness, url: str) -> bool:
        """As the interface."""
        with self._lock:
            if self._recent.knows(likeness, url) or self._writing.knows(likeness, url):
                return False
            if likeness.simhash != self._alone:
                for found in self._on_disk(likeness.simhash, 0):
                    if found.url == url:
                        return False
            self._recent.add(likeness, url)
            return True

    def forget(self, likeness: Likeness, url: str) -> None:
        """As the interface."""
        with self._flushing, self._lock:
            self._recent.drop(likeness, url)
            ids = [found.id for found in self._on_disk(likeness.simhash, 0) if found.url == url]
            if not ids:
                return
            try:
                with self._environment.lmdb.begin(write=True) as writing:
                    for one in ids:
                        writing.delete(_key(one), db=self._originals)
            except lmdb.Error as error:
                raise self._environment.refused(error) from error

    def forget_named(self, names: Callable[[str], bool]) -> int:
        """Let nothing be found near to pages whose URLs `names` picks out; how many (K2). May run in a thread."""
        self.flush()
        try:
            with self._environment.lmdb.begin(buffers=True) as reading, reading.cursor(db=self._originals) as cursor:
                found = [bytes(key) for key, packed in cursor if names(str(packed[1 + packed[0] :], "utf-8"))]
            with self._flushing, self._lock, self._environment.lmdb.begin(write=True) as writing:
                for key in found:
                    writing.delete(key, db=self._originals)
        except lmdb.Error as error:
            raise self._environment.refused(error) from error
        return len(found)

    def flush(self) -> None:
        """As the interface: safe from a kill afterwards, not from a power loss."""
        with self._flushing:
            with self._lock:
                if not self._recent:
                    return
                self._recent, self._writing = RecentPages(), self._recent
                self._alone = None
            unwritten = self._writing
            try:
                self._write()
                unwritten = RecentPages()
            except (OSError, lmdb.Error) as error:
                raise self._environment.refused(error) from error
            finally:
                with self._lock:
                    self._recent, self._writing = unwritten.followed_by(self._recent), RecentPages()
                    self._alone = None

    def close(self) -> None:
        """As the interface; a power loss afterwards takes nothing.

        What a full disk does not take is left out without a word: it costs a few marks, and whoever called `flush`
        before has been told.
        """
        with suppress(StorageError, MemoryShortageError):
            self.flush()
        self._runs.close()
        self._environment.close()

    def snapshot(self) -> NearSnapshot:
        """As the interface."""
        with self._lock:
            try:
                with self._environment.lmdb.begin() as reading:
                    written = reading.stat(self._originals)["entries"]
                    state = self._read(reading)
                size = sum(path.stat().st_blocks * 512 for path in self._environment.path.iterdir())
            except (OSError, lmdb.Error) as error:
                raise self._environment.refused(error) from error
            unwritten = len(self._recent) + len(self._writing)
            return NearSnapshot(written + unwritten, unwritten, len(state.runs), size)

    # -- searching

    def _on_disk(self, simhash: int, distance: int) -> list[_Found]:
        """What all processes have flushed within that distance, the earliest first."""
        missed: _State | None = None
        while True:
            try:
                with self._environment.lmdb.begin(buffers=True) as reading:
                    self._follow(reading)
                    matches = find_in_runs(self._runs.maps, simhash, distance)
                    matches += scan_entries(self._tail, simhash, distance)
                    return self._looked_up(reading, sorted(matches)[:CONFIRMED_AT_MOST]) if matches else []
            except FileNotFoundError as error:
                # Folded since this transaction began: the next one sees the state of now, unless that was it.
                with self._environment.lmdb.begin() as reading:
                    missed, before = self._read(reading), missed
                if missed == before:
                    raise self._environment.refused(error) from error
            except (OSError, lmdb.Error) as error:
                raise self._environment.refused(error) from error

    def _follow(self, reading: lmdb.Transaction) -> None:
        """Bring runs and log in memory to the state that is stored."""
        stored = reading.get(_STATE, b"", db=self._meta)
        if stored == self._known:
            return
        state = _decode(stored)
        if state.runs != self._state.runs:
            self._runs.become(state.files())
        if state.log_from != self._state.log_from:
            self._tail = bytearray()  # it is in the runs now
        self._tail += self._chunks(reading, max(state.log_from, self._state.log_to), state.log_to)
        self._known, self._state = bytes(stored), state

    def _looked_up(self, reading: lmdb.Transaction, matches: list[tuple[int, int]]) -> list[_Found]:
        found = []
        for number, distance in matches:
            packed = reading.get(_key(number), db=self._originals)
            if packed is not None:
                end = 1 + packed[0]
                found.append(_Found(number, distance, str(packed[end:], "utf-8"), bytes(packed[1:end])))
        return found

    # -- writing

    def _write(self) -> None:
        """One transaction; the files that it has replaced are taken away when all agree on that."""
        with self._environment.lmdb.begin(write=True) as writing:
            before = self._read(writing)
            state = self._folded(writing, self._logged(writing, before))
            writing.put(_STATE, _encode(state), db=self._meta)
        for run in set(before.files()) - set(state.files()):
            with suppress(OSError):  # it is written all the same; the next fold takes away what is left
                run.path(self._environment.path).unlink(missing_ok=True)

    def _read(self, transaction: lmdb.Transaction) -> _State:
        stored = transaction.get(_STATE, db=self._meta)
        return _State() if stored is None else _decode(stored)

    def _logged(self, writing: lmdb.Transaction, state: _State) -> _State:
        """The state with what is being written among the originals, and one more chunk of the log."""
        pages = self._writing.pages()
        numbered = list(enumerate(pages, state.next_id))
        with writing.cursor(db=self._originals) as cursor:
            cursor.putmulti(
                [(_key(one), bytes((len(page.sketch),)) + page.sketch + page.url.encode()) for one, page in numbered],
                append=True,
            )
        chunk = b"".join([pack_entry(page.simhash, one) for one, page in numbered])
        writing.put(_key(state.log_to), chunk, db=self._log)
        return msgspec.structs.replace(
            state,
            next_id=state.next_id + len(pages),
            log_to=state.log_to + 1,
            logged=state.logged + len(pages),
        )

    def _folded(self, writing: lmdb.Transaction, state: _State) -> _State:
        """The state with the log made into a run, once it is long enough."""
        if state.logged < self._fold_at:
            return state
        files = state.files()
        folder = self._environment.path
        discard(folder, files)  # what is there of those who died while they folded
        kept = len(files) - choose(files, state.logged)
        entries = self._chunks(writing, state.log_from, state.log_to)
        made = write_run(folder, state.next_run, files[kept:], entries)
        for number in range(state.log_from, state.log_to):
            writing.delete(_key(number), db=self._log)
        return msgspec.structs.replace(
            state,
            next_run=state.next_run + 1,
            log_from=state.log_to,
            logged=0,
            runs=(*state.runs[:kept], tuple(made)),
        )

    def _chunks(self, transaction: lmdb.Transaction, start: int, end: int) -> bytes:
        chunks = (transaction.get(_key(number), b"", db=self._log) for number in range(start, end))
        return b"".join(chunks)


def _key(number: int) -> bytes:
    return number.to_bytes(_ID_BYTES, "big")
