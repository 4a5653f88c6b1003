"""What a supervisor and a worker say to each other, and how it is framed: a length of four bytes, then msgpack.

(Not lines of JSON: a setting may be infinite, and a fingerprint is bytes.)
"""

from __future__ import annotations

import asyncio
import socket
from typing import Generic, TypeAlias, TypeVar

import msgspec

from nephila.model.exchange import FailureKind
from nephila.model.settings import Settings

Counts: TypeAlias = tuple[tuple[str, int], ...]
Number: TypeAlias = int | None

# fmt: off
EventFields: TypeAlias = tuple[
    str, int, str, bytes, str, Number, Number, Number, str, str, str, str, Number, Counts, str, Number
]
# fmt: on
"""An `Event` as the tuple of its fields, in their order."""


class Orders(msgspec.Struct, frozen=True, tag=True):
    """The first message to a worker: crawl."""

    out: str
    number: int
    among: int
    settings: Settings
    hear_all: bool
    """Whether somebody listens to every event, or to warnings and the latest few exchanges only."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End cleanly."""

    hurry: bool = False
    """Do not wait for uploads."""


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Say that all you have sent before has been sent."""

    sequence: int


class Figures(msgspec.Struct, frozen=True):
    """What a worker has counted since it was started."""

    pages: int = 0
    responses: int = 0
    bytes: int = 0
    duplicates: int = 0
    errors: dict[str, int] = {}
    refused: dict[str, int] = {}
    statuses: dict[int, int] = {}
    in_flight: int = 0
    pages_per_s: float = 0.0
    peak_rss_bytes: int = 0
    near_duplicates: int = 0
    latencies: tuple[int, ...] = ()
    latency_ms: int = 0
    lookups: tuple[int, int] = (0, 0)
    lists: int = 0
    listed: int = 0
    plugins: dict[str, int] = {}
    rendered: int = 0
    render_gained: int = 0
    visit_parts: int = 0
    render_resources: int = 0
    render_missed: dict[str, int] = {}
    render_queue: int = 0
    browsers: int = 0
    browser_bytes: int = 0


class Beat(msgspec.Struct, frozen=True, tag=True):
    """The figures of a worker; the hosts and domains that it has met since the last beat; events to be heard."""

    figures: Figures
    hosts: list[int] = []
    domains: list[int] = []
    events: list[EventFields] = []


class Pong(msgspec.Struct, frozen=True, tag=True):
    """The answer to a ping."""

    sequence: int
    held: int
    """Leases that are worked on."""


class Unreachable(msgspec.Struct, frozen=True, tag=True):
    """A seed's origin does not answer: whoever read the seeds may know another one to try."""

    origin: str
    kind: FailureKind


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The last message of a worker: everything it had open is closed."""

    failure: str = ""
    hint: str = ""
    storage: bool = False
    """Whether it was the disk that failed."""


ToWorker: TypeAlias = Orders | Stop | Ping
FromWorker: TypeAlias = Beat | Pong | Unreachable | Ended

Out = TypeVar("Out")
In = TypeVar("In")

_LENGTH_BYTES = 4
_encode = msgspec.msgpack.Encoder().encode


class Channel(Generic[Out, In]):
    """One end of the connection between a supervisor and a worker."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, decoder: msgspec.msgpack.Decoder[In]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = decoder

    def send(self, message: Out) -> None:
        """Hand a message over; one to somebody who has died is lost, and his death is told otherwise."""
        if not self._writer.is_closing():
            packed = _encode(message)
            self._writer.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)

    async def receive(self) -> In | None:
        """The next message; None when the other end is closed."""
        try:
            length = await self._reader.readexactly(_LENGTH_BYTES)
            return self._decoder.decode(await self._reader.readexactly(int.from_bytes(length, "big")))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        """Send what is left and close."""
        try:
            await self._writer.drain()
            self._writer.close()
            await self._writer.wait_closed()
        except ConnectionError:
            return  # the other end was faster


async def supervisors_end(connection: socket.socket) -> Channel[ToWorker, FromWorker]:
    """The channel as the supervisor has it."""
    return Channel(*await asyncio.open_connection(sock=connection), msgspec.msgpack.Decoder(FromWorker))


async def workers_end(connection: socket.socket) -> Channel[FromWorker, ToWorker]:
    """The channel as a worker has it."""
    return Channel(*await asyncio.open_connection(sock=connection), msgspec.msgpack.Decoder(ToWorker))
