-- What is parked: over budget (F5), in a trap (T2), put off for coverage (S4); and how it comes back.

local NO_GROUP = '\0\0\0\0\0\0\0\0'
local RELEASED_AT_ONCE = 500
local OUTGROWN_EARNS = 5
Shelves.RELEASED_AT_ONCE = RELEASED_AT_ONCE

local function shelf_name(reason, group)
  return string.char(128 + Queue.SHELF[reason]) .. group
end

-- Park URLs that are new, or were taken from their queue.
function Shelves.park(host, urls, reason, group, lane, step, depth)
  if #urls == 0 then
    return
  end
  local tie = urls[1].tie or Arith.tie(host.name .. urls[1].tail, X.rules.tie_seed)
  Queue.shelve(host, urls, reason, group, lane, step, depth, tie)
  if reason == 'trap' and host.trap_at == 0 then
    host.trap_at = math.max(1, X.now)
  end
end

-- The URLs that stand first on a shelf, taken off it: at most `most` of those that have one place.
local function take_first(host, reason, group, most)
  local member = Queue.first(host, shelf_name(reason, group or ''))
  if member == nil then
    return {}
  end
  local urls, place = {}, member:sub(1, 18)
  while member and #urls < most do
    local taken = Queue.take_all(host, Queue.load(host, Queue.number_in(member)), most - #urls)
    for _, url in ipairs(taken) do
      urls[#urls + 1] = url
    end
    member = Queue.first(host, place)
  end
  return urls, Queue.place_in(place .. '0000')
end

-- Queue up to `room` parked URLs, best first; how many.
function Shelves.unshelve(host, reason, room, group, tie)
  local moved = 0
  while moved < room do
    local urls, place = take_first(host, reason, group, room - moved)
    if #urls == 0 then
      break
    end
    local lane, step, depth = Policy.read_place(place)
    local own = tie or Arith.tie(host.name .. urls[1].tail, X.rules.tie_seed)
    Queue.enqueue(host, urls, lane, step, depth, own)
    moved = moved + #urls
  end
  return moved
end

local function is_outgrown(host)
  local hosts, urls = X.total_hosts, X.total_urls
  if hosts == nil then
    local got = redis.call('HMGET', X.P .. 'count', 'hosts', 'urls')
    hosts, urls = tonumber(got[1] or 0), tonumber(got[2] or 0)
    X.total_hosts, X.total_urls = hosts, urls
  end
  hosts, urls = hosts + (X.counts.hosts or 0), urls + (X.counts.urls or 0)
  local ordinary = math.max(urls / math.max(1, hosts), X.rules.first_urls)
  local has = host.admitted + host.shelved[1] + host.shelved[2] + host.shelved[3]
  return has > X.rules.times_its_like * ordinary
end

-- The same for a host that so many pages with new content speak for.
local function room_with(host, fresh)
  local referring = Policy.referrers(host.ref_hi, host.ref_lo)
  local earned = Policy.url_allowance(X.rules, fresh, referring, Shard.policy(host.domain).quality)
  return math.max(0, math.min(earned - host.admitted, X.rules.queued_per_host - Queue.length(host)))
end

-- How many more URLs a host may have queued (F5).
function Shelves.room_of(host)
  if host.over == 1 then
    return 0
  end
  return room_with(host, is_outgrown(host) and math.floor(host.fresh / OUTGROWN_EARNS) or host.fresh)
end

-- Whether so many new URLs of a host may all be queued, whatever they are: then nobody has to look at each.
function Shelves.has_room_for(host, count)
  local covering = X.rules.target_domains > 0 and not X.covered
  if host.flagged > 0 or host.over == 1 or covering or Queue.counts_sections(host, count) then
    return false
  end
  -- Most have had so few that nobody need ask what they have earned.
  local rules = X.rules
  if X.policies == 0 and host.admitted + count <= rules.first_urls and Queue.length(host) + count <= rules.queued_per_host then
    return true
  end
  -- Most of the others have room even as if they had outgrown the others, which is dearer to find out.
  return room_with(host, math.floor(host.fresh / OUTGROWN_EARNS)) >= count or Shelves.room_of(host) >= count
end

-- Park the URLs of sections that have as many in the queue as they may (T1).
local function without_crowded(host, urls, lane, step, depth)
  if not Queue.counts_sections(host, #urls) then
    return urls
  end
  if host.sections == 0 then
    Queue.begin_sections(host)
  end
  local free, crowded, order, more = {}, {}, {}, {}
  for _, url in ipairs(urls) do
    local section = Queue.section_of(url.tail)
    more[section] = (more[section] or Queue.in_section(host, section)) + 1
    if more[section] <= X.rules.queued_per_prefix then
      table.insert(free, url)
    else
      if crowded[section] == nil then
        crowded[section] = {}
        table.insert(order, section)
      end
      table.insert(crowded[section], url)
    end
  end
  for _, section in ipairs(order) do
    Shelves.park(host, crowded[section], 'over_budget', section, lane, step, depth)
  end
  return free
end

local function parts(urls, kept)
  local first, rest = {}, {}
  for at, url in ipairs(urls) do
    table.insert(at <= kept and first or rest, url)
  end
  return first, rest
end

-- Park what may not be queued now; answers what may.
function Shelves.sort_out(host, urls, lane, step, depth)
  if host.flagged > 0 then
    urls = Traps.without_trapped(host, urls, lane, step, depth)
  end
  local domain, covering, rest = nil, X.rules.target_domains > 0 and not X.covered, nil
  if covering then
    domain = Shard.domain(host.domain)
    local kept = (domain.pages > 0 or domain.looked_for > 0) and 0 or 1
    urls, rest = parts(urls, kept)
    Shelves.park(host, rest, 'coverage', NO_GROUP, lane, step, depth)
  end
  urls = without_crowded(host, urls, lane, step, depth)
  local room = Shelves.room_of(host)
  if room < #urls then
    urls, rest = parts(urls, room)
    Shelves.park(host, rest, 'over_budget', NO_GROUP, lane, step, depth)
  end
  if covering then
    domain.looked_for = domain.looked_for + #urls
  end
  return urls
end

-- The names of the groups on a shelf, in order.
function Shelves.groups(host, reason)
  local found, shelf = {}, string.char(128 + Queue.SHELF[reason])
  local member = Queue.first(host, shelf)
  while member do
    local group = member:sub(2, 9)
    table.insert(found, group)
    member = Queue.first(host, shelf, shelf .. group .. string.rep('\255', 14))
  end
  return found
end

-- Let parked URLs into the queue, as far as the host (and each of its sections) has room by now; how many.
function Shelves.refill(host)
  if host.shelved[1] == 0 then
    return 0
  end
  local room, moved = math.min(Shelves.room_of(host), RELEASED_AT_ONCE), 0
  if room == 0 then
    return 0
  end
  for _, group in ipairs(Shelves.groups(host, 'over_budget')) do
    local left = room - moved
    if group ~= NO_GROUP then
      left = math.min(left, X.rules.queued_per_prefix - Queue.in_section(host, group))
    end
    moved = moved + Shelves.unshelve(host, 'over_budget', left, group)
  end
  host.admitted = host.admitted + moved
  return moved
end

-- Hosts that are one too many for their domain

local function over_member(host)
  return host.domain .. '\0' .. host.tie .. host.name
end

function Shelves.put_over(host)
  host.over = 1
  redis.call('ZADD', X.P .. 'over', 0, over_member(host))
  Hosts.park(host, 'over_budget')
end

-- Take on the hosts that a domain has earned by now.
function Shelves.take_on_hosts(name)
  local domain, quality = Shard.domain(name), Shard.policy(name).quality
  while domain.hosts_over > 0 do
    local referring = Policy.referrers(domain.ref_hi, domain.ref_lo)
    if domain.hosts >= Policy.host_allowance(X.rules, domain.useful, referring, quality) then
      return
    end
    local first = '[' .. name .. '\0'
    local member = redis.call('ZRANGEBYLEX', X.P .. 'over', first, '(' .. name .. '\1', 'LIMIT', 0, 1)[1]
    if member == nil then
      return
    end
    local host = Shard.host(member:sub(#name + 6))
    redis.call('ZREM', X.P .. 'over', member)
    domain.hosts, domain.hosts_over = domain.hosts + 1, domain.hosts_over - 1
    host.over = 0
    if host.token == 0 then
      Hosts.leave(host)
    end
    Shelves.refill(host)
    Hosts.wake(host)
  end
end

-- Coverage

-- After a URL has ended: try another one of a domain that has brought no page yet (S4).
function Shelves.look_further(host)
  if X.rules.target_domains == 0 or X.covered then
    return
  end
  local domain = Shard.domain(host.domain)
  domain.looked_for = math.max(0, domain.looked_for - 1)
  if domain.pages > 0 or domain.looked_for > 0 then
    return
  end
  local first, last = '[' .. host.domain .. '\0', '(' .. host.domain .. '\1'
  local member = redis.call('ZRANGEBYLEX', X.P .. 'covering', first, last, 'LIMIT', 0, 1)[1]
  local chosen = member and Shard.host(member:sub(#host.domain + 6))
  if chosen then
    local moved = Shelves.unshelve(chosen, 'coverage', 1)
    domain.looked_for = domain.looked_for + moved
    chosen.admitted = chosen.admitted + moved
    if chosen ~= host then
      Hosts.wake(chosen)
    end
  end
end

function Shelves.covers_no_more()
  local over = X.covered or X.rules.target_domains == 0
  return over and redis.call('ZCARD', X.P .. 'covering') > 0
end

-- What was put off for coverage goes into the queue, as far as the budget goes, and is over budget then.
function Shelves.end_coverage(host)
  local room = math.min(Shelves.room_of(host), RELEASED_AT_ONCE)
  host.admitted = host.admitted + Shelves.unshelve(host, 'coverage', room)
  while host.shelved[3] > 0 do
    local urls, place = take_first(host, 'coverage', '', 100000)
    local lane, step, depth = Policy.read_place(place)
    Shelves.park(host, urls, 'over_budget', NO_GROUP, lane, step, depth)
  end
end

-- Queue a URL that was parked because somebody wants it now.
function Shelves.fetch(host, url, level, depth)
  local lane = Policy.lane_of(false, level)
  local tie = Arith.tie(host.name .. url.tail, X.rules.tie_seed)
  local place = Queue.enqueue(host, { url }, lane, Policy.step_for(X.step, 100), depth, tie)
  if host.over == 1 and host.standing == Hosts.PARKED and host.token == 0 then
    Hosts.rest(host)
  else
    Hosts.wake(host, { place })
  end
end
