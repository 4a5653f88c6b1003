"""The ledger of addresses (P2): at most so many requests at once, and so many a second, to one server.

Thousands of hosts may live behind one address. The host shards know nothing of each other, so this is asked right
before a request leaves; who is refused goes back to the frontier and comes again. Two things are kept apart:

- *The limits are hard, and need no trust in anybody's punctuality.* A permit is granted only while fewer than
  `concurrency` are held and fewer than `burst` were granted within the last `span_ms`: so many as the rate allows in
  that time, rounded up to whole requests (10 within 1,000 ms; at 2.5 a second 3 within 1,200 ms).
- *The turns are a plan, so that nobody asks again and again.* A refusal reserves the next free turn for its host, and
  says when that is (virtual scheduling). Turns are spaced a little wider than the rate allows, because hosts come back
  some milliseconds late, each by another amount; and as wide as the slots are really held, because hosts that come at
  their time and find every slot taken would have to come again.

A host without a turn is let through where the limits leave room beside the turns of others; those count only as long as
hosts keep them, for a worker that has too much to do comes to everybody late. Who comes late is let through as soon as
the limits allow it, until its turn lapses.

What was granted dies with the process; a crawl that goes on assumes that the run before it used up all there was.

What must stay true: the limits hold whatever the order of calls; a plan that nobody keeps shuts nobody out; what is
remembered is bounded by the hosts and addresses of the last minutes.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass

from nephila.interfaces.addresses import AddressBusy, AddressPermit
from nephila.model.settings import PolitenessSettings

from .address_limits import AddressLimit, AddressLimits

SLACK = 1.05
"""Turns are so much further apart than the rate allows. Within a span of a second that leaves 50 ms for hosts that come
late, which is what a look-up in a near DNS cache and a group commit take together."""

LOAD = 0.85
"""Turns are planned for so much of what the slots of an address can serve: answers differ in length, and a slot that
is still held when the next host comes costs that host another round."""

MEAN_OVER = 32
"""The time for which permits are held is a mean over so many: one answer that hangs until its time is up must not push
the turns of all others apart, many of them must."""

HABIT_WEIGHT = 8
"""How well turns are kept is learned with an eighth of each one, as TCP learns a round trip (RFC 6298)."""

LAPSE_MS = 300_000
"""A turn that was missed by this much is forgotten: longer than any lease may hold a host up."""

SWEEP_FROM = 1024
"""Addresses from which on idle ones are looked for; then again whenever their number has doubled."""

NOTICE_STEP_MS = 10
"""Ends of exchanges that were broken off are counted in such steps: however many there are, it is a few numbers."""

Known = tuple[tuple[int, ...], tuple[tuple[int, int], ...], float, float, int]
"""Grants of the last span, ends of exchanges that we broke off and how many have each, the plan, and how long permits
are held (mean of)."""


@dataclass(frozen=True, slots=True)
class AddressFigures:
    """What the ledger holds, and has done."""

    addresses: int
    in_flight: int
    reserved: int
    granted: int
    refused: int


class MemoryAddressLedger:
    """Implements `interfaces.addresses.AddressLedger` for one process."""

    def __init__(self, limits: AddressLimits, resumed_at: int | None = None) -> None:
        """`resumed_at`: another process asked until then; what it was granted is not known, and taken for all."""
        self._limits = limits
        self._resumed_at = resumed_at
        self._servers: dict[str, Server] = {}
        self._sweep_at = SWEEP_FROM
        self._granted = self._refused = 0

    def share_among(self, workers: int) -> None:
        """So many workers ask beside each other, each by a ledger of its own: each has its part of every limit."""
        self._limits.share_among(workers)

    def ask(self, address: str, host: str, now_ms: int) -> AddressPermit | AddressBusy:
        """Whether `host` may send one request to `address` now."""
        counted = self._limits.of(address)
        server = self._servers.get(counted.key)
        if server is not None and server.limit is not counted.limit and server.limit != counted.limit:
            server.change(counted.limit)
        if server is None:
            self._sweep(now_ms)
            server = self._servers[counted.key] = Server(counted.limit, self._resumed_at)
        wait_ms = server.ask(host, now_ms)
        if wait_ms:
            self._refused += 1
            return AddressBusy(wait_ms)
        self._granted += 1
        return AddressPermit(counted.key, now_ms)

    def give_back(self, permit: AddressPermit, now_ms: int, *, notice_ms: int = 0) -> None:
        """The exchange has ended; `notice_ms` later for the server."""
        self._servers[permit.key].give_back(permit.granted_at, now_ms, notice_ms)

    def snapshot(self) -> AddressFigures:
        """The figures of this moment."""
        servers = self._servers.values()
        return AddressFigures(
            addresses=len(servers),
            in_flight=sum(server.in_flight for server in servers),
            reserved=sum(len(server.turns) for server in servers),
            granted=self._granted,
            refused=self._refused,
        )

    def _sweep(self, now_ms: int) -> None:
        """Forget addresses of which nothing needs to be known."""
        if len(self._servers) < self._sweep_at:
            return
        self._servers = {key: server for key, server in self._servers.items() if not server.is_idle(now_ms)}
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._servers))


class Server:
    """One address: what it is doing, what it was given lately, and who comes next."""

    __slots__ = (
        "_burst",
        "_coming",
        "_kept",
        "_mean_ms",
        "_measured",
        "_noticing",
        "_plan_ms",
        "_recent",
        "_span_ms",
        "in_flight",
        "limit",
        "turns",
    )

    def __init__(self, limit: AddressLimit, spent_at: int | None, most: int | None = None) -> None:
        """`most`: no more grants than this are remembered; a higher rate is counted over a shorter span instead."""
        self.change(limit, most)
        self._recent: deque[int] = deque() if spent_at is None else deque([spent_at] * self._burst)
        """When the permits of the last span were granted."""
        self._noticing: dict[int, int] = {}
        """Until when exchanges that we broke off count as going on, and how many do until then."""
        self._plan_ms = 0.0
        """The first time that is nobody's turn yet."""
        self._mean_ms = 0.0
        """How long permits are held."""
        self._measured = 0
        self._coming: deque[tuple[int, str]] = deque()
        """Turns in order; some are used or replaced since."""
        self._kept = 1.0
        """The share of turns that were kept lately."""
        self.in_flight = 0
        self.turns: OrderedDict[str, int] = OrderedDict()
        """The turn of each host that was refused, in order."""

    def change(self, limit: AddressLimit, most: int | None = None) -> None:
        """Let another limit hold from now on; what was granted counts under it."""
        self.limit = limit
        self._burst = min(math.ceil(limit.rate), most or math.ceil(limit.rate))
        self._span_ms = 1000 * self._burst / limit.rate

    def ask(self, host: str, now_ms: int) -> int:
        """0 when the request may leave, else the milliseconds until the host's turn."""
        self._forget(now_ms)
        turn = self.turns.get(host)
        due = turn is not None and turn <= now_ms
        near, soon = (0, 0) if due else self._awaited(host, now_ms)
        taken = self.in_flight + sum(self._noticing.values())
        promised = soon > 0 and soon >= self._burst - 1
        if taken + near < self.limit.concurrency and len(self._recent) + near < self._burst and not promised:
            self.in_flight += 1
            self._recent.append(now_ms)
            if self.turns.pop(host, None) is None:
                self._plan_ms = max(self._plan_ms, now_ms) + self._spacing_ms()
            return 0
        if turn is None or due:
            turn = self._reserve(host, now_ms)
        return turn - now_ms

    def give_back(self, granted_at: int, now_ms: int, notice_ms: int) -> None:
        """A permit is not held any more."""
        self.in_flight -= 1
        if notice_ms:
            self.break_off(1, now_ms + notice_ms)
        self._measured = min(self._measured + 1, MEAN_OVER)
        self._mean_ms += (now_ms + notice_ms - granted_at - self._mean_ms) / self._measured

    def break_off(self, count: int, until_ms: int) -> None:
        """So many exchanges were broken off, and end for the server at that time."""
        step = -(-until_ms // NOTICE_STEP_MS) * NOTICE_STEP_MS
        self._noticing[step] = self._noticing.get(step, 0) + count

    @property
    def known(self) -> Known:
        """What every process that asks this address must know."""
        return tuple(self._recent), tuple(self._noticing.items()), self._plan_ms, self._mean_ms, self._measured

    @known.setter
    def known(self, known: Known) -> None:
        recent, noticing, self._plan_ms, self._mean_ms, self._measured = known
        self._recent, self._noticing = deque(recent), dict(noticing)

    def forgettable_from(self) -> int:
        """When nothing of `known` matters any more, if nobody asks before."""
        granted = self._recent[-1] + self._span_ms if self._recent else 0
        return math.ceil(max(granted, self._plan_ms, *self._noticing, 0))

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing needs to be known of it."""
        self._forget(now_ms)
        busy = self.in_flight or self._noticing or self._recent or self.turns
        return not busy and self._plan_ms <= now_ms

    def _reserve(self, host: str, now_ms: int) -> int:
        """Give the host the next turn that is nobody's, not before the limits can leave room for it."""
        full = len(self._recent) >= self._burst
        room_ms = self._recent[0] + self._span_ms if full else now_ms + self._spacing_ms()
        turn = math.ceil(max(self._plan_ms, room_ms))
        self._plan_ms = turn + self._spacing_ms()
        self.turns.pop(host, None)
        self.turns[host] = turn
        self._coming.append((turn, host))
        return turn

    def _awaited(self, host: str, now_ms: int) -> tuple[int, int]:
        """How many others have their turn about now, and within a span from now: the room belongs to them."""
        near = soon = 0
        if not self._coming or self._kept < 0.5:
            return near, soon
        near_ms, soon_ms = now_ms + self._spacing_ms(), now_ms + self._span_ms
        for turn, other in self._coming:
            if turn >= near_ms and turn >= soon_ms:
                break
            if other != host and self.turns.get(other) == turn:
                near += turn < near_ms
                soon += turn < soon_ms
        return near, soon

    def _spacing_ms(self) -> float:
        """Between two turns: what the rate asks for, or what the slots can serve where that is less."""
        return max(self._span_ms / self._burst * SLACK, self._mean_ms / self.limit.concurrency / LOAD)

    def _forget(self, now_ms: int) -> None:
        """Drop what is past: grants of an earlier span, turns that nobody waits for any more or that have lapsed."""
        while self._recent and self._recent[0] <= now_ms - self._span_ms:
            self._recent.popleft()
        if self._noticing:
            self._noticing = {until: count for until, count in self._noticing.items() if until > now_ms}
        if self._coming:
            self._pass_over(now_ms - self._spacing_ms())
        while self.turns and next(iter(self.turns.values())) < now_ms - LAPSE_MS:
            self.turns.popitem(last=False)

    def _pass_over(self, missed_ms: float) -> None:
        """Take note of turns that are past, and whether they were kept."""
        while self._coming and self._coming[0][0] <= missed_ms:
            turn, host = self._coming.popleft()
            missed = self.turns.get(host) == turn
            self._kept += ((not missed) - self._kept) / HABIT_WEIGHT


def address_ledger(settings: PolitenessSettings, resumed_at: int | None = None) -> MemoryAddressLedger | None:
    """The ledger that the settings ask for; None where there is no limit (`--delay 0`). Raises `UsageError`."""
    standard = AddressLimit(settings.address_concurrency, settings.address_rate)
    limits = AddressLimits(standard, settings.address_limits)
    return MemoryAddressLedger(limits, resumed_at) if settings.delay_s > 0 else None
