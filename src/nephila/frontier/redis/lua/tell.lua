-- Reading: counters, stories, rules. Nothing here writes.

-- When something can be claimed next on the timeline; 0 when now, -1 when nothing waits for a time.
function Tell.next_moment()
  local walking = Shard.sweeps() or X.replan ~= '' or X.lifting ~= ''
  if walking or redis.call('ZCARD', Later.now('since')) > 0 or Shelves.covers_no_more() then
    return 0
  end
  local soonest = -1
  for _, name in ipairs({ 'wait', 'due' }) do
    local first = redis.call('ZRANGE', Later.now(name), 0, 0, 'WITHSCORES')
    local moment = first[2] and tonumber(first[2])
    if moment and (soonest < 0 or moment < soonest) then
      soonest = moment
    end
  end
  return soonest
end

-- ARGV: clock
function Tell.snapshot(keys, args)
  Shard.open(keys[1], args[1])
  return {
    X.now, X.wall_ms, X.cycle, Tell.next_moment(), redis.call('HGETALL', X.P .. 'count'),
    redis.call('ZCARD', X.P .. 'since'), redis.call('ZCARD', X.P .. 'wait'), redis.call('HLEN', X.P .. 'lease'),
    redis.call('HLEN', X.P .. 'refused'), X.covered and 1 or 0, Shard.sweeps() and 1 or 0,
  }
end

local NAMES = { [0] = 'queued', 'delayed', 'completed', 'dropped', 'dead_letter' }

-- What is known of a URL: an array; nil when it was never met; the chunk that it is in, where that is missing. `kept` has what
-- was kept of the chunk, from `first` on.
local function story(host, fingerprint, kept, first)
  local kind, rank, _, number = Known.where(host, fingerprint)
  if not kind then
    return nil
  end
  local record, url, place, shelf, evidence = nil, nil, '', '', {}
  if kind == Known.HAS_RECORD then
    record = Urls.record(host, fingerprint)
    if not record then
      return nil
    end
    if record.bundle ~= 0 then
      place = Queue.place_in(Queue.load(host, string.format('%.0f', record.bundle)).member)
    end
  else
    local bundle = Queue.holding(host, fingerprint, kind, number)
    if not bundle then
      return nil
    end
    if bundle.spilled then
      local id = bundle.id
      bundle = kept and Spill.found(host, kept, first, fingerprint)
      if not bundle then
        return nil, id
      end
    end
    url = Queue.find(bundle, fingerprint)
    url.rank = rank
    place = Queue.place_in(bundle.member)
    record = Urls.new_record(url)
    if #bundle.member > 13 then
      shelf = Queue.REASONS[bundle.member:byte(1) - 128]
      if shelf == 'trap' then
        for _, tally in ipairs(Traps.all(host)) do
          if tally.group == bundle.member:sub(2, 9) then
            evidence = Tell.tally(tally)
          end
        end
      end
    end
  end
  local state = shelf ~= '' and 'parked' or NAMES[record.state]
  if shelf == '' and Claim.is_leased(host, fingerprint) then
    state = 'in_progress'
  elseif record.state == Urls.DONE and Urls.is_pending(host, record) then
    state = 'stored_pending'
  end
  local reason = shelf ~= '' and shelf or record.reason
  if reason == '' and record.state == Urls.QUEUED then
    reason = host.reason
  end
  local waits = record.state == Urls.DELAYED or (record.state == Urls.DONE and record.due_at > 0)
  local free = math.max(host.free_at, host.standing == Hosts.WAITING and host.next_at or 0)
  local lane, step = 0, -1
  if place ~= '' then
    lane, step = Policy.read_place(place)
  end
  return {
    Urls.spell(host, record.tail), fingerprint, host.name, state, record.level, record.depth, record.via, record.hops,
    record.retries, record.cycle, record.admitted, record.settled, reason, record.detail, record.status,
    waits and math.max(0, record.due_at - X.now) or -1, math.max(0, free - X.now), record.segment, record.offset,
    record.digest, record.rank, record.history, record.changed_at, lane > 3 and 1 or 0, step, evidence, record.etag,
    record.last_modified, record.trail, record.fetched,
  }
end

-- ARGV: clock, host, fingerprint, then what was kept of the chunk that it is in, if it is in one
function Tell.story(keys, args)
  Shard.open(keys[1], args[1])
  local host = Shard.host(args[2])
  local found, chunk
  if host then
    found, chunk = story(host, args[3], args, 4)
  end
  if chunk then
    return { 'spilled', chunk }
  elseif found then
    return { 'url', found }
  end
  local raw = redis.call('HGET', X.P .. 'refused', args[2] .. '\0' .. args[3])
  if raw then
    return { 'refused', cmsgpack.unpack(raw) }
  end
  return { 'unknown' }
end

-- Dead letters in key order. ARGV: clock, limit, after
function Tell.dead(keys, args)
  Shard.open(keys[1], args[1])
  local from = args[3] == '' and '-' or '(' .. args[3]
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', X.P .. 'dead', from, '+', 'LIMIT', 0, tonumber(args[2]))) do
    table.insert(found, story(Shard.host(member:sub(1, -18)), member:sub(-16)))
  end
  return found
