"""What pages in browsers need of hosts other than their own: scripts and data, each as work of its own host (J3).

A visit holds the turn of one host, and of no other. So what a page wants of another host is queued there like anything
else, under its robots.txt, its delay and its budget; the page waits (`holding`), and is shown again when it has come.
In the frontier such a resource is a URL with a mark behind it that no link can have, since links lose their fragments:
it is told from a page of the same URL by its address alone, in every engine.

What came of it lies on the *shelf*, which all who show pages of a crawl share: the answer, for as long as it is fresh;
why there is none; or that it was asked for. Losing any of that costs a request or a wait, never a wrong page.

What must stay true: a resource is asked for once as long as its answer is fresh or somebody waits for it; nobody waits
for longer than the settings say; what nobody waits for is not fetched.
"""

from __future__ import annotations

from hashlib import blake2b, sha256

import msgspec

from nephila.interfaces.clock import Clock
from nephila.interfaces.renderer import Shelf
from nephila.model.rendering import PartKind, Supplied
from nephila.model.task import Candidate, Level, Task
from nephila.urls import Address, Fingerprint

from .part_cache import lasts_ms

MARK = "#nephila-resource"
"""Behind the URL of a resource in the frontier."""
FAILED_MS = 600_000
"""How long it is believed that a resource cannot be had, be it refused, missing or not there in time."""
SERVED_MS = 900_000
"""How long an answer is kept for the pages that waited for it, be it fresh or not."""
KINDS = frozenset({PartKind.SCRIPT, PartKind.DATA})
"""What may be needed of another host; frames, style sheets, pictures, fonts and media are not."""
TYPES = (
    *("text/javascript", "application/javascript", "application/x-javascript", "application/ecmascript"),
    *("application/json", "application/ld+json", "application/manifest+json", "text/json", "text/plain"),
)
"""Media types whose bodies are read."""


def is_resource(task: Task) -> bool:
    """Whether a task of the frontier is something that a page in a browser needs."""
    return task.url.endswith(MARK)


def bare(url: str) -> str:
    """What is asked for."""
    return url.removesuffix(MARK)


def candidate_for(address: Address, depth: int, hops: int = 0) -> Candidate:
    """A resource as the frontier takes it: somebody waits for it, so it goes first."""
    name = Fingerprint(blake2b(address.fingerprint, digest_size=16, person=b"resource").digest())
    return Candidate(Address(address.url + MARK, address.host, address.key + MARK, name), depth, Level.IMMEDIATE, hops)


class Note(msgspec.Struct, array_like=True, frozen=True):
    """What is known of one resource. Times are UTC milliseconds."""

    asked_at: int
    """Since when somebody waits for it; 0 where nobody ever did."""
    answered_at: int = 0
    fresh_until: int = 0
    """How long the answer, or the reason why there is none, may stand for a new one."""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    refused: str = ""
    """Why there is none."""

    @property
    def supplied(self) -> Supplied:
        """The answer, for a page."""
        return Supplied(self.status, self.headers, self.body)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Note).decode


class ResourceNotes:
    """The shelf, read and written as what is known of resources."""

    def __init__(self, shelf: Shelf, clock: Clock, wait_s: float) -> None:
        self._shelf = shelf
        self._clock = clock
        self._wait_ms = int(wait_s * 1000)

    def now(self) -> int:
        """UTC milliseconds."""
        return self._clock.wall_ms()

    async def find(self, url: str) -> Note | None:
        """What is known of a resource."""
        packed = await self._shelf.find(_name(url))
        try:
            return None if packed is None else _decode(packed)
        except (msgspec.DecodeError, UnicodeDecodeError):  # of another version: as if it were lost
            return None

    def answers(self, note: Note | None, since: int) -> bool:
        """Whether a page may be given what came: it is fresh, or the page waits since before it came."""
        if note is None or not note.answered_at or note.refused:
            return False
        return note.fresh_until > self._clock.wall_ms() or 0 < since <= note.answered_at

    def refuses(self, note: Note | None) -> bool:
        """Whether it is known that a resource cannot be had."""
        return note is not None and bool(note.refused) and note.fresh_until > self._clock.wall_ms()

    def is_awaited(self, note: Note | None) -> bool:
        """Whether it was asked for, has not come, and somebody still waits."""
        if note is None or note.answered_at >= note.asked_at or self.refuses(note):
            return False
        return self._clock.wall_ms() < note.asked_at + self._wait_ms

    async def ask(self, url: str) -> int:
        """Somebody waits for a resource from now on; since when."""
        now = self._clock.wall_ms()
        await self._shelf.keep(_name(url), _encode(Note(now)), self._wait_ms)
        return now

    async def answer(self, url: str, supplied: Supplied) -> None:
        """It has come."""
        now = self._clock.wall_ms()
        lasts = lasts_ms(PartKind.SCRIPT if _is_script(supplied) else PartKind.DATA, supplied)
        if supplied.status >= 400:
            lasts = FAILED_MS
        elif supplied.status >= 300:  # where it moved to
            lasts = SERVED_MS
        note = Note(now, now, now + lasts, supplied.status, supplied.headers, supplied.body)
        await self._shelf.keep(_name(url), _encode(note), max(lasts, SERVED_MS))

    async def refuse(self, url: str, reason: str) -> None:
        """It cannot be had, for a while."""
        now = self._clock.wall_ms()
        await self._shelf.keep(_name(url), _encode(Note(now, now, now + FAILED_MS, refused=reason)), FAILED_MS)

    async def keep(self, url: str, supplied: Supplied, lasts: int) -> None:
        """A page was given this by its own host; the next one may have it, too."""
        now = self._clock.wall_ms()
        note = Note(0, now, now + lasts, supplied.status, supplied.headers, supplied.body)
        await self._shelf.keep(_name(url), _encode(note), lasts)


def _is_script(supplied: Supplied) -> bool:
    said = next((value for name, value in supplied.headers if name == "content-type"), "")
    return "script" in said


def _name(url: str) -> str:
    return "part-" + sha256(url.encode()).hexdigest()[:40]
