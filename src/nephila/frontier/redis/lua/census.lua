-- Lists for people: hosts, domains, what is lent. Nothing here writes; each call looks at a bounded number of entries.

-- A host as it is added up: name, domain, standing (4 is leased), reason, queued, fetched, delay, mean, parked, next, last
local function figures(host)
  local standing = host.token ~= 0 and 4 or host.standing
  local next_at = math.max(host.free_at, host.standing == Hosts.WAITING and host.next_at or 0)
  return {
    host.name, host.domain, standing, host.reason, Queue.length(host), host.fetched,
    math.max(host.delay_ms, host.crawl_delay_ms), host.elapsed_ms, host.shelved[1] + host.shelved[2] + host.shelved[3],
    next_at > X.now and next_at or 0, host.released_at,
  }
end

-- A domain's own: name, pages, hosts, errors among its last requests, whether it is left alone for them
local function of_domain(domain)
  local _, errors = domain.window:gsub('1', '')
  return { domain.name, domain.pages, domain.hosts + domain.hosts_over, errors, domain.paused_until > X.now and 1 or 0 }
end

local function scanned(key, cursor, count, pattern)
  return redis.call('HSCAN', X.P .. key, cursor, 'MATCH', pattern or '*', 'COUNT', count)
end

-- ARGV: clock, cursor, count. Answers the next cursor ('0' at the end) and hosts.
function Tell.census_hosts(keys, args)
  Shard.open(keys[1], args[1])
  local step, found = scanned('hosts', args[2], args[3]), {}
  for at = 1, #step[2], 2 do
    Shard.read_glance(step[2][at], step[2][at + 1])
    table.insert(found, figures(Shard.host(step[2][at])))
  end
  return { step[1], found }
end

-- The same of domains.
function Tell.census_domains(keys, args)
  Shard.open(keys[1], args[1])
  local step, found = scanned('domains', args[2], args[3]), {}
  for at = 1, #step[2], 2 do
    table.insert(found, of_domain(Shard.domain(step[2][at])))
  end
  return { step[1], found }
end

-- Hosts of one domain. ARGV: clock, cursor, count, domain
function Tell.census_under(keys, args)
  Shard.open(keys[1], args[1])
  local pattern, found = '*' .. args[4]:gsub('[%[%]%*%?\\]', '\\%0'), {}
  local step = scanned('hosts', args[2], args[3], pattern)
  for at = 1, #step[2], 2 do
    Shard.read_glance(step[2][at], step[2][at + 1])
    local host = Shard.host(step[2][at])
    if host.domain == args[4] then
      table.insert(found, figures(host))
    end
  end
  return { step[1], found }
end

-- Domains and hosts by name, those that there are. ARGV: clock, number of domains, their names, names of hosts
function Tell.census_named(keys, args)
  Shard.open(keys[1], args[1])
  local domains, hosts, count = {}, {}, tonumber(args[2])
  for at = 3, 2 + count do
    local domain = Shard.domain(args[at])
    if domain.raw then
      table.insert(domains, of_domain(domain))
    end
  end
  for at = 3 + count, #args do
    local host = Shard.host(args[at])
    if host then
      table.insert(hosts, figures(host))
    end
  end
  return { domains, hosts }
end

-- Since when the ready host that has waited longest has had work; -1 when none is ready. ARGV: clock
function Tell.census_waits(keys, args)
  Shard.open(keys[1], args[1])
  local first = redis.call('ZRANGE', X.P .. 'since', 0, 0, 'WITHSCORES')
  return { X.now, first[2] and tonumber(first[2]) or -1 }
end

-- What is lent under a token: host, fingerprint, end; empty when that is nothing. ARGV: clock, token, holder
function Tell.census_loan(keys, args)
  Shard.open(keys[1], args[1])
  local lease = Claim.lease_of(args[2])
  if not lease or lease[5] ~= args[3] or not lease[4][1] then
    return {}
  end
  return { lease[1], lease[4][1], lease[2] }
end
