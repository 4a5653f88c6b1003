"""Pages that wait for resources of other hosts: put back into their queue, kept, and shown again (J3).

The answer that a page came with lies on the shelf meanwhile, together with what its own host gave it, so that neither
is asked for twice. The page goes back as deferred, for as long as what it needs is likely to take, and is looked at
again then: whether all has come, or is known not to come, or its time is up. Where its answer is lost (the shelf is
full, another machine has it), it is asked for again.

What must stay true: a page waits so many times and so long at most, and is then shown with what there is; its requests
are counted over all of its showings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from nephila.interfaces.clock import Clock
from nephila.interfaces.renderer import Shelf
from nephila.model.exchange import Fetched
from nephila.model.noun import noun
from nephila.model.rendering import Sign, Supplied
from nephila.model.settings import RenderSettings
from nephila.model.task import Candidate, PageTask

from .elsewhere import ABSENT, Elsewhere
from .resources import ResourceNotes

MAX_BYTES = 8 << 20
"""Of one page with all that it was given: a larger one does not wait."""
MARGIN_MS = 300_000
"""Over its time, how long an answer is kept for its page: a host may have its turn late."""
HOSTS_REMEMBERED = 65_536
"""Hosts with pages that wait: none does so for longer than some minutes."""
LOOK_MS = (2_000, 4_000, 8_000, 15_000)
"""When it is looked for what a page waits for, the first time and after every look in vain."""


class Held(msgspec.Struct, array_like=True, frozen=True):
    """A page that waits, and all that is needed to go on with it. Times are UTC milliseconds."""

    cycle: int
    sign: Sign
    waits: int
    """How often it has been put off for something that it needs."""
    looks: int
    """How often it was looked for that, the last time."""
    until: int
    """When its time is up."""
    requests: int
    """What was asked of its host, itself included."""
    visit: tuple[int, int]
    """Token and attempt of its first visit: its archive record names it."""
    wanted: dict[str, int]
    """What it has waited for so far, and since when."""
    parts: dict[str, Supplied]
    """What its own host gave it."""
    first: bytes
    """The document when it began to wait: what waiting was good for shows when it ends."""
    answer: Fetched


@noun
class Waiting:
    """A page is put off until what it needs has come."""

    wait_ms: int
    links: Sequence[Candidate] = ()
    """What it needs, and nobody has asked for yet."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Held).decode


class Holding:
    """Keeps pages that wait."""

    def __init__(self, shelf: Shelf, notes: ResourceNotes, settings: RenderSettings, clock: Clock) -> None:
        self.notes = notes
        self._shelf = shelf
        self._settings = settings
        self._clock = clock
        self._hosts: dict[str, None] = {}
        """Whose pages were put off, those of last time last."""

    def elsewhere(self, task: PageTask, host: str, held: Held | None, is_worth: Callable[[str], bool]) -> Elsewhere:
        """What a page may have of other hosts; `is_worth` says which of them are worth waiting for."""
        last = held is not None and (held.waits >= self._settings.rounds or self._clock.wall_ms() >= held.until)
        since: Mapping[str, int] = {} if held is None else held.wanted
        page = (task.url, host, task.depth)
        return Elsewhere(self.notes, self._settings, page, since, last=last, is_worth=is_worth)

    def has_some_of(self, host: str) -> bool:
        """Whether pages of a host were put off by this process."""
        return host in self._hosts

    async def find(self, task: PageTask) -> Held | None:
        """The page, if it waits."""
        packed = await self._shelf.find(_name(task))
        try:
            held = None if packed is None else _decode(packed)
        except (msgspec.DecodeError, UnicodeDecodeError):  # of another version
            return None
        return held if held is not None and held.cycle == task.cycle else None

    async def look(self, task: PageTask, held: Held) -> int:
        """How long a page waits on; 0 when it is to be shown."""
        missing = [url for url, since in held.wanted.items() if not await self._has_come(url, since)]
        if not missing:
            return 0
        if self._clock.wall_ms() >= held.until:
            for url in missing:  # nobody else is to wait for it that long
                await self.notes.refuse(url, ABSENT)
            return 0
        again = msgspec.structs.replace(held, looks=held.looks + 1)
        return LOOK_MS[min(again.looks, len(LOOK_MS) - 1)] if await self._put(task, again) else 0

    async def _has_come(self, url: str, since: int) -> bool:
        note = await self.notes.find(url)
        if self.notes.answers(note, since) or self.notes.refuses(note):
            return True
        return not self.notes.is_awaited(note)

    async def hold(self, task: PageTask, host: str, held: Held, elsewhere: Elsewhere, delay_ms: int) -> Waiting | None:
        """Put a page off until what it wants has come; None where it cannot be kept. `delay_ms`: of one request."""
        links = await elsewhere.ask()
        now = self._clock.wall_ms()
        until = held.until or now + int(self._settings.wait_s * 1000)
        wanted = {**held.wanted, **elsewhere.wanted}
        held = msgspec.structs.replace(held, waits=held.waits + 1, looks=0, until=until, wanted=wanted)
        if not await self._put(task, held):
            return None
        self._hosts.pop(host, None)
        self._hosts[host] = None
        if len(self._hosts) > HOSTS_REMEMBERED:
            del self._hosts[next(iter(self._hosts))]
        needed_ms = delay_ms * (1 + _most_of_one_host(links)) if links else 0
        return Waiting(min(max(LOOK_MS[0], needed_ms), LOOK_MS[-1]), links)

    async def let_go(self, task: PageTask) -> None:
        """A page has been settled."""
        await self._shelf.drop(_name(task))

    async def _put(self, task: PageTask, held: Held) -> bool:
        packed = _encode(held)
        lasts = held.until - self._clock.wall_ms() + MARGIN_MS
        return len(packed) <= MAX_BYTES and await self._shelf.keep(_name(task), packed, lasts)


def _most_of_one_host(links: Sequence[Candidate]) -> int:
    hosts = [link.address.host for link in links]
    return max(hosts.count(host) for host in set(hosts))


def _name(task: PageTask) -> str:
    return "page-" + task.fingerprint.hex()
