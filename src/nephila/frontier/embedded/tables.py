"""The named databases of the LMDB environment, and how their keys are made.

All that concerns one host lies together in one database, `web`: its state, its URLs, its queue. A page's links mostly
stay on its host, so that settling a page touches a leaf or two, and a link to a host that is not at hand touches one.
(A page of the store that is written costs as much as twenty look-ups; that decides what a crawled page costs once the
frontier is larger than a group of commits: see docs/decisions/0015.)

A host key is twelve bytes: 48 bits of its registrable domain, 48 bits of the host name, both hashed with the crawl's
secret. The hosts of a domain are neighbours, the domain's own state comes right before them (with a host of zeros), and
the first byte is the shard.

| database | key | value |
|---|---|---|
| meta | name | format, secret, totals, ages, timeline anchor |
| web | domain, zeros, 0 | DomainState |
| | host key, 0 | HostState |
| | host key, 1, fingerprint prefix | a URL: where it is queued or parked, or its whole UrlRecord |
| | host key, 2, place | a bundle of queued URLs |
| | host key, 3, reason, group, place | a bundle of parked URLs |
| | host key, 4, hash of origin | RobotsEntry |
| | host key, 5, hash of skeleton | SkeletonTally |
| | host key, 6, hash of first path segment | URLs queued under it, on large hosts |
| waiting | time, host key | - |
| ready | lane, domain count, step, depth, time, tie, host key | - |
| due | time, URL key | reason |
| leases | token | LeaseRecord |
| leased | host key | token |
| origins | origin | OriginNote |
| rules | origin | text of robots.txt |
| pending | segment, end | URL key |
| marks | segment | confirmed up to |
| dead | URL key | - |
| parked | host key | reason |
| shelves | reason, host key | - |
| trapped | host key, hash of skeleton | - |
| policies | domain | DomainPolicy |
| blocks | pattern | Block |
| refused | URL key | RefusalNote |
| orphans | segment, offset | - |
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb
from xxhash import xxh3_64_digest, xxh3_128_digest

from nephila.engines.store_files import prepare_files
from nephila.frontier.blocklist import Blocklist
from nephila.model.errors import FrontierError, MemoryShortageError, NephilaError, StorageError, remedy
from nephila.urls import registrable_domain

from .turnstile import Turnstile

if TYPE_CHECKING:
    from lmdb import _Database as Database

    from .noting import Written

    Txn = lmdb.Transaction[bytes]

FORMAT = b"nephila-frontier-2"
IMPORTING = b"nephila-frontier-2, imported in part"
"""The format of a store that an import has not come to the end of: nobody opens it."""

NAMES = (
    *("meta", "web", "waiting", "ready", "due", "leases", "leased", "origins", "rules", "pending", "marks", "dead"),
    *("parked", "shelves", "trapped", "policies", "blocks", "refused", "orphans"),
)

DOMAIN_KEY_BYTES = 6
HOST_KEY_BYTES = 12
PREFIX_BYTES = 8
"""Of a fingerprint in a URL's key: within one host, 64 bits take a new URL for a known one less than once in 10^12."""

STATE, URL, QUEUE, SHELF, ROBOTS, SKELETON, SECTION = (bytes((kind,)) for kind in range(7))
"""What follows a host key in `web`."""

HOST_KEYS_REMEMBERED = 16_384
"""Some three megabytes; a key that is forgotten is made again in 3 us."""

LONGEST_KEY = 480
"""Bytes; LMDB takes 511."""


class Recent:
    """Robots rules that are durable in the journal and not yet in the store, for the page that waits for them."""

    __slots__ = ("_of_origins", "_of_rules", "_origins", "_rules")

    def __init__(self, origins: Database, rules: Database) -> None:
        self._origins, self._rules = origins, rules
        self._of_origins: dict[bytes, bytes | None] = {}
        self._of_rules: dict[bytes, bytes | None] = {}

    def note(self, written: Written) -> None:
        """A group has written this."""
        if self._origins in written:
            self._of_origins.update(written[self._origins])
        if self._rules in written:
            self._of_rules.update(written[self._rules])

    def clear(self) -> None:
        """The store has it."""
        self._of_origins, self._of_rules = {}, {}

    def find(self, origin: bytes) -> tuple[bytes | None, bytes | None]:
        """What lies under an origin, and the text of its rules; None for what is only in the store.

        Ask here first, and only then begin to read the store: what is gone from here is there.
        """
        return self._of_origins.get(origin), self._of_rules.get(origin)


