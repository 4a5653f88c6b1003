"""The figures of a fleet on the server that its workers share: bounded, and never less than they were (O2).

Each worker says every few seconds what its run has counted since its start. One script finds what has come since it
last did, and adds that to the totals of the crawl, to the present step of each chart and to the day. So a call may be
repeated, a worker may leave or die, and no total ever falls. Kept are: one record for each worker that is there, an
hour of steps of ten seconds, three days of steps of ten minutes, two months of days.

A *stretch* is the time in which somebody is at work without a long pause; what a crawl directory tells of its run, a
fleet tells of the present stretch.

One of the workers is the judge for a while (whoever publishes first when there is none): it alone looks for what is
wrong, and tells it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from nephila.interfaces.shared import Argument, SharedState
from nephila.node.logbook import (
    COARSE_POINTS,
    COARSE_S,
    DAYS,
    FINE_POINTS,
    FINE_S,
    Alert,
    Figures,
    Point,
    Present,
    Process,
    date_of,
)
from nephila.node.machine import together

from .flat import Flat, growth_of, less, point_of, put_counts
from .registry import check_crawl_name

STRETCH_MS = 300_000
"""So long a pause ends a stretch of work."""
FORGOTTEN_MS = 86_400_000
"""A worker that has not published for so long is not shown any more, and its record is thrown away."""
DAY_S = 86_400
_PARTS = ("meta", "latest", "runs", "fine", "coarse", "days", "judge")

_PUBLISH = """
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local id, writer, latest = ARGV[1], ARGV[2], ARGV[5]
local run, levels = cmsgpack.unpack(ARGV[3]), cmsgpack.unpack(ARGV[4])
local in_flight, interval = tonumber(ARGV[6]), tonumber(ARGV[7])
local before, known = {}, redis.call('HGET', KEYS[3], id)
local since = interval
if known then
  local was, at, counts = cmsgpack.unpack(known)
  since = math.max(0, math.min(now - at, 3 * interval))
  if was == writer then before = counts end
end
local grown = {}
for name, count in pairs(run) do
  local more = count - (before[name] or 0)
  if more > 0 then grown[name] = more end
end
redis.call('HSET', KEYS[3], id, cmsgpack.pack(writer, now, run))
redis.call('HSET', KEYS[2], id, string.format('%.0f ', now) .. latest)
local meta = redis.call('HMGET', KEYS[1], 'last', 'total')
local total = meta[2] and cmsgpack.unpack(meta[2]) or {}
if not meta[1] or now - tonumber(meta[1]) > tonumber(ARGV[8]) then
  redis.call('HSET', KEYS[1], 'begun', string.format('%.0f', now), 'base', cmsgpack.pack(total))
end
for name, more in pairs(grown) do total[name] = (total[name] or 0) + more end
redis.call('HSET', KEYS[1], 'last', string.format('%.0f', now), 'total', cmsgpack.pack(total))
grown.in_flight_ms = in_flight * since
for at = 9, #ARGV, 3 do
  local key, step = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
  local first = string.format('%.0f', now - now % step)
  local raw = redis.call('HGET', key, first)
  local point = raw and cmsgpack.unpack(raw) or {}
  for name, more in pairs(grown) do point[name] = (point[name] or 0) + more end
  for name, level in pairs(levels) do point[name] = level end
  redis.call('HSET', key, first, cmsgpack.pack(point))
  if not raw then
    local oldest = now - step * tonumber(ARGV[at + 2])
    for _, other in ipairs(redis.call('HKEYS', key)) do
      if tonumber(other) < oldest then redis.call('HDEL', key, other) end
    end
  end
end
local judge = redis.call('GET', KEYS[7])
if judge and judge ~= id then return 0 end
redis.call('SET', KEYS[7], id, 'PX', string.format('%.0f', 3 * interval + 5000))
return 1
"""

_LEAVE = """
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if redis.call('GET', KEYS[7]) == ARGV[1] then redis.call('DEL', KEYS[7]) end
return 1
"""

_READ = """
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local steps = {}
for at = 1, #ARGV, 3 do
  local key, step, from = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  if from == 0 then
    table.insert(steps, redis.call('HGETALL', key))
  else
    local found = {}
    for first = from, now, step do
      local name = string.format('%.0f', first)
      local raw = redis.call('HGET', key, name)
      if raw then
        table.insert(found, name)
        table.insert(found, raw)
      end
    end
    table.insert(steps, found)
  end
