-- One shard while a function works on it: its clock, its rules, and what was read of it, written back at the end.
--
-- All keys begin with the shard's own name (`nephila:{crawl:shard}:`), so they lie in one slot of a cluster:
--
--   meta           hash: rules, version, cycle, sweep, replan, lifting, mean rank, draws, tokens, clock (last, ahead, keeper)
--   count          hash: counters
--   hosts, domains hash: name -> packed record
--   known          hash: buckets of the URLs of a host, and what is noted of each (known.lua)
--   q:HOST         hash: number -> bundle: URLs that were found together, packed
--   z:HOST         sorted set (all of one score): place (or shelf and place) and number of each bundle
--   r:HOST         hash: fingerprint -> record of a URL that was asked for
--   rb:HOST        hash: origin -> robots.txt that waits in the host's queue
--   t:HOST         hash: pattern -> tally (traps); sec:HOST hash: section -> URLs queued
--   ready:LANE     sorted set (all of one score): hosts by the comparator; since: by how long they have had work
--   wait, due      sorted set by time; lends: leases by their end; lease: token -> lease
--   pend:SEGMENT   sorted set by end of capture; pends: set of such segments; marks: segment -> confirmed up to,
--                  in one of the shards that have to do with it
--   origins, rules hash: what is known of an origin, and the text of its rules
--   orphans:SEGMENT set: captures that belong to nobody; orphaned: set of such segments
--   refused, policies, blocks, over, covering, dead, claims
--   sweeping, replanning  list: hosts that the sweep of a new cycle, or the look at planned visits, comes to next
--   flagged        sorted set (all of one score): hosts with patterns that are slowed or quarantined
--
-- What must stay true: nothing is written before everything that could be refused was looked at, because an error in
-- the middle of a function takes nothing back.

local rules_cache = {}

-- The header of a call: MessagePack, or JSON for whoever has nothing else at hand. A map of MessagePack never begins with
-- a brace.
function Shard.header(raw)
  return raw:byte(1) == 123 and cjson.decode(raw) or cmsgpack.unpack(raw)
end

-- Whether a new cycle was begun, and not everything that ended before was looked at for it.
function Shard.sweeps()
  return X.sweep and X.sweep ~= ''
end

-- The engine's own time. A clock that was set back does not take the timeline with it: that goes on from where it was, ahead
-- of the clock by as much, until the clock has come there by itself.
local function tell_time(moment, noted)
  local ahead = noted
  if moment >= X.last then
    ahead = 0
  elseif moment + noted < X.last then
    ahead = X.last - moment
  end
  if ahead ~= noted then
    X.meta.ahead = ahead
  end
  X.now = moment + ahead
end

