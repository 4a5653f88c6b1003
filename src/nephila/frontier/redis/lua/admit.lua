-- admit: add what is new, know what is known, remember what was refused.

local BAND = 8 -- a waiting URL is given another place when its rank enters another band of so many
local NO_LEVEL = 255

-- What is given with a call, in order
function Admit.begin(args, at)
  X.args, X.at = args, at
end

function Admit.next()
  local value = X.args[X.at]
  X.at = X.at + 1
  return value
end

-- A candidate as it is given: fingerprint, depth, class, hops, bonus, what breaks ties, its draw; then its tail.
local GIVEN, TAIL_AT = '>c16BBBhc4I4', 30

local function read_candidate(raw)
  local fp, depth, level, hops, bonus, tie = struct.unpack(GIVEN, raw)
  return {
    fp = fp, depth = depth, level = level ~= NO_LEVEL and level or nil, hops = hops, bonus = bonus, tie = tie,
    tail = raw:sub(TAIL_AT), rank = 0, admitted = X.wall_s, cycle = X.cycle, via = '', is_new = true,
  }
end

-- The tails of a group's candidates.
function Admit.tails(group)
  local tails = {}
  for at = 1, group.count do
    tails[at] = X.args[group.before + at]:sub(TAIL_AT)
  end
  return tails
end

-- Candidates of one host: name, domain, tie of the name, names of its URLs, then each of them: they stay where they are
-- in the arguments, from behind `before` on, and are taken apart as far as is needed.
local function read_group()
  local args, at = X.args, X.at
  local names = args[at + 3]
  local count = #names / 8
  X.at = at + 4 + count
  return { name = args[at], domain = args[at + 1], tie = args[at + 2], names = names, before = at + 3, count = count }
end

function Admit.read_groups(count)
  local groups = {}
  for at = 1, count do
    groups[at] = read_group()
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
      for _, tail in ipairs(Admit.tails(group)) do
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
local function move(host, bundle, url, candidate)
  local lane, step, depth = Policy.read_place(bundle.member:sub(1, 9))
  local nearer = math.min(depth, candidate.depth)
  local points = Queue.score(host, url.rank, nearer, candidate.bonus)
  local level = Policy.level_of(X.rules, points)
  if candidate.level then
    level, points = candidate.level, Policy.NOMINAL[candidate.level]
  end
  local new_lane = math.min(lane, Policy.lane_of(false, level))
  local new_step = math.min(step, Policy.step_for(X.step, points))
  if not (new_lane < lane or nearer < depth or new_step < step) or Claim.is_leased(host, url.fp) then
    return
  end
  local taken = Queue.take(host, bundle, url.fp)
  taken.rank = url.rank
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

local MET = '>BBBhI4I4' -- of a candidate, what is asked of one that is known: depth, class, hops, bonus, tie, draw
local MET_AT = 17

-- A link to what is known: most of them come to nothing but another rank.
local function meet_again(host, name, raw, note, known_step)
  local kind, before, depth, number = Urls.read(note)
  local its_depth, level, _, _, _, chance = struct.unpack(MET, raw, MET_AT)
  if kind == Urls.ON_SHELF then
    if level == 0 then
      local candidate = read_candidate(raw)
      host = Shard.host(host.name)
      local bundle = Queue.load(host, string.format('%.0f', number))
      local taken = bundle.spilled and Spill.take(host, bundle, candidate, before)
      Shelves.fetch(host, taken or Queue.take(host, bundle, candidate.fp), 0, candidate.depth)
    end
    return 0
  end
  local rank = before
  if known_step then
    rank = Policy.raised(known_step, rank, chance)
    if rank ~= before then
      Urls.note_rank(host, name, kind, rank, depth, number)
    end
  end
  if kind == Urls.IN_QUEUE then
    if level ~= NO_LEVEL or its_depth < depth or (rank ~= before and rank - rank % BAND ~= before - before % BAND) then
      host = Shard.host(host.name)
      local candidate = read_candidate(raw)
      local bundle = Queue.load(host, string.format('%.0f', number))
      if bundle.spilled then
        Spill.meet(host, bundle, candidate, rank, depth)
        return 0
      end
      local url = Queue.find(bundle, candidate.fp)
      url.rank = rank
      move(host, bundle, url, candidate)
    end
    return 0
  end
  local state, cycle = math.floor(number / 16777216), number % 16777216
  local returns = state >= Urls.DONE and cycle < X.cycle
  if returns or level ~= NO_LEVEL or (state == Urls.QUEUED and its_depth < depth) then
    host = Shard.host(host.name)
    local candidate = read_candidate(raw)
    return meet_record(host, Urls.record(host, candidate.fp), candidate)
  end
  return 0
