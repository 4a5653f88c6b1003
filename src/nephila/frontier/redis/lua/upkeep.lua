-- What keeps a shard whole: opening, renewing, reaping, confirming, losing, cycles.

-- The server whose clock counts here: the process, for a new one may be on another machine.
local function time_keeper()
  return redis.call('INFO', 'server'):match('run_id:(%x+)')
end

-- ARGV: version, rules, cycle. A shard that is opened by several at once is the same afterwards.
function Upkeep.open(keys, args)
  local P = keys[1] .. ':'
  local before = redis.call('HMGET', P .. 'meta', 'version', 'rules')
  if before[2] and before[1] ~= args[1] then
    local was, now = cjson.decode(before[2]), cjson.decode(args[2])
    if was.terms and now.terms and was.terms ~= now.terms then
      redis.call('HSET', P .. 'meta', 'replan', 'begin') -- what visits are planned by has changed
    end
    local had, has = was.max_pages_per_host or 0, now.max_pages_per_host or 0
    if had > 0 and (has == 0 or has > had) then
      redis.call('HSET', P .. 'meta', 'lifting', '0') -- hosts that have had their pages may have more
    end
  end
  redis.call('HSET', P .. 'meta', 'version', args[1], 'rules', args[2])
  redis.call('HSETNX', P .. 'meta', 'keeper', time_keeper())
  local cycle = redis.call('HGET', P .. 'meta', 'cycle')
  if not cycle then
    redis.call('HSET', P .. 'meta', 'cycle', args[3])
  elseif tonumber(args[3]) > tonumber(cycle) then -- whoever began it did not come to this shard
    redis.call('HSET', P .. 'meta', 'cycle', args[3], 'sweep', 'begin')
  end
  return { 'OK', redis.call('HGET', P .. 'meta', 'anchor') or '' }
end

-- Limits may have been raised since: parked hosts are judged again. ARGV: clock
function Upkeep.unpark(keys, args)
  Shard.open(keys[1], args[1])
  local all, count = redis.call('HGETALL', X.P .. 'parked'), 0
  for at = 1, #all, 2 do
    if all[at + 1] ~= 'over_budget' then
      Hosts.rest(Shard.host(all[at]))
      count = count + 1
    end
  end
  Shard.close()
  return count
end

-- ARGV: clock, lease_ms, tokens
function Upkeep.renew(keys, args)
  Shard.open(keys[1], args[1])
  local kept, expires = {}, X.now + tonumber(args[2])
  for at = 3, #args do
    local lease = Claim.lease_of(args[at])
    if lease then
      lease[2] = expires
      redis.call('HSET', X.P .. 'lease', args[at], cmsgpack.pack(lease))
      redis.call('ZADD', X.P .. 'lends', string.format('%.0f', expires), args[at])
      table.insert(kept, args[at])
    end
  end
  Shard.close()
  return { expires, kept }
end

-- Return the hosts of leases that have expired; of all; or of one holder. Each waits a full delay.
-- ARGV: clock, which ('expired', 'all', 'holder', 'lent'), holder
function Upkeep.reap(keys, args)
  Shard.open(keys[1], args[1])
  local which, holder, ended = args[2], args[3], 0
  local upto = (which == 'expired' or which == 'lent') and string.format('%.0f', X.now) or '+inf'
  for _, token in ipairs(redis.call('ZRANGEBYSCORE', X.P .. 'lends', '-inf', upto)) do
    local lease = Claim.lease_of(token)
    if which == 'expired' or which == 'all' or lease[5] == holder then
      redis.call('HDEL', X.P .. 'lease', token)
      redis.call('ZREM', X.P .. 'lends', token)
      local host = Shard.host(lease[1])
      if string.format('%.0f', host.token) == token then
        -- A lease may be taken before its host may be asked: a Retry-After that was not over is kept.
        local promised = host.free_at + X.slept_ms - host.slept_ms
        Hosts.free(host, math.max(promised, X.now + Hosts.delay_of(host) + 1))
      end
      ended = ended + 1
    end
  end
  if ended > 0 or X.anchor then
    Shard.close()
  end
  return ended
end

-- Bytes of a segment before `upto` are durable. ARGV: clock, segment, upto, whether that is noted here: one shard of those
-- that have to do with a segment does
function Upkeep.confirm(keys, args)
  Shard.open(keys[1], args[1])
  local key = X.P .. 'pend:' .. args[2]
  local done = redis.call('ZREMRANGEBYSCORE', key, '-inf', args[3])
  Shard.count('pending', -done)
  if args[4] == '1' then
    redis.call('HSET', X.P .. 'marks', args[2], args[3])
  end
  if redis.call('EXISTS', key) == 0 then
    redis.call('SREM', X.P .. 'pends', args[2])
  end
  Shard.close()
  return done
end

-- Bytes after `valid_end` of a segment are gone: the pages that lay there are queued again.
-- ARGV: clock, segment, end, header
function Upkeep.lose(keys, args)
  Shard.open(keys[1], args[1])
  Grades.given(Shard.header(args[4]).grades)
  local members = redis.call('ZRANGEBYSCORE', X.P .. 'pend:' .. args[2], '(' .. args[3], '+inf')
  for _, member in ipairs(members) do
    Grades.lacks(member:sub(1, -18))
  end
  if #X.ungraded > 0 then
    return { 'GRADES', X.ungraded }
  end
  for _, member in ipairs(members) do
    local host = Shard.host(member:sub(1, -18))
    local record = Urls.record(host, member:sub(-16))
    if record.page == 1 then
      Shard.count('pages', -1)
      if record.cycle == X.cycle then
        Shard.count('pages:' .. X.cycle, -1)
        host.fetched_in_cycle = host.fetched_in_cycle - (host.cycle == X.cycle and 1 or 0)
      end
    end
    Hosts.wake(host, { Queue.requeue(host, record) })
  end
  if redis.call('EXISTS', Later.now('pend:' .. args[2])) == 0 then
    redis.call('SREM', X.P .. 'pends', args[2])
  end
  Shard.close()
  return { 'OK', #members }
end

-- A cycle begins; repeated calls change nothing. ARGV: clock, cycle
function Upkeep.begin_cycle(keys, args)
  Shard.open(keys[1], args[1])
  local cycle = tonumber(args[2])
  if cycle > X.cycle then
    X.cycle = cycle
    Shard.set('cycle', cycle)
    Shard.set('sweep', 'begin')
  end
  Shard.close()
  return X.cycle
end

-- The server that kept this shard's time may be another one now: then every host rests one full delay. All workers notice that,
-- each at its own time, and the first who says so is enough: else nobody could be asked until the last of them has. ARGV: clock
function Upkeep.rest(keys, args)
  Shard.open(keys[1], args[1])
  local keeper = time_keeper()
  if redis.call('HGET', X.P .. 'meta', 'keeper') ~= keeper then
    Shard.set('keeper', keeper)
    Shard.set('rebooted_at', X.now)
  end
  Shard.close()
  return X.now
end

-- Enough domains were fetched in all shards together. ARGV: clock
function Upkeep.cover(keys, args)
  Shard.open(keys[1], args[1])
  Shard.set('covered', '1')
  Shard.close()
  return 1
end