end
return {now, redis.call('HMGET', KEYS[1], 'begun', 'base', 'total', 'verdict'), redis.call('HGETALL', KEYS[2]), steps}
"""


class Latest(msgspec.Struct, frozen=True):
    """How things stand with one worker."""

    name: str
    group: str = ""
    started_at: int = 0
    stopping: bool = False
    pages: int = 0
    errors: int = 0
    pages_per_s: float = 0.0
    in_flight: int = 0
    hosts: int = 0
    process: Process = Process()
    busy_hosts: dict[str, int] = {}
    render_queue: int = 0
    browsers: int = 0
    browser_bytes: int = 0
    spool_segments: int = 0
    spool_bytes: int = 0
    waits_for: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """What the judge has found."""

    at: int = 0
    longest_wait_s: float = 0.0
    alerts: list[Alert] = []


@dataclass(frozen=True, slots=True)
class Publication:
    """What one worker says."""

    id: str
    writer: int
    counts: Flat
    levels: Flat
    latest: Latest


@dataclass(slots=True)
class Read:
    """What was read up to now, so that the next time only what may have changed is asked for."""

    fine: dict[int, Flat] = field(default_factory=dict)
    coarse: dict[int, Flat] = field(default_factory=dict)
    days: dict[int, Flat] = field(default_factory=dict)


_CHARTS = ((4, FINE_S, FINE_POINTS), (5, COARSE_S, COARSE_POINTS), (6, DAY_S, DAYS))
"""Which key holds steps of which length, and how many."""
_pack = msgspec.msgpack.Encoder().encode
_flat = msgspec.msgpack.Decoder(dict[str, int]).decode
_NOTHING = _pack([])
_latest = msgspec.json.Decoder(Latest).decode
_verdict = msgspec.json.Decoder(Verdict).decode


class SharedFigures:
    """The figures of one crawl."""

    def __init__(self, state: SharedState, crawl: str) -> None:
        self._state = state
        tag = f"nephila:{{{check_crawl_name(crawl)}}}:figures"
        self._keys = [f"{tag}:{part}" for part in _PARTS]
        self._read = Read()
        self.workers: dict[str, tuple[int, Latest]] = {}
        """By id: how long ago each has published, and what; as of the last `figures`."""
        self.forgotten: list[str] = []
        """Those who are not shown any more, for the judge to throw away."""

    async def publish(self, one: Publication, interval_s: float) -> bool:
        """Say what a worker has counted, and how things stand; whether it is the judge."""
        charts = [value for key, step_s, points in _CHARTS for value in (key, step_s * 1000, points)]
        told = msgspec.json.encode(one.latest)
        said: list[Argument] = [
            one.id,
            str(one.writer),
            _pack(one.counts),
            _pack(one.levels),
            told,
            one.latest.in_flight,
        ]
        interval_ms = int(interval_s * 1000)
        return bool(await self._state.run(_PUBLISH, self._keys, [*said, interval_ms, STRETCH_MS, *charts]))

    async def leave(self, worker_id: str) -> None:
        """A worker ends; what it has counted stays."""
        await self._state.run(_LEAVE, self._keys, [worker_id])

    async def judged(self, verdict: Verdict) -> None:
        """What the judge has found."""
        await self._state.call("HSET", self._keys[0], "verdict", msgspec.json.encode(verdict))

    async def figures(self, silent_s: float) -> Figures:
        """All of it, as a crawl directory keeps it. Workers count as being there that were heard of so lately."""
        known = (self._read.fine, self._read.coarse, self._read.days)
        asked = [
            value
            for (key, step_s, _), steps in zip(_CHARTS, known, strict=True)
            for value in (key, step_s * 1000, max(steps, default=0))
        ]
        now, (begun, base, total, verdict), latest, steps = await self._state.run(_READ, self._keys, asked)
        for (_, step_s, points), kept, found in zip(_CHARTS, known, steps, strict=True):
            kept.update((int(at), _flat(raw)) for at, raw in zip(found[::2], found[1::2], strict=True))
            for at in [at for at in kept if at < now - step_s * points * 1000]:
                del kept[at]
        self.workers, self.forgotten = {}, []
        for name, raw in zip(latest[::2], latest[1::2], strict=True):
            at, _, told = raw.partition(b" ")
            if now - int(at) < FORGOTTEN_MS:
                self.workers[name.decode()] = now - int(at), _latest(told)
            else:
                self.forgotten.append(name.decode())
        present = self._present(now, int(begun or 0), silent_s * 1000)
        put_counts(present, less(_counts(total), _counts(base)))
        if verdict:
            found_wrong = _verdict(verdict)
            present.longest_wait_s, present.alerts = found_wrong.longest_wait_s, list(found_wrong.alerts)
        return Figures(
            present=present,
            fine=_points(self._read.fine, FINE_S, now),
            coarse=_points(self._read.coarse, COARSE_S, now),
            days={date_of(at): growth_of(flat) for at, flat in sorted(self._read.days.items())},
        )

    def _present(self, now: int, begun: int, silent_ms: float) -> Present:
        """The sum over those who are there."""
        here = [told for age_ms, told in self.workers.values() if age_ms < silent_ms]
        busy: dict[str, int] = {}
        for one in here:
            for host, count in one.busy_hosts.items():
                busy[host] = busy.get(host, 0) + count
        present = Present(
            at=now,
            running=bool(here),
            stopping=bool(here) and all(one.stopping for one in here),
            started_at=begun,
            pages_per_s=sum(one.pages_per_s for one in here),
            hosts=sum(one.hosts for one in here),
            in_flight=sum(one.in_flight for one in here),
            workers=len(here),
            process=together([one.process for one in here]),
            busy_hosts=busy,
            render_queue=sum(one.render_queue for one in here),
        )
        present.rendering.browsers = sum(one.browsers for one in here)
        present.rendering.memory_bytes = sum(one.browser_bytes for one in here)
        return present


def _counts(raw: bytes | None) -> Flat:
    """Counts as a script has packed them: where there are none, they look like a list."""
    return {} if raw is None or raw == _NOTHING else _flat(raw)


def _points(steps: dict[int, Flat], step_s: int, now: int) -> list[Point]:
    return [point_of(at, steps[at], min(step_s * 1000, max(1000, now - at))) for at in sorted(steps)]