end

function Tell.tally(tally)
  return {
    tally.pattern, tally.state, tally.barren, tally.fetched, tally.fresh, tally.duplicates, tally.repeats,
    tally.errors, tally.since_s, tally.not_before_s, tally.released, tally.flagged_s, tally.example, tally.group,
  }
end

local COUNTED = 400 -- bundles of a shelf, and chunks of it that are outside: no look at more of them

-- Tallies of a host, with the URLs on the shelf of each that holds some, and whether there are more. ARGV: clock, host
function Tell.tallies(keys, args)
  Shard.open(keys[1], args[1])
  local host, found = Shard.host(args[2]), {}
  for _, tally in ipairs(host and Traps.all(host) or {}) do
    local prefix, parked = string.char(128 + Queue.SHELF.trap) .. tally.group, 0
    local low, high = '[' .. prefix, '[' .. prefix .. string.rep('\255', 14)
    local members = redis.call('ZRANGEBYLEX', X.P .. 'z:' .. host.name, low, high, 'LIMIT', 0, COUNTED + 1)
    for at = 1, math.min(#members, COUNTED) do
      parked = parked + #Queue.items(Queue.load(host, Queue.number_in(members[at])))
    end
    local outside, more = Spill.of_row(host, prefix, COUNTED)
    table.insert(found, { Tell.tally(tally), parked + outside, (more or #members > COUNTED) and 1 or 0 })
  end
  return found
end

-- Names of hosts with patterns that are slowed or quarantined. ARGV: clock, limit
function Tell.flagged(keys, args)
  Shard.open(keys[1], args[1])
  return redis.call('ZRANGEBYLEX', X.P .. 'flagged', '-', '+', 'LIMIT', 0, tonumber(args[2]))
end

-- The rules of an origin, with their text. ARGV: clock, origin
function Tell.rules(keys, args)
  Shard.open(keys[1], args[1])
  local origin = Settle.origin(args[2])
  if not origin then
    return {}
  end
  table.insert(origin, redis.call('HGET', X.P .. 'rules', args[2]) or '')
  return origin
end

-- Whether a lease still exists and its task is not yet settled. ARGV: clock, token, fingerprint, origin
function Tell.holds(keys, args)
  Shard.open(keys[1], args[1])
  local lease = Claim.lease_of(args[2])
  if not lease then
    return 0
  end
  if args[3] == '' then
    return lease[3] == args[4] and 1 or 0
  end
  for _, fingerprint in ipairs(lease[4]) do
    if fingerprint == args[3] then
      return 1
    end
  end
  return 0
end

-- ARGV: clock, name
function Tell.host(keys, args)
  Shard.open(keys[1], args[1])
  local host = Shard.host(args[2])
  if not host then
    return {}
  end
  return {
    host.domain, host.standing, host.next_at, host.reason, host.free_at, host.released_at, host.delay_ms,
    host.crawl_delay_ms, host.fetched, host.fetched_in_cycle, host.urls, Queue.length(host),
    host.shelved[1] + host.shelved[2] + host.shelved[3], host.over, host.fresh, host.token, host.admitted,
    host.elapsed_ms, host.cycle, host.ref_hi, host.ref_lo,
  }
end

-- ARGV: clock, name
function Tell.domain(keys, args)
  Shard.open(keys[1], args[1])
  local domain = Shard.domain(args[2])
  if not domain.raw then
    return {}
  end
  return {
    domain.pages, domain.hosts, domain.hosts_over, domain.useful, domain.paused_until, domain.window,
    domain.errors_in_row, domain.lowered, domain.successes, domain.ref_hi, domain.ref_lo,
  }
end

-- Up to where segments are confirmed, as one shard has noted: name and end by turns. ARGV: clock, segments (none: all)
function Tell.marks(keys, args)
  Shard.open(keys[1], args[1])
  if not args[2] then
    return redis.call('HGETALL', X.P .. 'marks')
  end
  local found = {}
  for at = 2, #args do
    local upto = redis.call('HGET', X.P .. 'marks', args[at])
    if upto then
      found[#found + 1], found[#found + 2] = args[at], upto
    end
  end
  return found
end

-- Segments that pages of a shard wait for. ARGV: clock
function Tell.pending(keys, args)
  Shard.open(keys[1], args[1])
  return redis.call('SMEMBERS', X.P .. 'pends')
end

-- Holders of leases that have expired. ARGV: clock
function Tell.overdue(keys, args)
  Shard.open(keys[1], args[1])
  local found = {}
  for _, token in ipairs(redis.call('ZRANGEBYSCORE', X.P .. 'lends', '-inf', string.format('%.0f', X.now))) do
    table.insert(found, Claim.lease_of(token)[5])
  end
  return found
end

function Tell.now(keys, args)
  Shard.open(keys[1], args[1])
  return { X.now, X.wall_ms, X.cycle }
end

-- The host of a lease; empty when there is none. ARGV: clock, token
function Tell.host_of(keys, args)
  Shard.open(keys[1], args[1])
  local lease = Claim.lease_of(args[2])
  return lease and lease[1] or ''
end
