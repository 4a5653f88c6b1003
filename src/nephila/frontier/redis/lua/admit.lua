-- admit: add what is new, know what is known, remember what was refused.

local BAND = 8 -- a waiting URL is given another place when its rank enters another band of so many
local NO_LEVEL, HEAD, EACH = Links.NO_LEVEL, Links.HEAD, Links.EACH
local byte, sub = string.byte, string.sub
local ON_SHELF, SHELF_OUTSIDE, HAS_RECORD, DEEP = Known.ON_SHELF, Known.SHELF_OUTSIDE, Known.HAS_RECORD, Known.DEEP
local WAITS, ENDED_BEFORE = Known.WAITS, Known.ENDED_BEFORE

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
  Shard.glance_all(groups)
  for _, group in ipairs(groups) do
    local host = Shard.glance(group.name)
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

-- What a link from a source to a domain brings: steps for what is new and what is known, or nil.
local function part_for(source, domain)
  local share = source.share
  if not share then
    return nil
  end
  if domain == source.domain then
    return share[1], share[2]
  end
  return share[3], share[4]
end

-- What is known

-- Give a waiting URL the place it deserves by now; what is leased stays as it was claimed.
local function move(host, bundle, rank, candidate)
  local lane, step, depth = Policy.read_place(bundle.member:sub(1, 9))
  local nearer = math.min(depth, candidate.depth)
  local points = Queue.score(host, rank, nearer, candidate.bonus)
  local level = Policy.level_of(X.rules, points)
  if candidate.level then
    level, points = candidate.level, Policy.NOMINAL[candidate.level]
  end
  local new_lane = math.min(lane, Policy.lane_of(false, level))
  local new_step = math.min(step, Policy.step_for(X.step, points))
  if not (new_lane < lane or nearer < depth or new_step < step) or Claim.is_leased(host, candidate.fp) then
    return
  end
  local taken = Queue.take(host, bundle, candidate.fp)
  taken.rank = rank
  local tie = taken.tail == candidate.tail and candidate.tie or Arith.tie(host.name .. taken.tail, X.rules.tie_seed)
  Hosts.wake(host, { Queue.enqueue(host, { taken }, new_lane, new_step, nearer, tie) })
end

-- A URL that was asked for is met again; 1 when it still cools.
local function meet_record(host, record, candidate)
  local urgent = candidate.level == 0
  local returns = record.state >= Urls.DONE and record.cycle < X.cycle
  if returns or (urgent and record.state ~= Urls.QUEUED) then
    if Urls.cooling_s(record) > 0 and not urgent then
      return 1
    end
    Hosts.wake(host, { Queue.requeue(host, record, candidate.level) })
    return 0
  end
  local better = candidate.depth < record.depth or (candidate.level and candidate.level < record.level)
  if record.state ~= Urls.QUEUED or not better or host.token ~= 0 then
    return 0
  end
  Queue.take_record(host, record)
  record.depth = math.min(record.depth, candidate.depth)
  record.level = math.min(record.level, candidate.level or record.level)
  local points = urgent and Policy.NOMINAL[record.level] or Queue.score(host, record.rank, record.depth, 0)
  local place = Queue.enqueue_alone(host, record, points)
  Urls.save(host, record)
  Hosts.wake(host, { place })
  return 0
end

-- Somebody wants what is parked. What is noted may be another URL's: then nothing is found, here and below.
local function meet_on_shelf(host, candidate, kind, number, rank)
  local bundle = Queue.holding(host, candidate.fp, kind, number)
  local taken
  if bundle and bundle.spilled then
    taken = Spill.take(host, bundle, candidate, rank)
  elseif bundle then
    taken = Queue.take(host, bundle, candidate.fp)
  end
  if taken then
    Shelves.fetch(host, taken, 0, candidate.depth)
  end
end

-- What waits may deserve another place.
local function meet_in_queue(host, candidate, kind, number, rank, depth)
  local bundle = Queue.holding(host, candidate.fp, kind, number)
  if bundle and bundle.spilled then
    Spill.meet(host, bundle, candidate, rank, depth)
  elseif bundle then
    move(host, bundle, rank, candidate)
  end
end

