-- admit: add what is new, know what is known, remember what was refused.


-- What is given with a call, in order
function Admit.begin(args, at)
  X.args, X.at = args, at
end

function Admit.next()
  local value = X.args[X.at]
  X.at = X.at + 1
  return value
end

function Admit.read_groups(count)
  local groups = {}
  for at = 1, count do
    groups[at] = Links.read_group(X.args, X.at)
    X.at = X.at + 4
  end
  return groups
end

function Admit.read_refusals(count)
  local refusals = {}
  for at = 1, count do
    refusals[at] = { host = Admit.next(), fp = Admit.next(), url = Admit.next(), reason = Admit.next(), detail = Admit.next() }
  end
  return refusals
end

-- Whether patterns of URLs are missing that may have to be parked: before anything is written.
function Admit.lacks_patterns(groups)
  local lacking = false
  if groups[1] and groups[1].host == nil then
    Shard.glance_all(groups)
  end
  for at = 1, #groups do
    local group = groups[at]
    local host = group.host or Shard.glance(group.name)
    if host and host.flagged > 0 then
      for _, tail in ipairs(Links.tails(group)) do
        lacking = Traps.lacks(host, tail) or lacking
      end
    end
  end
  return lacking
end

-- Remember refusals, each URL once, up to the limit (T8).
function Admit.refuse(refusals, via)
  if #refusals == 0 then
    return
  end
  local known = redis.call('HLEN', X.P .. 'refused')
  for _, one in ipairs(refusals) do
    if known < X.rules.max_refusals then
      local note = cmsgpack.pack({ one.url, one.reason, one.detail, X.wall_s, via })
      known = known + redis.call('HSETNX', X.P .. 'refused', one.host .. '\0' .. one.fp, note)
    end
  end
end

-- A host; a new one is taken on, or is one too many for its domain (F5).
function Admit.host_for(name, domain_name, tie)
  local host = Shard.host(name)
  if host then
    return host
  end
  host = Shard.new_host(name, domain_name, tie)
  local domain, quality = Shard.domain(domain_name), Shard.policy(domain_name).quality
  local referring = Policy.referrers(domain.ref_hi, domain.ref_lo)
  if domain.hosts < Policy.host_allowance(X.rules, domain.useful, referring, quality) then
    domain.hosts = domain.hosts + 1
  else
    domain.hosts_over = domain.hosts_over + 1
    Shelves.put_over(host)
  end
  return host
end

-- What a link from a source to something new of a domain brings, as a step, or nil.
local function part_for(source, domain)
  local share = source.share
  return share and share[domain == source.domain and 1 or 3]
end

-- What is new

