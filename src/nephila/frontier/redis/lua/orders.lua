-- A person's orders: policies, blocks, traps let go, dead letters put back.

local LIFTED = { paused = true, blocked = true, hours = true, domain_errors = true }

local function hosts_of(domain)
  local found, cursor = {}, '0'
  repeat
    local step = redis.call('HSCAN', X.P .. 'hosts', cursor, 'MATCH', '*' .. domain, 'COUNT', 1000)
    cursor = step[1]
    for at = 1, #step[2], 2 do
      local host = Shard.host(step[2][at])
      if host.domain == domain then
        table.insert(found, host)
      end
    end
  until cursor == '0'
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

-- Let a policy hold for a domain from the next claim on; what held its hosts back may hold no longer.
-- ARGV: clock, domain, policy (empty takes it back); where given, what is kept of it until now: else nothing is done
function Orders.set_policy(keys, args)
  if args[4] and args[4] ~= (redis.call('HGET', keys[1] .. ':policies', args[2]) or '') then
    return 0
  end
  Shard.open(keys[1], args[1])
  local domain = args[2]
  Shard.domain(domain)
  local before = Shard.policy(domain)
  X.policy[domain] = nil
  if args[3] == '' then
    redis.call('HDEL', X.P .. 'policies', domain)
  else
    redis.call('HSET', X.P .. 'policies', domain, args[3])
  end
  X.policies = redis.call('HLEN', X.P .. 'policies')
  Shard.set('policies', X.policies)
  local hosts, now = hosts_of(domain), Shard.policy(domain)
  if before.max_depth and not (now.max_depth and now.max_depth <= before.max_depth) then
    Shard.count('lifted', 1)
  end
  if before.recrawl_s ~= now.recrawl_s or before.tier ~= now.tier then
    for _, host in ipairs(hosts) do
      redis.call('RPUSH', X.P .. 'replanning', host.name .. '\0' .. '0')
    end
    if X.replan == '' then
      Shard.set('replan', 'last')
    end
  end
  for _, host in ipairs(hosts) do
    if host.standing == Hosts.PARKED and host.token == 0 and LIFTED[host.reason] then
      Hosts.rest(host)
    end
  end
  if #hosts > 0 then
    Shelves.take_on_hosts(domain)
  end
  for _, host in ipairs(hosts) do
    if Shelves.refill(host) > 0 then
      Hosts.wake(host)
    end
    if host.standing == Hosts.WAITING and host.token == 0 and LIFTED[host.reason] then
      Hosts.rest(host)
      Hosts.wake(host)
    end
  end
  Shard.close()
  return 1
end

-- ARGV: clock, pattern, block
function Orders.block(keys, args)
  Shard.open(keys[1], args[1])
  redis.call('HSET', X.P .. 'blocks', args[2], args[3])
  Shard.set('blocks', redis.call('HLEN', X.P .. 'blocks'))
  Shard.close()
  return 1
end

-- ARGV: clock, pattern
function Orders.unblock(keys, args)
  Shard.open(keys[1], args[1])
  local gone = redis.call('HDEL', X.P .. 'blocks', args[2])
  if gone == 1 then
    X.blocks = redis.call('HLEN', X.P .. 'blocks')
    Shard.set('blocks', X.blocks)
    Shard.count('lifted', 1) -- what was kept out is new again, and workers tell of it once more (told.py)
    local all = redis.call('HGETALL', X.P .. 'parked')
    for at = 1, #all, 2 do
      if all[at + 1] == 'blocked' then
        Hosts.rest(Shard.host(all[at]))
      end
    end
  end
  Shard.close()
  return gone
end

-- ARGV: clock, host, group, header with patterns
function Orders.release_trap(keys, args)
  Shard.open(keys[1], args[1])
  Traps.given(Shard.header(args[4]).patterns)
  local host = Shard.host(args[2])
  if not host then
    return { 'OK', 0 }
  end
  if Traps.lacks_for_probe(host, true) then
    return { 'PATTERNS', X.lacking }
  end
  local count = Traps.release(host, args[3])
  Shard.close()
  return { 'OK', count }
end

-- Put URLs back that have ended: dead letters (which = 'dead'), or any that are not queued, in a class.
-- ARGV: clock, which, level, then host, fingerprint and grade of each
function Orders.bring_back(keys, args)
  Shard.open(keys[1], args[1])
  local count = 0
  for at = 4, #args, 3 do
    local host = Shard.host(args[at])
    Grades.take(args[at], tonumber(args[at + 2]))
    if host and Known.has_record(host, args[at + 1]) then
      local record = Urls.record(host, args[at + 1])
      local wanted = args[2] == 'dead' and record.state == Urls.DEAD or args[2] == 'any' and record.state ~= Urls.QUEUED
      if wanted then
        Hosts.wake(host, { Queue.requeue(host, record, tonumber(args[3])) })
        count = count + 1
      end
    end
  end
  Shard.close()
  return count
end