-- A link to what is known: most of them come to nothing but another rank. The bucket's key, what is noted, and where.
local function meet_again(host, group, position, known_step, key, kind, before, depth, number, place)
  local from = HEAD + EACH * (position - 1)
  local its_depth, level, _, _, _, c1, c2, c3, c4 = byte(group.facts, from + 9, from + 17)
  if kind == ON_SHELF or kind == SHELF_OUTSIDE then
    if level == 0 then
      meet_on_shelf(Shard.host(host.name), Links.read(group, position), kind, number, before)
    end
    return 0
  end
  local rank = before
  if known_step then
    rank = Policy.raised(known_step, rank, c1 * 16777216 + c2 * 65536 + c3 * 256 + c4, Known.UNIT)
    if rank ~= before then
      Known.note_rank(key, place, rank)
    end
  end
  local nearer = its_depth < depth or (depth == DEEP and its_depth >= DEEP)
  if kind ~= HAS_RECORD then
    local other = rank ~= before and rank - rank % BAND ~= before - before % BAND and not X.rules.compact
    if level ~= NO_LEVEL or nearer or other then
      meet_in_queue(Shard.host(host.name), Links.read(group, position), kind, number, rank, depth)
    end
    return 0
  end
  if number == ENDED_BEFORE or level ~= NO_LEVEL or (number == WAITS and nearer) then
    host = Shard.host(host.name)
    local candidate = Links.read(group, position)
    local record = Urls.record(host, candidate.fp)
    return record and meet_record(host, record, candidate) or 0
  end
  return 0
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
      its_pattern, its_reason = Shard.block_of_url(url)
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

local function first_rank(host, source)
  local new_step = part_for(source, host.domain)
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
  for _, position in ipairs(positions) do
    local kind = Links.kind(group, position)
    local alike = kinds[kind]
    if alike == nil then
      kinds[kind] = { position }
      order[#order + 1] = kind
    else
      alike[#alike + 1] = position
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
  local rank, kinds, order = first_rank(host, source), by_kind(group, allowed)
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
  local host = Shard.glance(group.name)
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

local function count_referrers(groups, source)
  source.half = source.bit >= 32 and 'ref_hi' or 'ref_lo'
  for _, group in ipairs(groups) do
    if is_newly_referred(group, source) then
      count_referrer(group, source)
    end
  end
end

-- Read the hosts of groups, their domains, and the buckets that their candidates would be known in, all at once.
local function look_up(groups)
  Shard.glance_all(groups)
  local keys, domains = {}, {}
  for at, group in ipairs(groups) do
    local host = Shard.glance(group.name)
    domains[at] = group.domain
    if host then
      Links.look_up(host, group)
      keys[#keys + 1] = group.keys
    end
  end
  Known.fetch(keys)
  Shard.read_domains(domains)
end

-- Add the candidates that are new, host by host. Answers added, known, cooling, and where the new ones are in each group.
function Admit.all(groups, source)
  local added, known, cooling, news, entry = 0, 0, 0, {}, Known.entry
  X.via = source.via
  look_up(groups)
  for at, group in ipairs(groups) do
    local host, new, keys, facts = Shard.glance(group.name), {}, group.keys, group.facts
    local _, known_step = part_for(source, group.domain)
    for position = 1, group.count do
      local from = HEAD + EACH * (position - 1)
      local kind, rank, depth, number, place
      if host then
        kind, rank, depth, number, place = entry(host, keys[position], sub(facts, from + 1, from + 8))
      end
      if kind then
        known = known + 1
        local cools = meet_again(host, group, position, known_step, keys[position], kind, rank, depth, number, place)
        cooling = cooling + cools
      else
        new[#new + 1] = position
      end
    end
    news[at] = new
  end
  count_referrers(groups, source)
  for at, group in ipairs(groups) do
    if #news[at] > 0 then
      added = added + admit_new(group, news[at], source)
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

-- ARGV: clock, header, groups of candidates, refusals
function Admit.call(keys, args)
  Shard.open(keys[1], args[1])
  local head = Shard.header(args[2])
  Admit.begin(args, 3)
  local groups, refusals = Admit.read_groups(head.groups), Admit.read_refusals(head.refused)
  Traps.given(head.patterns)
  if Admit.lacks_patterns(groups) then
    return { 'PATTERNS', X.lacking }
  end
  if head.source.shared then
    head.source.share = Policy.share(unpack(head.source.shared)) -- by a page of another shard
  end
  Admit.refuse(refusals, head.source.via)
  local added, known, cooling = Admit.all(groups, head.source)
  local renewed = head.changed and renew(groups, head.changed) or {}
  Shard.close()
  return { 'OK', added, known, cooling, renewed }
end