class Tables:
    """The open environment: a handle per database, and the secret that keys are made with."""

    __slots__ = (
        *("blocklist", "db", "env", "host_keys", "page_bytes", "recent", "referred", "referrers", "secret", "show"),
        "web",
    )

    def __init__(self, env: lmdb.Environment, db: dict[str, Database], secret: int) -> None:
        self.env = env
        self.page_bytes = env.stat()["psize"]
        self.db = db
        self.web = db["web"]
        self.secret = secret
        self.blocklist = (0, Blocklist())
        """As it was read last, and the count of `Totals.orders` at that time."""
        self.referred: dict[bytes, int] = {}
        """Bits of referring domains, as they were counted of late: see `admission`."""
        self.referrers: dict[bytes, int] = {}
        """Bits of referring domains that wait until their host is read."""
        self.host_keys: dict[str, bytes] = {}
        """Keys of hosts that were asked for of late: see `host_key`."""
        self.recent = Recent(db["origins"], db["rules"])
        """What is durable of these and not in the store yet."""
        self.show: Callable[[], None] = lambda: None
        """Lets the store show all that is durable: set where something is held back (`writing`)."""

    def look(self) -> Txn:
        """A transaction for reading that sees all that is durable."""
        self.show()
        return self.env.begin()

    def used_bytes(self) -> int:
        """How much of the store's file is in use, free pages within it included."""
        return (self.env.info()["last_pgno"] + 1) * self.page_bytes

    def host_key(self, host: str) -> bytes:
        """The key of a host."""
        key = self.host_keys.get(host)
        if key is None:
            key = self.domain_key(registrable_domain(host)) + xxh3_64_digest(host.encode(), self.secret)[:6]
            if len(self.host_keys) >= HOST_KEYS_REMEMBERED:
                self.host_keys.clear()
            self.host_keys[host] = key
        return key

    def domain_key(self, domain: str) -> bytes:
        """The key of a registrable domain: the first half of its hosts' keys."""
        return xxh3_64_digest(domain.encode(), self.secret)[:DOMAIN_KEY_BYTES]

    def url_key(self, host: str, fingerprint: bytes) -> bytes:
        """The key of a URL."""
        return self.host_key(host) + URL + fingerprint[:PREFIX_BYTES]

    def close(self) -> None:
        """Close the environment; nothing of it may be used afterwards."""
        self.env.close()


def open_tables(path: Path, *, map_bytes: int, sync: bool, read_only: bool = False) -> Tables:
    """Open the store, making it when it is not there (never for reading only)."""
    try:
        if not read_only:
            path.mkdir(parents=True, exist_ok=True)
            prepare_files(path)
        env = lmdb.open(
            os.fspath(path),
            map_size=map_bytes,
            max_dbs=len(NAMES) + 8,
            max_readers=512,
            sync=sync,
            metasync=sync,
            readonly=read_only,
            readahead=False,
            lock=True,
        )
    except lmdb.DiskError as error:
        raise refused(error) from error
    except lmdb.Error as error:
        hint = "restore the directory from a copy, or begin a new crawl"
        if "Permission denied" in str(error):
            hint = "looking takes a lock there, too: mend its permissions, or look at a copy that is yours"
        raise FrontierError(f"the frontier at {path} cannot be opened: {error}", hint) from error
    except OSError as error:
        raise StorageError(f"the frontier at {path} cannot be opened: {error.strerror}", remedy(error)) from error
    env.reader_check()
    try:
        return _open_databases(env, path, read_only=read_only)
    except OSError as error:
        env.close()
        raise StorageError(f"the frontier at {path} cannot be opened: {error.strerror}", remedy(error)) from error
    except lmdb.NotFoundError as error:
        env.close()
        raise FrontierError(f"{path} holds no frontier", "restore it from a copy, or begin a new crawl") from error
    except lmdb.Error as error:
        env.close()
        raise refused(error) from error
    except FrontierError:
        env.close()
        raise


def refused(error: lmdb.Error) -> NephilaError:
    """The engine's refusal to write, told in one sentence."""
    if isinstance(error, lmdb.MemoryError):
        return MemoryShortageError()
    if isinstance(error, lmdb.MapFullError):
        return StorageError("the frontier has reached the size of its map", hint="raise frontier.map_bytes")
    # A write that a full disk cuts short is an input/output error to LMDB.
    reason = (
        "no space left on the disk" if isinstance(error, lmdb.DiskError) else f"the disk is full or fails ({error})"
    )
    return StorageError(
        f"the frontier could not be written: {reason}",
        hint="make room and start the same command again: it goes on where it was",
    )


