-- What becomes ready before anything is chosen: the sweep of a new cycle, what is due, hosts that have rested.

local SWEEP_STEP, DUE_STEP, PATIENT_STEP = 500, 500, 64 -- no claim looks at more, however large the frontier is

-- Whether the grades of hosts have to be asked for that the sweep comes to next.
local function lacks_for_sweep()
  if not X.graded then
    return false
  end
  for _, waiting in ipairs(redis.call('LRANGE', X.P .. 'sweeping', 0, SWEEP_STEP - 1)) do
    Grades.lacks(waiting:match('^(.*)%z%d+$'))
  end
  return #X.ungraded > 0
end

-- Move the next visit of a URL to where it is by the present rules.
local function revise(host, record, terms)
  if record.state ~= Urls.DONE or record.due_at == 0 then
    return
  end
  local policy, history = Shard.policy(host.domain), record.history
  local home = record.tail == 's/' or record.tail == 'h/'
  local revised = Policy.revised(terms, history, policy.tier, policy.recrawl_s, home)
  if revised ~= history[1] then
    local moment = record.due_at + (revised - history[1]) * 1000
    Urls.end_delay(host, record)
    Urls.delay(host, record, math.max(moment, X.now), 'due')
    history[1] = revised
    Urls.save(host, record)
  end
end

-- The next hosts of a walk over all of them: `stage` is where it has come to. Answers where it is then.
local function next_hosts(list, stage)
  local found = redis.call('HSCAN', X.P .. 'hosts', stage == 'begin' and '0' or stage, 'COUNT', SWEEP_STEP)
  local names = {}
  for position = 1, #found[2], 2 do
    table.insert(names, found[2][position])
  end
  table.sort(names)
  for _, name in ipairs(names) do
    redis.call('RPUSH', X.P .. list, name .. '\0' .. '0')
  end
  return found[1] == '0' and 'last' or found[1]
end

-- Some of the records of the first host of a walk, in order; it goes on behind them.
local function next_records(list, waiting)
  local name, at = waiting:match('^(.*)%z(%d+)$')
  local found, fingerprints = redis.call('HSCAN', Later.all_now('r:' .. name), at, 'COUNT', SWEEP_STEP), {}
  for position = 1, #found[2], 2 do
    table.insert(fingerprints, found[2][position])
  end
  table.sort(fingerprints)
  if found[1] == '0' then
    redis.call('LPOP', X.P .. list)
  else
    redis.call('LSET', X.P .. list, 0, name .. '\0' .. found[1])
  end
  return Shard.host(name), fingerprints
end

