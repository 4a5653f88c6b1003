-- robots.txt as it is settled, and what is known of origins.

local function origin_of(name)
  local raw = redis.call('HGET', X.P .. 'origins', name)
  return raw and cmsgpack.unpack(raw) or nil
end
Settle.origin = origin_of

-- kind, stored_at, fresh_until, status, failing_since, detail, moved_at
local function put_origin(name, origin, body)
  redis.call('HSET', X.P .. 'origins', name, cmsgpack.pack(origin))
  if body then
    redis.call('HSET', X.P .. 'rules', name, body)
  end
end
Settle.put_origin = put_origin

-- The rules of an origin are known now: its host goes on where it waited for them.
function Settle.learn(rules, body, crawl_delay_ms)
  put_origin(rules.origin, {
    rules.kind, rules.stored_at, rules.fresh_until, rules.status, rules.failing_since, rules.detail, 0,
  }, body)
  local host = Shard.host(rules.host)
  if host == nil or host.token ~= 0 then
    return
  end
  if crawl_delay_ms > 0 then
    host.crawl_delay_ms = crawl_delay_ms
    host.free_at = math.max(host.free_at, host.released_at + crawl_delay_ms + 1)
  end
  if host.standing == Hosts.WAITING and host.reason == 'robots_unavailable' then
    Hosts.wait(host, host.free_at)
  end
end

-- The rules of an origin are looked for elsewhere.
function Settle.moved(name)
  local origin = origin_of(name)
  if origin then
    origin[3], origin[7] = 0, math.max(1, X.now)
    put_origin(name, origin)
  else
    put_origin(name, { 'unavailable', 0, 0, 0, 0, '', math.max(1, X.now) }, '')
  end
end

-- A robots.txt waits in the queue of a host.
function Settle.queue_robots(moved)
  local target = Admit.host_for(moved.host, moved.domain, moved.tie)
  local key = X.P .. 'rb:' .. target.name
  target.robots = target.robots + redis.call('HSET', key, moved.origin, cmsgpack.pack({ moved.url, moved.hops }))
  local at_limit = target.reason == 'host_limit' -- of pages: a robots.txt may still be asked for
  if target.token == 0 and (target.standing ~= Hosts.PARKED or at_limit) then
    Hosts.rest(target)
  end
end

local function forget_robots(host, origin)
  host.robots = host.robots - redis.call('HDEL', X.P .. 'rb:' .. host.name, origin)
end

function Settle.end_robots(host, settlement)
  local outcome = settlement.outcome
  if outcome.kind == 'learned' then
    forget_robots(host, settlement.origin)
    if outcome.here then
      Settle.learn(outcome.rules, settlement.body, outcome.crawl_delay_ms)
    end
    Settle.check_health(host, outcome)
  elseif outcome.kind == 'moved' then
    forget_robots(host, settlement.origin)
    if outcome.here then
      Settle.moved(settlement.origin)
    end
    if outcome.target then
      outcome.target.tie = settlement.body
      Settle.queue_robots(outcome.target)
    end
  end
  return Admit.all(settlement.groups, { via = '', bit = -1, domain = '', first_rank = Policy.SEED_RANK, salt = 0 })
end