def _open_databases(env: lmdb.Environment, path: Path, *, read_only: bool) -> Tables:
    if read_only:
        db = {name: env.open_db(name.encode(), create=False) for name in NAMES}
        with env.begin(buffers=False) as txn:
            return Tables(env, db, _secret(txn.get(b"format", db=db["meta"]), txn.get(b"secret", db=db["meta"])))
    turnstile = Turnstile(path)
    try:
        with turnstile.passed():
            writing = env.begin(write=True)
    finally:
        turnstile.close()
    with writing as txn:
        db = {name: env.open_db(name.encode(), txn=txn) for name in NAMES}
        if txn.get(b"format", db=db["meta"]) is None:
            txn.put(b"format", FORMAT, db=db["meta"])
            txn.put(b"secret", secrets.token_bytes(8), db=db["meta"])
        return Tables(env, db, _secret(txn.get(b"format", db=db["meta"]), txn.get(b"secret", db=db["meta"])))


def begin_import(path: Path, *, map_bytes: int, secret: int) -> Tables:
    """Make a store for a crawl that comes from elsewhere; it cannot be opened until `end_import`.

    What another import has left unfinished there is removed; anything else must not be there.
    """
    if is_half_imported(path, map_bytes):
        for name in ("data.mdb", "lock.mdb"):
            (path / name).unlink(missing_ok=True)
    tables = open_tables(path, map_bytes=map_bytes, sync=False)
    with tables.env.begin(write=True) as txn:
        txn.put(b"format", IMPORTING, db=tables.db["meta"])
        txn.put(b"secret", secret.to_bytes(8, "big"), db=tables.db["meta"])
    tables.env.sync(True)  # the mark is durable before anything else is
    tables.secret = secret
    return tables


def end_import(tables: Tables) -> None:
    """All is there: the store can be opened from now on."""
    tables.env.sync(True)
    with tables.env.begin(write=True) as txn:
        txn.put(b"format", FORMAT, db=tables.db["meta"])
    tables.env.sync(True)


def is_half_imported(path: Path, map_bytes: int) -> bool:
    """Whether an import was begun there and not ended."""
    if not (path / "data.mdb").exists():
        return False
    try:
        env = lmdb.open(os.fspath(path), map_size=map_bytes, max_dbs=1, readonly=True, readahead=False)
    except lmdb.Error as error:
        raise refused(error) from error
    try:
        with env.begin() as txn:
            meta = env.open_db(b"meta", txn=txn, create=False)
            return txn.get(b"format", db=meta) == IMPORTING
    except lmdb.NotFoundError:
        return False
    finally:
        env.close()


def _secret(form: bytes | None, secret: bytes | None) -> int:
    if form == IMPORTING:
        raise FrontierError(
            "the frontier was imported in part only: the import was interrupted",
            hint="begin anew with `nephila frontier import`",
        )
    if form != FORMAT or secret is None:
        raise FrontierError(
            f"the frontier has the format {(form or b'').decode(errors='replace')!r}, "
            f"this version of nephila reads {FORMAT.decode()!r}",
            hint="use the version that made it, or begin a new crawl directory",
        )
    return int.from_bytes(secret, "big")


def block_key(pattern: str) -> bytes:
    """The key of a block: how it is spelled, as far as there is room, and what it is told by where there is not."""
    spelled = pattern.encode()
    if len(spelled) <= LONGEST_KEY:
        return spelled
    return spelled[: LONGEST_KEY - 16] + xxh3_128_digest(spelled)


def pending_key(segment: str, end: int) -> bytes:
    """The key of a page that waits for its segment, or (with its offset) of a capture that is nobody's."""
    return segment.encode() + b"\0" + end.to_bytes(8, "big")


def shorten(url: str, host: str) -> str:
    """A URL without what its host record knows: ``s/path`` for https, ``h/path`` for http, else the whole."""
    for mark, scheme in (("s", "https://"), ("h", "http://")):
        start = len(scheme) + len(host)
        if url.startswith(scheme) and url.startswith(host, len(scheme)) and url[start : start + 1] in {"/", ":", "?"}:
            return mark + url[start:]
    return "=" + url


def lengthen(tail: str, host: str) -> str:
    """The URL that `shorten` cut."""
    match tail[0]:
        case "s":
            return f"https://{host}{tail[1:]}"
        case "h":
            return f"http://{host}{tail[1:]}"
        case _:
            return tail[1:]