-- What visits are planned by has changed: they are looked at again, a step at a time (R2, R4).
function Claim.replan()
  if X.replan == '' then
    return
  end
  local terms, looked_at = X.rules.recrawl, 0
  local waiting = redis.call('LINDEX', X.P .. 'replanning', 0)
  if not terms then
    redis.call('DEL', X.P .. 'replanning')
    waiting, X.replan = false, 'last'
  elseif not waiting and X.replan ~= 'last' then
    X.replan = next_hosts('replanning', X.replan)
    waiting = redis.call('LINDEX', X.P .. 'replanning', 0)
  end
  while waiting and looked_at < SWEEP_STEP do
    local host, fingerprints = next_records('replanning', waiting)
    looked_at = looked_at + math.max(1, #fingerprints)
    for _, fingerprint in ipairs(fingerprints) do
      revise(host, Urls.record(host, fingerprint), terms)
    end
    waiting = redis.call('LINDEX', X.P .. 'replanning', 0)
  end
  if X.replan == 'last' and not waiting then
    X.replan = ''
  end
  Shard.set('replan', X.replan)
end

-- The limit of pages of a host was raised: those that were at it go on, a step at a time.
function Claim.lift()
  if X.lifting == '' then
    return
  end
  local step = redis.call('HSCAN', X.P .. 'parked', X.lifting, 'COUNT', SWEEP_STEP)
  for at = 1, #step[2], 2 do
    if step[2][at + 1] == 'host_limit' then
      Hosts.rest(Shard.host(step[2][at]))
    end
  end
  X.lifting = step[1] == '0' and '' or step[1]
  Shard.set('lifting', X.lifting)
end

-- A new cycle has begun: queue what ended in an earlier one, a step at a time.
function Claim.sweep()
  if not Shard.sweeps() then
    return
  end
  local waiting = redis.call('LINDEX', X.P .. 'sweeping', 0)
  if not waiting then
    X.sweep = next_hosts('sweeping', X.sweep)
    waiting = redis.call('LINDEX', X.P .. 'sweeping', 0)
  end
  if lacks_for_sweep() then
    Shard.set('sweep', X.sweep)
    return
  end
  local looked_at = 0
  while waiting and looked_at < SWEEP_STEP do
    local host, fingerprints = next_records('sweeping', waiting)
    looked_at = looked_at + math.max(1, #fingerprints)
    for _, fingerprint in ipairs(fingerprints) do
      local record = Urls.record(host, fingerprint)
      if record.state >= Urls.DONE and record.cycle < X.cycle then
        local rest_s = Urls.cooling_s(record)
        if rest_s > 0 then
          Urls.end_state(host, record)
          Urls.enter(host, record, Urls.DELAYED)
          record.cycle, record.retries, record.hops, record.reason = X.cycle, 0, 0, 'cooling'
          Urls.delay(host, record, X.now + math.floor(rest_s * 1000), 'cooling')
          Urls.save(host, record)
          if host.reason == 'host_limit' then -- what else it has may go on now
            Hosts.wake(host)
          end
        else
          Hosts.wake(host, { Queue.requeue(host, record) })
        end
      end
    end
    waiting = redis.call('LINDEX', X.P .. 'sweeping', 0)
  end
  if X.sweep == 'last' and not waiting then
    X.sweep = ''
  end
  Shard.set('sweep', X.sweep)
end

-- Let what was put off for coverage come back, once enough domains were fetched (S4).
function Claim.empty_coverage_shelves()
  if not Shelves.covers_no_more() then
    return
  end
  for _, member in ipairs(redis.call('ZRANGE', X.P .. 'covering', 0, DUE_STEP - 1)) do
    local host = Shard.host(member:match('^%Z*%z....(.*)$'))
    Shelves.end_coverage(host)
    Hosts.wake(host)
  end
end

-- Waiting may have lifted the class of hosts that have been ready for long (F7); a few at a time, in turn.
function Claim.refresh_classes()
  if X.rules.ordered then
    return
  end
  local patient = X.now - X.rules.step_ms
  local from = redis.call('HGET', X.P .. 'meta', 'patient') or '-inf'
  local members = redis.call(
    'ZRANGEBYSCORE', Later.now('since'), from, string.format('%.0f', patient), 'LIMIT', 0, PATIENT_STEP
  )
  local last
  for _, member in ipairs(members) do
    local host = Shard.host(member:sub(5))
    last = host.work_since
    local heads, same, ready = Hosts.heads(host), true, {}
    for _, key in ipairs(host.ready) do
      ready[key:byte(1)] = true
      same = same and heads[key:byte(1)] ~= nil
    end
    for lane in pairs(heads) do
      same = same and ready[lane]
    end
    if not same then
      Hosts.make_ready(host)
    end
  end
  local next_from = #members == PATIENT_STEP and string.format('(%.0f', last) or '-inf'
  if next_from ~= from then
    Shard.set('patient', next_from)
  end
end

-- Those of due URLs that can be scored: all, unless grades have to be asked for first (then none). Whoever has asked once in
-- this claim is not made to ask again for what became due meanwhile: that is for the next claim.
local function scorable(members, has_asked)
  if not X.graded then
    return members
  end
  local known = {}
  for _, member in ipairs(members) do
    local name = member:sub(1, -18)
    if has_asked and X.grades[name] or not has_asked and not Grades.lacks(name) then
      known[#known + 1] = member
    end
  end
  return #X.ungraded == 0 and known or {}
end

local function promote_due(has_asked)
  local horizon = string.format('%.0f', X.now + X.ahead)
  local members = redis.call('ZRANGEBYSCORE', X.P .. 'due', '-inf', horizon, 'LIMIT', 0, DUE_STEP)
  for _, member in ipairs(scorable(members, has_asked)) do
    local name, fingerprint = member:sub(1, -18), member:sub(-16)
    local host = Shard.host(name)
    local record = Urls.record(host, fingerprint)
    local due_at, place = record.due_at, nil
    if record.state == Urls.DONE then
      place = Queue.requeue(host, record)
    else
      Urls.end_state(host, record)
      place = Queue.put_back(host, record)
      Urls.save(host, record)
    end
    if host.token == 0 then
      Hosts.rest_after_reboot(host)
      host.free_at = math.max(host.free_at, due_at)
    end
    Hosts.wake(host, { place })
  end
end

local function promote_waiting(with_rules, most)
  local horizon = X.now + X.ahead
  local names = redis.call('ZRANGEBYSCORE', Later.now('wait'), '-inf', string.format('%.0f', horizon), 'LIMIT', 0, most)
  Shard.read_hosts(names)
  for _, name in ipairs(names) do
    local host = Shard.host(name)
    Hosts.rest_after_reboot(host)
    if host.free_at > horizon then
      Hosts.wait(host, host.free_at)
    elseif host.reason ~= 'robots_unavailable' or with_rules then
      if not Traps.lacks_for_probe(host) then
        Traps.take_probe(host)
        Hosts.make_ready(host)
      end
    end
  end
end

-- Make ready what may be claimed now; with one exchange at a time, retries come when there is nothing else.
function Claim.promote(most, has_asked)
  if X.rules.ordered then
    promote_waiting(false, most)
    -- A host that lacks patterns is ready as soon as they are given: retries wait for that, too.
    if #X.lacking > 0 or redis.call('ZCARD', Later.now('since')) > 0 then
      return
    end
  end
  promote_due(has_asked)
  if #X.ungraded == 0 then
    promote_waiting(true, most)
  end
end