-- Without what a person's word keeps out (T7, R4).
local function without_forbidden(host, group, positions, source)
  local deepest = Shard.policy(host.domain).max_depth
  if X.blocks == 0 and not deepest then
    return positions
  end
  local pattern, reason = Shard.block_of_host(host.name)
  local allowed = {}
  for _, position in ipairs(positions) do
    local one = Links.read(group, position)
    local url = Urls.spell(host, one.tail)
    local its_pattern, its_reason = pattern, reason
    if not its_pattern then
      its_pattern, its_reason = Shard.block_of_url(url, one.fp)
    end
    local refusal = { host = host.name, fp = one.fp, url = url }
    if its_pattern then
      refusal.reason, refusal.detail = 'blocked', its_pattern .. ': ' .. its_reason
      Admit.refuse({ refusal }, source.via)
    elseif deepest and one.depth > deepest then
      refusal.reason = 'policy_depth'
      refusal.detail = 'depth ' .. one.depth .. ', the policy of ' .. host.domain .. ' allows ' .. deepest
      Admit.refuse({ refusal }, source.via)
    else
      allowed[#allowed + 1] = position
    end
  end
  return allowed
end

-- The rank of what is new of a domain; it counts for the mean.
function Admit.first_rank(domain, source)
  local new_step = part_for(source, domain)
  if not new_step then
    return source.first_rank
  end
  local rank = Policy.first_rank(new_step, source.salt)
  X.mean = Policy.next_mean(X.mean, rank)
  Shard.set('mean', X.mean)
  return rank
end

-- Positions by what their candidates have in common, in the order in which the kinds are met.
local function by_kind(group, positions)
  local kinds, order = {}, {}
  if #positions == 0 then
    return kinds, order
  end
  if group.alike then
    local alike = Links.kind(group, positions[1])
    return { [alike] = positions }, { alike }
  end
  for _, position in ipairs(positions) do
    local kind = Links.kind(group, position)
    local same = kinds[kind]
    if same == nil then
      kinds[kind] = { position }
      order[#order + 1] = kind
    else
      same[#same + 1] = position
    end
  end
  return kinds, order
end

-- Queue candidates that belong together, or park them; answers their place in the queue, if they have one.
local function put_new(host, group, positions, kind, rank, source)
  local depth, level, _, bonus = Links.read_kind(kind)
  local points = level and Policy.NOMINAL[level] or Queue.score(host, rank, depth, bonus)
  local lane, step = Policy.lane_of(false, level or Policy.level_of(X.rules, points)), Policy.step_for(X.step, points)
  if Shelves.has_room_for(host, #positions) then
    host.admitted = host.admitted + #positions
    return Queue.enqueue_new(host, group, positions, rank, lane, step)
  end
  local urls = Links.read_all(group, positions)
  for _, url in ipairs(urls) do
    url.rank, url.via = rank, source.via
  end
  local wanted = Shelves.sort_out(host, urls, lane, step, depth)
  if #wanted > 0 then
    host.admitted = host.admitted + #wanted
    return Queue.enqueue(host, wanted, lane, step, depth)
  end
  return nil
end

local function admit_new(group, positions, source)
  local host = Admit.host_for(group.name, group.domain, group.tie)
  local allowed, places = without_forbidden(host, group, positions, source), {}
  local rank, kinds, order = Admit.first_rank(host.domain, source), by_kind(group, allowed)
  for _, kind in ipairs(order) do
    places[#places + 1] = put_new(host, group, kinds[kind], kind, rank, source)
  end
  if #places > 0 then
    Hosts.wake(host, places)
  end
  if host.standing == Hosts.IDLE and host.token == 0 and host.trap_at > 0 then
    Hosts.rest(host) -- it has nothing but what a trap holds back, and wakes for its next probe
  end
  return #allowed
end

-- A link from another registrable domain is worth something to a host (F5); each domain counts once.
local function is_newly_referred(group, source)
  if source.bit < 0 or group.domain == source.domain then
    return false
  end
  local host = group.host
  return not (host and Arith.has_bit(host[source.half], source.bit % 32))
end

local function count_referrer(group, source)
  local half, at = source.half, source.bit % 32
  local host = Shard.glance(group.name) or Admit.host_for(group.name, group.domain, group.tie)
  if host.is_glance and host.over_budget > 0 then
    host = Shard.host(group.name)
  end
  host[half] = Arith.with_bit(host[half], at)
  local domain = Shard.domain(host.domain)
  domain[half] = Arith.with_bit(domain[half], at)
  if host.is_glance then
    host.changed = true
  elseif Shelves.refill(host) > 0 then
    Hosts.wake(host)
  end
end

-- Read the hosts of groups, and the buckets that their candidates would be known in, all at once.
local function look_up(groups)
  local lists, count = {}, 0
  if groups[1] and groups[1].host == nil then
    Shard.glance_all(groups)
  end
  for at = 1, #groups do
    local group = groups[at]
    local host = X.hosts[group.name] or group.host or Shard.glance(group.name)
    group.host = host
    if host and not group.keys then
      count = count + 1
      lists[count] = Links.look_up(host, group)
    end
  end
  Known.fetch(lists)
end

local EVERY = {} -- the positions 1 .. n, as they are asked for: those of a host that is new

local function every(count)
  local all = EVERY[count]
  if not all then
    all = {}
    for at = 1, count do
      all[at] = at
    end
    EVERY[count] = all
  end
  return all
end

-- What a group's links bring to what is known; nil where nothing is shared out.
local function raising_of(group, source)
  local share = source.share
  if not share then
    return nil
  end
  local step = share[group.domain == source.domain and 2 or 4]
  return Policy.raising(group.many and Policy.for_many(step) or step, Known.UNIT)
end

-- Add the candidates that are new, host by host. Answers added, known, cooling, and where the new ones are in each group.
function Admit.all(groups, source)
  local added, known, cooling, news, domains = 0, 0, 0, {}, {}
  X.via, source.half = source.via, source.bit >= 32 and 'ref_hi' or 'ref_lo'
  look_up(groups)
  local ordinary = Admit.is_ordinary()
  for at = 1, #groups do
    local group = groups[at]
    if group.host then
      local only = ordinary and Admit.only_new(group)
      if only then
        news[at] = only
      else
        local new, met, cools = Admit.meet_all(group, raising_of(group, source))
        news[at], known, cooling = new, known + met, cooling + cools
      end
    else
      news[at] = every(group.count)
    end
    group.referred = is_newly_referred(group, source)
    if group.referred or #news[at] > 0 then
      domains[#domains + 1] = group.domain
    end
  end
  if X.edits then
    Known.apply()
  end
  Shard.read_domains(domains)
  for at = 1, #groups do
    if groups[at].referred then
      count_referrer(groups[at], source)
    end
  end
  for at = 1, #groups do
    local group, new = groups[at], news[at]
    if #new > 0 then
      if ordinary and group.host and group.count == 1 and Admit.queue_only(group, source) then
        added = added + 1
      else
        added = added + admit_new(group, new, source)
      end
    end
  end
  return added, known, cooling, news
end

-- What is said to have changed since its last visit is due; answers the fingerprints.
local function renew(groups, changed)
  local renewed, at = {}, 0
  for _, group in ipairs(groups) do
    for position = 1, group.count do
      at = at + 1
      local said = changed[tostring(at)]
      local host, fp = said and Shard.host(group.name), said and Links.fingerprint(group, position)
      if host and Known.has_record(host, fp) then
        local record = Urls.record(host, fp)
        if record.state == Urls.DONE and record.settled < said and Urls.cooling_s(record) <= 0 then
          Hosts.wake(host, { Queue.requeue(host, record) })
          table.insert(renewed, fp)
        end
      end
    end
  end
  return renewed
end

-- What comes from one source.
local function admit_part(part)
  local source = part.source
  X.scores = {}
  Admit.refuse(part.refusals, source.via)
  return Admit.all(part.read, source)
end

-- ARGV: clock, header, groups of candidates, refusals; for each part, where the header has several
function Admit.call(keys, args)
  Shard.open(keys[1], args[1])
  local head, all = Shard.header(args[2]), {}
  local parts = head.parts or { head }
  Admit.begin(args, 3)
  for _, part in ipairs(parts) do
    part.read, part.refusals = Admit.read_groups(part.groups), Admit.read_refusals(part.refused)
    for _, group in ipairs(part.read) do
      all[#all + 1] = group
    end
  end
  Traps.given(head.patterns)
  if Admit.lacks_patterns(all) then
    return { 'PATTERNS', X.lacking }
  end
  if not head.parts then
    local added, known, cooling = admit_part(head)
    local renewed = head.changed and renew(head.read, head.changed) or {}
    Shard.close()
    return { 'OK', added, known, cooling, renewed }
  end
  local domains = {}
  for at, group in ipairs(all) do
    domains[at] = group.domain
  end
  Shard.read_domains(domains)
  look_up(all) -- of hosts that are new, and of what others of these parts make known, each part finds out by itself
  local told = {}
  for at, part in ipairs(parts) do
    told[at] = { admit_part(part) }
    told[at][4] = nil
  end
  Shard.close()
  return { 'OK', told }
end
