"""One request as the trail knows it, on its way through the sorting by time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec


class Came(StrEnum):
    """What a request for a robots.txt came to (P1)."""

    NOTHING = ""
    """It was no robots.txt, or its answer never counted."""
    RULES = "rules"
    OPEN = "open"
    """No restrictions: 4xx, or a redirect that leads nowhere."""
    MOVED = "moved"
    FAILING = "failing"
    """429, 5xx, cut off, no answer: the last good rules, or none."""
    LOST = "lost"
    """It was answered, and the answer is not in the archive."""


class Request(msgspec.Struct, array_like=True):
    """A request, from the archive or from the event log."""

    boot: int
    """The boots of the machine, counted in the order in which the trail tells of them."""
    sent_ms: int
    """On the clock of that boot."""
    elapsed_ms: int
    wall_at: int
    """When it was sent, by the wall clock: for people, and across boots."""
    host: str
    origin: str
    """Of a page its own, of a robots.txt the one that it was asked for."""
    url: str
    terms: int
    """Which terms it was sent under."""
    archived: bool = True
    is_robots: bool = False
    came: Came = Came.NOTHING
    rules: str = ""
    """The SHA-256 of the rules that it brought."""
    address: str = ""
    status: int = 0
    agent: str = ""
    policy_ms: int = -1
    retry_after_ms: int = 0
    stretch: int = -1
    """Which process of the event log told of it."""
    answered: bool = False
    """Whether the event log says that the archive holds an answer."""
    late: bool = False
    ended_at: int = 0
    """By the wall clock."""
    visit: str = ""
    """Which visit it belongs to; empty for a request that stands alone (J3)."""
    is_part: bool = False
    """Whether a page in a browser asked for it."""
    again: bool = False
    """Whether that page had waited, and was shown again: its own request is that of an earlier visit."""
    is_resource: bool = False
    """Whether pages of other hosts need it: a request like any other, and no page."""
    claims: int = 0
    """When the rules were read that a page says it was asked for under, by the wall clock."""

    @property
    def end_ms(self) -> int:
        """When it had ended, on the clock of its boot."""
        return self.sent_ms + self.elapsed_ms


@dataclass(slots=True)
class Stretch:
    """What one process told in one event file."""

    boot: int
    end_ms: int = 0
    """When the last request had ended that it told of."""
    waits: bool = False
    """Whether archive files of its worker have not arrived where they can be read."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Request)


def sortable_by(moment_ms: int, request: Request) -> bytes:
    """A line that sorts by a moment."""
    return f"{moment_ms:016d}\t".encode() + _encoder.encode(request) + b"\n"


def sortable(request: Request) -> bytes:
    """A line that sorts by boot, time and host, archives before events."""
    key = f"{request.boot:06d}{request.sent_ms:016d}{request.host} {int(not request.archived)}\t"
    return key.encode("utf-8", "replace") + _encoder.encode(request) + b"\n"


def unsorted(line: bytes) -> Request:
    """The request of such a line."""
    return _decoder.decode(line[line.index(b"\t") + 1 :])
