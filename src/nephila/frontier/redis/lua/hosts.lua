-- Where hosts stand: idle, waiting for a time, ready, leased, or parked; never two of them.

local IDLE, WAITING, READY, PARKED = 0, 1, 2, 3
Hosts.IDLE, Hosts.WAITING, Hosts.READY, Hosts.PARKED = IDLE, WAITING, READY, PARKED
local READY_IN = {}
for lane = 0, 6 do
  READY_IN[lane] = 'ready:' .. lane
end
Hosts.READY_IN = READY_IN

function Hosts.leave(host)
  if host.standing == WAITING then
    Later.remove('wait', host.name)
  elseif host.standing == READY then
    for _, key in ipairs(host.ready) do
      Later.remove(READY_IN[key:byte(1)], key:sub(2) .. host.name)
      if X.ready then
        X.ready[key:byte(1)] = X.ready[key:byte(1)] - 1
      end
    end
    Later.remove('since', host.tie .. host.name)
  elseif host.standing == PARKED then
    redis.call('HDEL', X.P .. 'parked', host.name)
  end
  host.standing, host.ready, host.reason = IDLE, {}, ''
end

function Hosts.wait(host, moment, reason)
  Hosts.leave(host)
  host.standing, host.next_at, host.reason = WAITING, math.max(moment, 0), reason or ''
  Later.add('wait', string.format('%.0f', host.next_at), host.name)
end

function Hosts.park(host, reason)
  Hosts.leave(host)
  host.standing, host.reason = PARKED, reason
  redis.call('HSET', X.P .. 'parked', host.name, reason)
end

-- Put a free host where it belongs.
function Hosts.rest(host)
  if Queue.length(host) > 0 or host.robots > 0 then
    Hosts.wait(host, host.free_at)
  else
    Hosts.rest_without_work(host)
  end
end

local OUTSIDE_MS = 1000 -- how long a host waits for its queue, of which nothing is here (spilling.lua)

-- A host that has nothing to be asked for now.
function Hosts.rest_without_work(host)
  if Queue.length(host) > 0 then
    Hosts.wait(host, math.max(host.free_at, X.now + OUTSIDE_MS), 'spilled')
    return
  end
  host.work_since = 0
  if host.trap_at > 0 then
    Hosts.wait(host, math.max(host.free_at, host.trap_at), 'trap')
  elseif host.over == 1 then
    Hosts.park(host, 'over_budget')
  else
    Hosts.leave(host)
  end
end

function Hosts.lane_now(host, lane, step)
  return Policy.effective_lane(lane, step, X.step, X.rules, Shard.lowered(host.domain))
end

-- The best place of each lane that a host has work in by now; robots.txt counts as immediate work.
function Hosts.heads(host)
  if host.robots > 0 then
    return { [0] = Policy.pack_place(0, 0, 0, host.tie) }
  end
  local heads = {}
  for _, member in ipairs(Queue.firsts(host)) do
    local place = member:sub(1, 9)
    local lane, step = Policy.read_place(place)
    local now = Hosts.lane_now(host, lane, step)
    -- The lane byte aside: step, depth, tie.
    if heads[now] == nil or place:sub(2) < heads[now]:sub(2) then
      heads[now] = place
    end
  end
  return heads
end

-- Put a host among the ready ones, in the classes that its first URLs are in by now.
function Hosts.make_ready(host)
  local heads = Hosts.heads(host)
  if next(heads) == nil then
    Hosts.rest_without_work(host)
    return
  end
  Hosts.leave(host)
  if host.work_since == 0 then
    host.work_since = math.max(1, X.now)
  end
  host.standing = READY
  local count = math.min(Shard.domain(host.domain).pages, 0xFFFFFFFF)
  for lane, place in pairs(heads) do
    local rest, tie = place:sub(2, 5), place:sub(6, 9)
    local since = X.rules.ordered and ('\0\0\0\0' .. tie) or struct.pack('>I8', host.work_since)
    local member = struct.pack('>I4', count) .. rest .. since .. tie
    table.insert(host.ready, string.char(lane) .. member)
    Later.add(READY_IN[lane], 0, member .. host.name)
    if X.ready then
      X.ready[lane] = X.ready[lane] + 1
    end
  end
  Later.add('since', string.format('%.0f', host.work_since), host.tie .. host.name)
end

-- Whether a new place in a ready host's queue changes its place among the ready ones.
function Hosts.is_better(host, place)
  local lane, step = Policy.read_place(place)
  local now, rest = Hosts.lane_now(host, lane, step), place:sub(2, 5)
  for _, key in ipairs(host.ready) do
    if key:byte(1) == now then
      return rest < key:sub(6, 9)
    end
  end
  return true
end

-- Put a host where it belongs after work was added to its queue, at `places` (nil: anywhere).
function Hosts.wake(host, places)
  if host.token ~= 0 then
    return
  end
  if host.standing == IDLE then
    if host.free_at > X.now or host.robots > 0 or places == nil then
      Hosts.rest(host)
    else
      Hosts.make_ready(host)
    end
  elseif host.standing == READY then
    local better = places == nil
    for _, place in ipairs(places or {}) do
      better = better or Hosts.is_better(host, place)
    end
    if better then
      Hosts.make_ready(host)
    end
  elseif host.standing == PARKED then
    if host.reason == 'host_limit' and host.cycle < X.cycle then
      Hosts.wait(host, host.free_at)
    end
  elseif host.reason == 'trap' then
    Hosts.rest(host)
  end
end

function Hosts.base_delay(host)
  local wanted = Shard.policy(host.domain).delay_ms
  return wanted or X.rules.base_delay_ms
end

function Hosts.delay_of(host)
  return math.max(host.delay_ms < 0 and Hosts.base_delay(host) or host.delay_ms, host.crawl_delay_ms)
end

-- The clock that knew how long a host has rested is gone (a reboot, a fail-over): it rests one full delay anew.
function Hosts.rest_after_reboot(host)
  if X.rebooted_at > 0 and host.released_at > 0 and host.released_at <= X.rebooted_at then
    local rested_at = host.free_at + X.slept_ms - host.slept_ms
    host.free_at = math.max(rested_at, X.rebooted_at + Hosts.delay_of(host))
    host.slept_ms = X.slept_ms
  end
end

-- Give a host back whose lease ended, with a moment before which nobody may ask it.
function Hosts.free(host, free_at)
  host.token = 0
  Hosts.leave(host)
  host.free_at, host.released_at, host.slept_ms = free_at, X.now, X.slept_ms
  Hosts.rest(host)
end
