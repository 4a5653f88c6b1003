"""The ledger of addresses for several processes (P2): the same limits, kept in memory that all of them see.

To divide the limits by the number of processes would not do: four requests at once cannot be divided by eight, and ten
a second divided by three are either fewer than ten or, where all three are unlucky, more. So what decides whether a
request may leave (who holds a permit, what was granted in the last span, how far turns are planned) lies in a table in
shared memory, and `Server`, the same as in one process, decides on it. What is left to each process is which of its own
hosts has which turn.

The table is a nameless file in memory that the supervisor makes and the workers inherit. An address belongs to one
bucket of `BUCKET` slots. A lock on the bucket's byte is held while a slot is read, judged and written: some
microseconds. The kernel takes the lock from a process that dies.

    slot:  hash of the address | forgettable from | permits held by process 0, 1, ... | length | what is known (msgpack)

What must stay true: the limits hold over all processes, whatever dies when. Therefore a grant is written down before
it is used; permits of the dead count until their servers must have noticed (`release`); and where a bucket has no room,
which takes sixteen busy addresses of the same hash, the answer is to come again.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct

import msgspec
from xxhash import xxh3_64_intdigest

from nephila.interfaces.addresses import AddressBusy, AddressPermit
from nephila.model.settings import PolitenessSettings

from .address_limits import AddressLimit, AddressLimits
from .addresses import SWEEP_FROM, Known, Server

BUCKETS = 512
BUCKET = 16
SLOT_BYTES = 2048
MAX_PROCESSES = 64
MOST_REMEMBERED = 128
"""Grants of one address: a rate above that is counted over a part of a second."""
FULL_WAIT_MS = 250

_HEAD = Struct(f"<Qq{MAX_PROCESSES}HH")
_MARK = Struct("<Q")
_RESUMED = Struct("<q")
_TABLE_AT = 4096
_SIZE = _TABLE_AT + BUCKETS * BUCKET * SLOT_BYTES
"""Sixteen megabytes, of which only what is used takes room."""

_ANY_LIMIT = AddressLimit(1, 1.0)
"""For a look at a slot that decides nothing."""

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Known] = msgspec.msgpack.Decoder(Known)


def shared_table() -> int:
    """Make a table; its descriptor, which is to be handed to the workers."""
    descriptor = os.memfd_create("nephila-addresses", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, _SIZE)
    mark_resumed(descriptor, -1)
    return descriptor


def mark_resumed(descriptor: int, resumed_at: int) -> None:
    """Say in a table that another run asked until then: what it was granted is not known, and taken for all.

    To be said before the first ledger is made on it.
    """
    os.pwrite(descriptor, _RESUMED.pack(resumed_at), 0)


class SharedAddressLedger:
    """Implements `interfaces.addresses.AddressLedger` for one of several processes."""

    def __init__(self, limits: AddressLimits, descriptor: int, process: int) -> None:
        """`process` is this one's number, 0 to `MAX_PROCESSES` - 1."""
        self._limits = limits
        self._descriptor = descriptor
        self._process = process
        self._table = mmap.mmap(descriptor, _SIZE)
        (resumed_at,) = _RESUMED.unpack_from(self._table, 0)
        self._resumed_at = None if resumed_at < 0 else resumed_at
        self._servers: dict[str, Server] = {}
        """Between two questions each counts the permits of this process alone: what others hold keeps nothing here."""
        self._sweep_at = SWEEP_FROM

    def ask(self, address: str, host: str, now_ms: int) -> AddressPermit | AddressBusy:
        """Whether `host` may send one request to `address` now."""
        counted = self._limits.of(address)
        server = self._server(counted.key, counted.limit, now_ms)
        with self._locked(counted.key) as (bucket, mark):
            at = self._find(bucket, mark, now_ms)
            if at is None:
                return AddressBusy(FULL_WAIT_MS)
            held = self._read(at, mark, server)
            wait_ms = server.ask(host, now_ms)
            if not wait_ms:
                held[self._process] += 1
            self._write(at, mark, server, held)
            server.in_flight = held[self._process]
        return AddressBusy(wait_ms) if wait_ms else AddressPermit(counted.key, now_ms)

    def give_back(self, permit: AddressPermit, now_ms: int, *, notice_ms: int = 0) -> None:
        """The exchange has ended; `notice_ms` later for the server."""
        server = self._servers[permit.key]  # not swept: while a permit is held it is not idle
        with self._locked(permit.key) as (bucket, mark):
            at = self._find(bucket, mark, now_ms)
            if at is None:
                raise LookupError(f"no permit is held for {permit.key}")
            held = self._read(at, mark, server)
            held[self._process] -= 1
            server.give_back(permit.granted_at, now_ms, notice_ms)
            self._write(at, mark, server, held)
            server.in_flight = held[self._process]

    def release(self, process: int, now_ms: int, notice_ms: int) -> int:
        """Take back the permits of a process that died; how many. Its exchanges end when their servers notice."""
        released = 0
        for bucket in range(BUCKETS):
            with self._locking(bucket):
                for at in _slots(bucket):
                    mark, until, *held, length = _HEAD.unpack_from(self._table, at)
                    if not mark or not held[process]:
                        continue
                    server = Server(_ANY_LIMIT, None)
                    server.known = self._known(at, length)
                    server.break_off(held[process], now_ms + notice_ms)
                    released += held[process]
                    held[process] = 0
                    self._put(at, mark, max(until, server.forgettable_from()), held, server.known)
        return released

    def close(self) -> None:
        """Let go of the table."""
        self._table.close()
        os.close(self._descriptor)

    # Slots

    @contextmanager
    def _locked(self, key: str) -> Iterator[tuple[int, int]]:
        """Hold the bucket of an address; its number and the address's mark."""
        mark = xxh3_64_intdigest(key.encode()) or 1
        bucket = mark % BUCKETS
        with self._locking(bucket):
            yield bucket, mark

    @contextmanager
    def _locking(self, bucket: int) -> Iterator[None]:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, bucket)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, bucket)

    def _find(self, bucket: int, mark: int, now_ms: int) -> int | None:
        """The slot of an address, or one that may become it; None when all are busy."""
        slots = _slots(bucket)
        for at in slots:
            (found,) = _MARK.unpack_from(self._table, at)
            if found == mark:
                return at
            if not found:
                break  # slots are filled in order and never emptied
        for at in slots:
            found, forgettable_from, *held, _ = _HEAD.unpack_from(self._table, at)
            if not found or (forgettable_from <= now_ms and not any(held)):
                return at
        return None

    def _read(self, at: int, mark: int, server: Server) -> list[int]:
        """Let `server` know what the slot knows; who holds permits."""
        found, _, *held, length = _HEAD.unpack_from(self._table, at)
        if found == mark:
            server.known = self._known(at, length)
        else:
            held = [0] * MAX_PROCESSES
            server.known = Server(server.limit, self._resumed_at, MOST_REMEMBERED).known
        server.in_flight = sum(held)
        return held

    def _write(self, at: int, mark: int, server: Server, held: list[int]) -> None:
        self._put(at, mark, server.forgettable_from(), held, server.known)

    def _known(self, at: int, length: int) -> Known:
        start = at + _HEAD.size
        return _decoder.decode(self._table[start : start + length])

    def _put(self, at: int, mark: int, until: int, held: list[int], known: Known) -> None:
        packed = _encode(known)
        if len(packed) > SLOT_BYTES - _HEAD.size:
            raise ValueError(f"{len(packed)} bytes are too many for a slot")
        start = at + _HEAD.size
        self._table[start : start + len(packed)] = packed
        _HEAD.pack_into(self._table, at, mark, until, *held, len(packed))

    def _server(self, key: str, limit: AddressLimit, now_ms: int) -> Server:
        """What this process knows of the turns of its hosts at an address."""
        server = self._servers.get(key)
        if server is None:
            if len(self._servers) >= self._sweep_at:
                self._servers = {key: one for key, one in self._servers.items() if not one.is_idle(now_ms)}
                self._sweep_at = max(SWEEP_FROM, 2 * len(self._servers))
            server = self._servers[key] = Server(limit, None, MOST_REMEMBERED)
        return server


def _slots(bucket: int) -> range:
    start = _TABLE_AT + bucket * BUCKET * SLOT_BYTES
    return range(start, start + BUCKET * SLOT_BYTES, SLOT_BYTES)


def shared_ledger(settings: PolitenessSettings, descriptor: int, process: int) -> SharedAddressLedger | None:
    """The ledger that the settings ask for; None where there is no limit (`--delay 0`). Raises `UsageError`."""
    standard = AddressLimit(settings.address_concurrency, settings.address_rate)
    limits = AddressLimits(standard, settings.address_limits)
    return SharedAddressLedger(limits, descriptor, process) if settings.delay_s > 0 else None