-- Begin: `clock` is empty (the engine's own time counts), or "now,wall_ms,rebooted_at,slept_ms,anchor".
function Shard.open(name, clock)
  local P = name .. ':'
  local got = redis.call(
    'HMGET', P .. 'meta', 'version', 'cycle', 'sweep', 'mean', 'draws', 'tokens', 'last', 'rebooted_at', 'covered',
    'policies', 'blocks', 'replan', 'ahead', 'lifting'
  )
  X = {
    P = P, hosts = {}, domains = {}, counts = {}, scores = {}, policy = {}, meta = {}, buckets = {},
    changed_buckets = {}, counted = {}, grown = {}, domain_raws = {}, pends = {}, glances = {}, tallies = {}, sorted = {}, fields = {},
    queues = {}, edits = false, grades = {}, graded = false, ungraded = {},
    cycle = tonumber(got[2] or 1), sweep = got[3] or false, mean = tonumber(got[4] or Policy.FIRST_MEAN),
    draws = tonumber(got[5] or 0), tokens = tonumber(got[6] or 0), last = tonumber(got[7] or 0),
    rebooted_at = tonumber(got[8] or 0), slept_ms = 0, covered = got[9] == '1',
    policies = tonumber(got[10] or 0), blocks = tonumber(got[11] or 0), replan = got[12] or '', lifting = got[14] or '',
    writes = true,
  }
  local version = got[1]
  if not version then
    error({ err = 'NOCRAWL this shard was never opened' })
  end
  local cached = rules_cache[P]
  if cached == nil or cached.version ~= version then
    cached = { version = version, rules = cjson.decode(redis.call('HGET', P .. 'meta', 'rules')) }
    rules_cache[P] = cached
  end
  X.rules = cached.rules
  Known.open(X.rules.compact)
  if clock == '' then
    local time = redis.call('TIME')
    local moment = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    X.wall_ms = moment
    tell_time(moment, tonumber(got[13] or 0))
  else
    local now, wall, rebooted, slept, anchor = clock:match('^(%d+),(%d+),(%d+),(%d+),(.*)$')
    X.now, X.wall_ms = tonumber(now), tonumber(wall)
    X.rebooted_at, X.slept_ms, X.anchor = tonumber(rebooted), tonumber(slept), anchor
  end
  X.wall_s = math.floor(X.wall_ms / 1000)
  X.step = X.rules.ordered and 0 or math.floor(X.now / X.rules.step_ms)
  return X
end

function Shard.count(name, by)
  X.counts[name] = (X.counts[name] or 0) + by
end

function Shard.set(name, value)
  X.meta[name] = value
end

-- What a free host that is put off adds to the counters of URLs that wait with it.
local function put_off(host)
  if host.token == 0 and host.reason ~= '' then
    return host.reason, math.max(1, Queue.length(host))
  end
  return false, 0
end

-- A host as it is stored, for whoever has read it.
local function read_glance(name, raw)
  local glance = Packed.glance(name, raw)
  X.glances[name] = glance
  return glance
end

Shard.read_glance = read_glance

-- What every link asks of a host, nil when it is not known. Only its referrers may be changed here, and `changed` set.
function Shard.glance(name)
  local host = X.hosts[name] or X.glances[name]
  if host ~= nil then
    return host or nil
  end
  local raw = redis.call('HGET', X.P .. 'hosts', name)
  if not raw then
    X.glances[name] = false
    return nil
  end
  return read_glance(name, raw)
end

-- Read the domains of many hosts at once; one is taken apart when it is asked for.
function Shard.read_domains(names)
  local missing, asked = {}, {}
  for _, name in ipairs(names) do
    if X.domains[name] == nil and X.domain_raws[name] == nil and not asked[name] then
      asked[name] = true
      missing[#missing + 1] = name
    end
  end
  for first = 1, #missing, 1000 do
    local last = math.min(first + 999, #missing)
    local raws = redis.call('HMGET', X.P .. 'domains', unpack(missing, first, last))
    for at = first, last do
      X.domain_raws[missing[at]] = raws[at - first + 1]
    end
  end
end

-- The same for many at once: names of hosts, in the field `name` of each.
function Shard.glance_all(named)
  local names = {}
  for _, one in ipairs(named) do
    local name = one.name
    if X.hosts[name] == nil and X.glances[name] == nil then
      names[#names + 1] = name
    end
  end
  for first = 1, #names, 1000 do
    local last = math.min(first + 999, #names)
    local raws = redis.call('HMGET', X.P .. 'hosts', unpack(names, first, last))
    for at = first, last do
      local raw = raws[at - first + 1]
      if raw then
        read_glance(names[at], raw)
      else
        X.glances[names[at]] = false
      end
    end
  end
end

-- Read many hosts that are going to be changed, and their domains.
function Shard.read_hosts(names)
  local named, domains = {}, {}
  for at, name in ipairs(names) do
    named[at] = { name = name }
  end
  Shard.glance_all(named)
  for at, name in ipairs(names) do
    domains[at] = Shard.glance(name).domain
  end
  Shard.read_domains(domains)
end

-- A host, to be changed; nil when it is not known.
function Shard.host(name)
  local host = X.hosts[name]
  if host ~= nil then
    return host
  end
  local glance = Shard.glance(name)
  if not glance then
    return nil
  end
  host = Packed.host(glance)
  host.was_reason, host.was_put_off = put_off(host)
  X.hosts[name] = host
  return host
end

function Shard.new_host(name, domain, tie)
  local host = {
    name = name, domain = domain, tie = tie, token = 0, standing = 0, next_at = 0, reason = '', free_at = 0,
    released_at = 0, slept_ms = 0, delay_ms = -1, crawl_delay_ms = 0, fetched = 0, cycle = 0, fetched_in_cycle = 0,
    lied_in = 0, work_since = 0, admitted = 0, fresh = 0, ref_hi = 0, ref_lo = 0, trap_at = 0, over = 0, urls = 0,
    buckets = 1, next_bundle = 1, lanes = { 0, 0, 0, 0, 0, 0, 0 }, robots = 0, flagged = 0, shelved = { 0, 0, 0 },
    settles = '', ready = {}, sections = 0, elapsed_ms = 0, was_put_off = 0, was_reason = false,
  }
  X.hosts[name] = host
  Shard.count('hosts', 1)
  return host
end

function Shard.domain(name)
  local domain = X.domains[name]
  if domain then
    return domain
  end
  local raw = X.domain_raws[name]
  if raw == nil then
    raw = redis.call('HGET', X.P .. 'domains', name)
  end
  if raw then
    domain = Packed.domain(name, raw)
  else
    domain = {
      pages = 0, hosts = 0, hosts_over = 0, useful = 0, ref_hi = 0, ref_lo = 0, looked_for = 0, paused_until = 0,
      window = '', errors_in_row = 0, lowered = 0, successes = 0, name = name,
    }
  end
  X.domains[name] = domain
  return domain
end

-- By how many levels errors hold down a domain, which is not taken apart for that.
function Shard.lowered(name)
  local raw = X.domains[name] == nil and X.domain_raws[name]
  return raw and Packed.lowered(raw) or Shard.domain(name).lowered
end

local ORDINARY = { tier = 'normal', hours = {}, quality = 1, user_agent = '', paused = false, render = 'auto' }

-- What a person decided for a domain.
function Shard.policy(domain)
  if X.policies == 0 then
    return ORDINARY
  end
  local policy = X.policy[domain]
  if policy == nil then
    local raw = redis.call('HGET', X.P .. 'policies', domain)
    policy = raw and cjson.decode(raw) or ORDINARY
    X.policy[domain] = policy
  end
  return policy
end

-- The block that a whole host is under, or that a URL begins with: {pattern, reason} or nil.
function Shard.block_of_host(name)
  if X.blocks == 0 then
    return nil
  end
  while name and name ~= '' do
    local reason = redis.call('HGET', X.P .. 'blocks', name)
    if reason then
      return name, cjson.decode(reason).reason
    end
    name = name:match('^[^.]*%.(.*)$')
  end
  return nil
end

local DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
local VALUE = {}
for at = 1, #DIGITS do
  VALUE[DIGITS:byte(at)] = at - 1
end

-- Bytes, as JSON has them.
local function from_base64(text)
  local bytes, bits, many = {}, 0, 0
  for at = 1, #text do
    local value = VALUE[text:byte(at)]
    if not value then
      break
    end
    bits, many = bits * 64 + value, many + 6
    if many >= 8 then
      many = many - 8
      bytes[#bytes + 1] = string.char(math.floor(bits / 2 ^ many))
      bits = bits % 2 ^ many
    end
  end
  return table.concat(bytes)
end

-- Blocks on URLs: by how those begin; or, with a $ at the end, of one page by its spelling and by its fingerprint.
local function read_blocks()
  X.prefixes, X.exactly = {}, {}
  local all = redis.call('HGETALL', X.P .. 'blocks')
  for at = 1, #all, 2 do
    local pattern = all[at]
    if pattern:find('://', 1, true) then
      local block = cjson.decode(all[at + 1])
      local entry = { pattern, block.reason }
      if pattern:sub(-1) ~= '$' then
        table.insert(X.prefixes, entry)
      else
        X.exactly[pattern:sub(1, -2)] = entry
        if type(block.fingerprint) == 'string' and block.fingerprint ~= '' then
          X.exactly[from_base64(block.fingerprint)] = entry
        end
      end
    end
  end
  table.sort(X.prefixes, function(a, b) return a[1] < b[1] end)
end

function Shard.block_of_url(url, fingerprint)
  if X.blocks == 0 then
    return nil
  end
  if X.prefixes == nil then
    read_blocks()
  end
  local exact = X.exactly[fingerprint] or X.exactly[url]
  if exact then
    return exact[1], exact[2]
  end
  for _, prefix in ipairs(X.prefixes) do
    if url:sub(1, #prefix[1]) == prefix[1] then
      return prefix[1], prefix[2]
    end
  end
  return nil
end

-- What a host is stored as, or nil where nothing has changed.
local function changed_host(host)
  local reason, much = put_off(host)
  if reason ~= host.was_reason or much ~= host.was_put_off then
    if host.was_reason then
      Shard.count('off:' .. host.was_reason, -host.was_put_off)
    end
    if reason then
      Shard.count('off:' .. reason, much)
    end
  end
  local raw = Packed.of_host(host)
  return raw ~= host.raw and raw or nil
end

-- Set many fields of a hash at once.
local function set_all(key, words)
  for first = 1, #words, 1000 do
    redis.call('HSET', key, unpack(words, first, math.min(first + 999, #words)))
  end
end

function Shard.write_counts()
  local key, names, words = X.P .. 'count', {}, {}
  for name, by in pairs(X.counts) do
    if by ~= 0 then
      names[#names + 1] = name
    end
  end
  for first = 1, #names, 1000 do
    local last = math.min(first + 999, #names)
    local before = redis.call('HMGET', key, unpack(names, first, last))
    for at = first, last do
      local name = names[at]
      words[2 * at - 1], words[2 * at] = name, string.format('%d', (before[at - first + 1] or 0) + X.counts[name])
    end
  end
  set_all(key, words)
  local meta = { 'last', string.format('%d', X.now) }
  if X.anchor then
    meta[3], meta[4] = 'anchor', X.anchor
  end
  for name, value in pairs(X.meta) do
    local length = #meta
    meta[length + 1], meta[length + 2] = name, type(value) == 'number' and string.format('%.0f', value) or value
  end
  set_all(X.P .. 'meta', meta)
end

-- Write back what has changed.
function Shard.close()
  Known.close()
  local hosts, domains = {}, {}
  for name, host in pairs(X.hosts) do
    local raw = changed_host(host)
    if raw then
      local length = #hosts
      hosts[length + 1], hosts[length + 2] = name, raw
    end
  end
  for name, glance in pairs(X.glances) do
    if glance and glance.changed and X.hosts[name] == nil then
      local length = #hosts
      hosts[length + 1], hosts[length + 2] = name, Packed.of_glance(glance)
    end
  end
  set_all(X.P .. 'hosts', hosts)
  for name, domain in pairs(X.domains) do
    local raw = Packed.of_domain(domain)
    if raw ~= domain.raw then
      local length = #domains
      domains[length + 1], domains[length + 2] = name, raw
    end
  end
  set_all(X.P .. 'domains', domains)
  Queue.close()
  Traps.close()
  Later.close()
  Shard.write_counts()
end