end

-- What is new

-- Without what a person's word keeps out (T7, R4).
local function without_forbidden(host, candidates, source)
  local deepest = Shard.policy(host.domain).max_depth
  local pattern, reason = Shard.block_of_host(host.name)
  if X.blocks == 0 and not deepest then
    return candidates
  end
  local allowed = {}
  for _, one in ipairs(candidates) do
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
      table.insert(allowed, one)
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

local function admit_new(group, candidates, source)
  local host = Admit.host_for(group.name, group.domain, group.tie)
  local allowed = without_forbidden(host, candidates, source)
  local rank, kinds, order = first_rank(host, source), {}, {}
  for _, one in ipairs(allowed) do
    local like = one.depth + 256 * (one.level or NO_LEVEL) + 65536 * one.hops + 16777216 * (one.bonus + 32768)
    local alike = kinds[like]
    if alike == nil then
      alike = {}
      kinds[like] = alike
      order[#order + 1] = like
    end
    alike[#alike + 1] = one
  end
  local places = {}
  for _, like in ipairs(order) do
    local urls, one = kinds[like], kinds[like][1]
    local depth, points = one.depth, nil
    points = one.level and Policy.NOMINAL[one.level] or Queue.score(host, rank, depth, one.bonus)
    local level = one.level or Policy.level_of(X.rules, points)
    local lane, step = Policy.lane_of(false, level), Policy.step_for(X.step, points)
    for _, url in ipairs(urls) do
      url.rank, url.via = rank, source.via
    end
    local wanted = Shelves.sort_out(host, urls, lane, step, depth)
    if #wanted > 0 then
      host.admitted = host.admitted + #wanted
      table.insert(places, Queue.enqueue(host, wanted, lane, step, depth))
    end
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
local function count_referrer(group, source)
  if source.bit < 0 or group.domain == source.domain then
    return
  end
  local host = Shard.glance(group.name) or Admit.host_for(group.name, group.domain, group.tie)
  local half, at = source.bit >= 32 and 'ref_hi' or 'ref_lo', source.bit % 32
  if Arith.has_bit(host[half], at) then
    return
  end
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

-- Add the candidates that are new, host by host. Answers added, cooling, and the new ones by host.
function Admit.all(groups, source)
  local added, known, cooling, news, args = 0, 0, 0, {}, X.args
  X.via = source.via
  Shard.glance_all(groups)
  for at, group in ipairs(groups) do
    local host, new, before, count = Shard.glance(group.name), {}, group.before, group.count
    if host then
      local names = Urls.names(group.names, count)
      local where, _, known_step = Urls.where_all(host, names), part_for(source, group.domain)
      for position = 1, count do
        local note = where[position]
        if note then
          known = known + 1
          cooling = cooling + meet_again(host, names[position], args[before + position], note, known_step)
        else
          new[#new + 1] = read_candidate(args[before + position])
        end
      end
    else
      for position = 1, count do
        new[position] = read_candidate(args[before + position])
      end
    end
    news[at] = new
  end
  for _, group in ipairs(groups) do
    count_referrer(group, source)
  end
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
      local said, fp = changed[tostring(at)], X.args[group.before + position]:sub(1, 16)
      local host = said and Shard.host(group.name)
      if host and Urls.has_record(host, fp) then
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
