-- Leases: what is kept of one, and what its holder is told.

-- Leases: host, expires_at, origin, fingerprints, holder, request, the number of the bundle of each (empty: it has a record)

function Claim.lease_of(token)
  local raw = redis.call('HGET', X.P .. 'lease', token)
  return raw and cmsgpack.unpack(raw) or nil
end

function Claim.is_leased(host, fingerprint)
  if host.token == 0 then
    return false
  end
  local lease = X.settling
  if not lease or lease[1] ~= host.name then
    lease = Claim.lease_of(string.format('%.0f', host.token))
  end
  for _, fp in ipairs(lease and lease[4] or {}) do
    if fp == fingerprint then
      return true
    end
  end
  return false
end

-- The bundle that a leased URL without a record is in.
function Claim.bundle_of(host, lease, fingerprint, kind, noted)
  for at, fp in ipairs(lease[4]) do
    local bundle = fp == fingerprint and Queue.load(host, lease[7][at])
    if bundle and not bundle.spilled and Queue.find(bundle, fingerprint) then
      return bundle
    end
  end
  return Queue.holding(host, fingerprint, kind, noted)
end

-- What a caller is told of a lease

function Claim.page_task(host, url)
  local record = url.record
  if not record then
    return {
      'n', url.fp, url.url, url.depth, url.level, url.hops, url.cycle, url.via, url.rank or Queue.rank_of(host, url),
    }
  end
  return {
    'p', url.fp, url.url, url.depth, record.level, record.hops, record.retries, record.cycle, record.etag,
    record.last_modified, record.digest, record.via, record.trail, record.fetched, record.history, record.rank,
    record.segment ~= '' and 1 or 0,
  }
end

function Claim.told(host, token, lease, tasks, rules_at)
  local policy = Shard.policy(host.domain)
  return {
    token, host.name, host.domain, math.max(X.now, host.free_at), lease[2],
    host.delay_ms < 0 and Hosts.base_delay(host) or host.delay_ms, host.crawl_delay_ms, policy.delay_ms or -1, X.now,
    rules_at, policy.user_agent, host.lied_in, Shard.domain(host.domain).pages, policy.tier,
    policy.recrawl_s and tostring(policy.recrawl_s) or '', tasks, X.cycle, policy.render or 'auto',
  }
end

function Claim.make(host, tasks, origin, fingerprints, rules_at, numbers)
  X.tokens = X.tokens + 1
  local token = X.tokens * X.rules.shards + X.rules.shard
  local name = string.format('%.0f', token)
  Hosts.leave(host)
  host.token = token
  local lease = { host.name, X.now + X.lease_ms, origin, fingerprints, X.holder, X.request, numbers or {} }
  Later.set('lease', name, cmsgpack.pack(lease))
  Later.add('lends', string.format('%.0f', lease[2]), name)
  table.insert(X.granted, name)
  return Claim.told(host, token, lease, tasks, rules_at)
end

function Claim.robots_task(host, origin)
  local raw = redis.call('HGET', X.P .. 'rb:' .. host.name, origin)
  local entry = cmsgpack.unpack(raw)
  return { 'r', origin, entry[1], entry[2] }
end

local CLAIMS_AT_ONCE, CLAIMS_EVERY = 8, 8 -- so many are looked at, in one of so many claims that are noted

-- Note what a call was given, for its repeat. What is noted of others whose leases have all ended says nothing any more: of some
-- that are drawn it is forgotten, or every worker that ever was would be remembered.
function Claim.note_granted(worker, request)
  local key = X.P .. 'claims'
  local is_new = redis.call('HSET', key, worker, request .. table.concat(X.granted, ',')) == 1
  if not is_new or X.tokens % CLAIMS_EVERY ~= 0 then
    return
  end
  for _, other in ipairs(redis.call('HRANDFIELD', key, CLAIMS_AT_ONCE)) do
    local held = other == worker
    for token in redis.call('HGET', key, other):sub(9):gmatch('%d+') do
      held = held or redis.call('HEXISTS', X.P .. 'lease', token) == 1
    end
    if not held then
      redis.call('HDEL', key, other)
    end
  end
end

-- The leases that a repeated call was given the first time.
function Claim.told_again(worker, request)
  local before = redis.call('HGET', X.P .. 'claims', worker)
  if not before or before:sub(1, 8) ~= request then
    return nil
  end
  local leases = {}
  for name in before:sub(9):gmatch('%d+') do
    local lease = Claim.lease_of(name)
    local host = lease and Shard.host(lease[1])
    if host and string.format('%.0f', host.token) == name then
      local tasks, rules_at = {}, 0
      if lease[3] ~= '' then
        tasks[1] = Claim.robots_task(host, lease[3])
      end
      for at, fingerprint in ipairs(lease[4]) do
        local url = Claim.url_at(host, fingerprint)
        tasks[at] = Claim.page_task(host, url)
        local known = X.rules.robots and Settle.origin(Urls.origin(url.url))
        rules_at = known and known[2] or 0
      end
      table.insert(leases, Claim.told(host, tonumber(name), lease, tasks, rules_at))
    end
  end
  return leases
end

-- A URL that waits in its host's queue, as a claim sees it.
function Claim.url_at(host, fingerprint)
  local kind, _, _, number = Known.where(host, fingerprint)
  local record = kind == Known.HAS_RECORD and Urls.record(host, fingerprint) or nil
  local bundle
  if record then
    bundle = Queue.load(host, string.format('%.0f', record.bundle))
  else
    bundle = Queue.holding(host, fingerprint, kind, number)
  end
  local url = Queue.find(bundle, fingerprint)
  url.record = record
  url.url = Urls.spell(host, record and record.tail or url.tail)
  return url
end
