-- claim: lease the hosts that may be asked now, best first by the comparator of `nephila.frontier.order`.

local MOVED_POLL_MS, MOVED_LIMIT_MS = 2000, 600000
local LOOKED_AT, PASSED_OVER, PUT_BEHIND = 2000, 256, 64 -- URLs that a claim looks at, in all classes; that it passes over; bundles that it moves
local LOOK_ON_MS, WORTH_MS, FAILING_MS = 1000, 60000, 3600000
local NEXT_PATTERNS = 50 -- URLs whose patterns are asked for together

-- Which host

local function present_lanes()
  local present = {}
  for lane = 0, 6 do
    if X.ready[lane] > 0 then
      table.insert(present, lane)
    end
  end
  return present
end

-- The ready host that has had work for longest, where this fetch is one of the reserve and that is too long.
local function starving()
  if X.ready[0] > 0 or X.rules.ordered or not Policy.reserved(X.draws, X.rules) then
    return nil
  end
  local member = redis.call('ZRANGE', Later.now('since'), 0, 0)[1]
  local host = Shard.host(member:sub(5))
  if host.work_since > X.now - X.rules.starving_ms then
    return nil
  end
  local lane = 7
  for _, key in ipairs(host.ready) do
    lane = math.min(lane, key:byte(1))
  end
  X.reserved = (X.reserved or 0) + 1
  return host, lane
end

-- The first of the ready ones in a lane. Several are read ahead: what is removed meanwhile is passed over, and when one comes
-- all are read again.
local function first_ready(name)
  local waiting = X.sorted[name]
  local ahead = X.ready_ahead[name]
  if ahead and not (waiting and next(waiting.add)) then
    while ahead[ahead.at] do
      local member = ahead[ahead.at]
      if not (waiting and waiting.remove[member]) then
        return member
      end
      ahead.at = ahead.at + 1
    end
  end
  ahead = redis.call('ZRANGE', Later.now(name), 0, X.wanted_hosts - 1)
  ahead.at = 1
  X.ready_ahead[name] = ahead
  return ahead[1]
end

-- The next host by the comparator, and the lane it was picked for. `wanted` is a lane that was drawn elsewhere.
local function pick(wanted)
  local present = present_lanes()
  if #present == 0 then
    return nil
  end
  if wanted and X.ready[0] == 0 and X.ready[wanted] == 0 then
    return nil
  end
  X.draws = X.draws + 1
  local host, lane = starving()
  if host then
    return host, lane, true
  end
  lane = -1
  while true do
    if lane < 0 or X.ready[lane] == 0 then
      present = present_lanes()
      if #present == 0 then
        return nil
      end
      if X.ready[0] > 0 then
        lane = 0
      elseif wanted and X.ready[wanted] > 0 then
        lane = wanted
      else
        lane = Policy.draw_lane(present, X.draws, X.rules)
      end
    end
    local member = first_ready(Hosts.READY_IN[lane])
    host = Shard.host(member:sub(21))
    if struct.unpack('>I4', member) >= Shard.domain(host.domain).pages then
      return host, lane
    end
    Hosts.make_ready(host) -- its domain was asked since: it takes the place of the true count
  end
end

-- What of it

local function opens_in_s(policy)
  if #policy.hours == 0 then
    return 0
  end
  local of_day = X.wall_s % 86400
  local hour_now, into = math.floor(of_day / 3600), of_day % 3600
  for ahead = 0, 24 do
    local hour = (hour_now + ahead) % 24
    for _, span in ipairs(policy.hours) do
      local first, last = span[1], span[2]
      if (first <= hour and hour < last) or (first >= last and (hour >= first or hour < last)) then
        return ahead > 0 and ahead * 3600 - into or 0
      end
    end
  end
  return 86400
end

-- Put a host off as a whole, where its domain may not be asked now (P4, T7, R4).
local function put_off(host)
  local domain, policy = Shard.domain(host.domain), Shard.policy(host.domain)
  if domain.paused_until > X.now then
    Hosts.wait(host, math.max(host.free_at, domain.paused_until), 'domain_errors')
    return true
  elseif Shard.block_of_host(host.name) then
    Hosts.park(host, 'blocked')
    return true
  elseif policy.paused then
    Hosts.park(host, 'paused')
    return true
  end
  local opens = opens_in_s(policy)
  if opens > 0 then
    Hosts.wait(host, math.max(host.free_at, X.now + opens * 1000), 'hours')
    return true
  end
  if policy.delay_ms and host.released_at > 0 then
    local rested_at = host.released_at + math.max(policy.delay_ms, Hosts.delay_of(host)) + 1
    if rested_at > X.now + X.ahead then
      host.free_at = math.max(host.free_at, rested_at)
      Hosts.wait(host, host.free_at)
      return true
    end
  end
  return false
end

local function pages_left(host)
  local limit = X.rules.max_pages_per_host
  if limit == 0 then
    return nil
  end
  return math.max(0, limit - (host.cycle == X.cycle and host.fetched_in_cycle or 0))
end

-- A URL of the queue ends unasked.
local function drop(host, url, reason, detail)
  Queue.take(host, url.bundle, url.fp)
  url.rank = Queue.rank_of(host, url)
  local record = url.asked and Urls.record(host, url.fp) or Urls.new_record(url)
  Urls.enter(host, record, Urls.DROPPED)
  record.bundle, record.cycle, record.settled, record.reason, record.detail = 0, X.cycle, X.wall_s, reason, detail
  Urls.save(host, record)
  Shelves.look_further(host)
end

-- Whether a queued URL is not fetched after all.
local function ends_here(host, url)
  local pattern, reason = Shard.block_of_url(url.url, url.fp)
  local deepest = Shard.policy(host.domain).max_depth
  if pattern then
    drop(host, url, 'blocked', pattern .. ': ' .. reason)
  elseif deepest and url.depth > deepest then
    local detail = 'depth ' .. url.depth .. ', the policy of ' .. host.domain .. ' allows ' .. deepest
    drop(host, url, 'policy_depth', detail)
  else
    return Traps.catch(host, url)
  end
  return true
end

-- When an origin whose pages may not be claimed is worth another look.
local function blocked_until(origin)
  if not origin then
    return nil
  end
  if origin[7] > 0 and X.now - origin[7] < MOVED_LIMIT_MS then
    return X.now + MOVED_POLL_MS
  end
  if origin[1] == 'unavailable' and origin[3] > X.now then
    return origin[3]
  end
  return nil
end

-- The first bundle of each lane of a host's queue, beginning with the class it was picked for.
local function firsts_of(host, lane)
  local members, keys = {}, {}
  for at, member in ipairs(Queue.firsts(host)) do
    members[at] = member
  end
  if #members > 1 then
    for _, member in ipairs(members) do
      local stored, step = Policy.read_place(member:sub(1, 9))
      keys[member] = (Hosts.lane_now(host, stored, step) ~= lane and '1' or '0') .. member:sub(2, 9) .. member:sub(1, 1)
    end
    table.sort(members, function(a, b) return keys[a] < keys[b] end)
  end
  return members
end

-- Whether the patterns of a URL are missing to judge it: they are asked for then, with those of others in the queue.
local function lacks_patterns(host, url)
  local place = Queue.place_in(url.bundle.member)
  if host.flagged == 0 or url.asked or place:byte(1) == 0 or place:sub(6, 8) == Queue.PROBE_MARK then
    return false
  end
  if not Traps.lacks(host, url.tail) then
    return false
  end
  local key = Queue.order_key(host)
  for _, member in ipairs(redis.call('ZRANGEBYLEX', key, '-', '(\7', 'LIMIT', 0, NEXT_PATTERNS)) do
    local bundle = Queue.load(host, Queue.number_in(member))
    for _, one in ipairs(bundle.asked == 0 and #X.lacking < NEXT_PATTERNS and Queue.items(bundle) or {}) do
      Traps.lacks(host, one.tail)
    end
  end
  return true
end

-- How many URLs a lease on a host is for (`nephila.frontier.span`).
local function urls_in_lease(host)
  if X.rules.ordered then
    return 1
  end
  local delay = Hosts.delay_of(host)
  if delay < X.rules.short_delay_ms then
    return X.rules.urls_per_lease
  end
  return math.min(X.rules.urls_per_lease, 1 + math.floor(X.rules.lease_span_ms / delay))
end

-- URLs whose origin answers no robots.txt stand before others of their host, and there may be any number of them: they wait
-- behind the others from now on (what somebody wants now stays). Answers how many bundles.
local function put_behind(host, passed)
  local moved = 0
  for at = 1, #passed do
    if moved < PUT_BEHIND and not Queue.is_behind(passed[at].member) then
      Queue.put_behind(host, passed[at])
      moved = moved + 1
    end
  end
  if moved > 0 and (X.rules.spill_above or 0) > 0 then
    redis.call('SADD', X.P .. 'long', host.name) -- the end of its queue is another one now
  end
  return moved
end

-- Whether a host has URLs of other origins than those that were passed over, or may have: http beside https is known to answer;
-- or what nobody can tell, where they have failed for long. Else a large site without its robots.txt would be moved about.
local function may_have_others(blocked)
  for name in pairs(blocked) do
    local origin, twin = Settle.origin(name), name:gsub('^http(s?)', function(s) return s == '' and 'https' or 'http' end)
    local other = not blocked[twin] and Settle.origin(twin)
    if (other and other[1] ~= 'unavailable') or (origin[5] > 0 and X.now - origin[5] >= FAILING_MS) then
      return true
    end
  end
  return false
end

-- Whether something that may be fetched may stand behind all that was looked at: then it comes in front.
local function looks_on(host, passed, looked, blocked)
  if X.rules.ordered or Queue.length(host) <= looked or not may_have_others(blocked) then
    return false
  end
  return put_behind(host, passed) > 0 or Spill.has_before(host)
end

-- The next pages of one origin; or the origin whose rules come first; or when to look again; or nothing.
local function first_unblocked(host, lane)
  local wanted = urls_in_lease(host)
  wanted = math.min(wanted, pages_left(host) or wanted, X.quota)
  local blocked, origin, work, known = {}, '', {}, nil
  if Traps.lacks_for_probe(host) then
    return 'lacking'
  end
  Traps.take_probe(host)
  local judged = X.blocks > 0 or host.flagged > 0 or Shard.policy(host.domain).max_depth
  local ended = false -- something left the queue meanwhile
  local looked, passed, firsts = 0, {}, firsts_of(host, lane)
  local each = X.rules.ordered and 1e9 or math.floor(LOOKED_AT / math.max(1, #firsts))
  for _, first in ipairs(firsts) do
    if #work >= wanted then
      break
    end
    local most = looked + each
    local stored, members, position = first:sub(1, 1), { first }, 1
    if ended then
      members = { Queue.first(host, stored) }
    end
    local bundles = Queue.load_all(host, members)
    while members[position] and #work < wanted and looked < most do
      local last, bundle, at = members[position], bundles[position], 1
      while at <= #bundle.items and #work < wanted do
        local url, following = Queue.item_at(bundle, at)
        local before = #bundle.items
        looked = looked + 1
        if url.asked then
          url.record = Urls.record(host, url.fp)
          url.tail_of_record = url.record.tail
        end
        url.url = Urls.spell(host, url.tail_of_record or url.tail)
        local its_origin = Urls.origin(url.url)
        if blocked[its_origin] == nil then
          if judged and lacks_patterns(host, url) then
            return 'lacking'
          end
          if judged and ends_here(host, url) then
            following, ended = at, true -- it left the bundle
          elseif #work > 0 and its_origin ~= origin then
            return 'work', work, known
          else
            local free = true
            if #work == 0 and X.rules.robots then
              known = Settle.origin(its_origin)
              local moment = blocked_until(known)
              if moment then
                blocked[its_origin], free = moment, false
              elseif not known or known[3] <= X.now then
                return 'origin', its_origin
              end
            end
            if free then
              origin = its_origin
              work[#work + 1] = url
            end
          end
        end
        at = following
        if #bundle.items == 0 and before > 0 then
          break
        end
      end
      if #work == 0 and not ended then
        passed[#passed + 1], passed.urls = bundle, looked
      end
      position = position + 1
      if #work < wanted and (ended or members[position] == nil) then
        members, position = Queue.following(host, stored, last, wanted - #work), 1
        bundles = Queue.load_all(host, members)
      end
    end
  end
  local soonest
  for _, moment in pairs(blocked) do
    soonest = soonest and math.min(soonest, moment) or moment
  end
  if #work > 0 then
    if (passed.urls or 0) >= PASSED_OVER and soonest and soonest - X.now >= WORTH_MS and not X.rules.ordered then
      put_behind(host, passed)
    end
    return 'work', work, known
  end
  if Queue.length(host) > 0 then
    if soonest and soonest - X.now >= WORTH_MS and looks_on(host, passed, looked, blocked) then
      return 'later', X.now + LOOK_ON_MS
    end
    return 'later', soonest or X.now -- what was looked at has ended, and other work has come
  end
  return 'nothing'
end

-- The ranks of URLs that were never asked for: those of a record are known with it.
local function find_ranks(host, urls)
  local names = {}
  for at, url in ipairs(urls) do
    names[at] = url.fp
  end
  Known.read_all(host, names)
  for _, url in ipairs(urls) do
    local _, rank = Known.where(host, url.fp)
    url.rank = rank
  end
end

-- Lease a ready host, or put it off: answers the lease, nil, or 'lacking'.
local function lease_host(host, lane)
  Hosts.rest_after_reboot(host)
  if host.free_at > X.now + X.ahead then
    Hosts.wait(host, host.free_at)
    return nil
  end
  if put_off(host) then
    return nil
  end
  if host.robots == 0 and pages_left(host) == 0 then
    Hosts.park(host, 'host_limit')
    return nil
  end
  if host.robots > 0 then
    local origins = redis.call('HKEYS', X.P .. 'rb:' .. host.name)
    table.sort(origins, function(a, b) return redis.sha1hex(a) < redis.sha1hex(b) end)
    return Claim.make(host, { Claim.robots_task(host, origins[1]) }, origins[1], {}, 0)
  end
  local kind, found, known = first_unblocked(host, lane)
  if kind == 'lacking' then
    return 'lacking'
  elseif kind == 'nothing' then
    Hosts.rest(host)
    return nil
  elseif kind == 'later' then
    Hosts.wait(host, math.max(found, host.free_at), found > X.now and 'robots_unavailable' or '')
    return nil
  elseif kind == 'origin' then
    local entry = cmsgpack.pack({ found .. '/robots.txt', 0 })
    host.robots = host.robots + redis.call('HSET', X.P .. 'rb:' .. host.name, found, entry)
    return Claim.make(host, { Claim.robots_task(host, found) }, found, {}, 0)
  end
  local tasks, fingerprints, numbers = {}, {}, {}
  find_ranks(host, found)
  for at, url in ipairs(found) do
    tasks[at], fingerprints[at], numbers[at] = Claim.page_task(host, url), url.fp, url.asked and '' or url.bundle.number
  end
  return Claim.make(host, tasks, '', fingerprints, known and known[2] or 0, numbers)
end

local SWEPT, ASKED, PREPARED = 1, 2, 3 -- how far a claim has come when it asks for something and is called again

-- What has to be done before hosts are chosen, from where it was left; how far it has come.
local function prepare(stage, hosts)
  if stage < SWEPT then
    Claim.lift()
    Claim.replan()
    Claim.sweep()
    if #X.ungraded > 0 then
      return stage
    end
    stage = SWEPT
  end
  if stage < PREPARED then
    Claim.empty_coverage_shelves()
    Claim.promote(20 * hosts + 200, stage == ASKED)
    if #X.ungraded > 0 then
      return ASKED
    end
    Claim.refresh_classes()
  end
  return #X.lacking == 0 and PREPARED or stage
end

-- ARGV: clock, hosts, lease_ms, worker, request, again, holder, header
function Claim.call(keys, args)
  Shard.open(keys[1], args[1])
  local hosts, head = tonumber(args[2]), Shard.header(args[8])
  X.lease_ms, X.request, X.holder, X.granted = tonumber(args[3]), args[5], args[7], {}
  X.quota, X.wanted_hosts, X.ready_ahead = head.quota or 1000000, math.min(math.max(hosts, 1), 100), {}
  X.ahead = X.rules.ordered and X.rules.ordered_wait_ms or X.rules.look_ahead_ms
  if args[6] == '1' then
    local leases = Claim.told_again(args[4], args[5])
    if leases then
      return { 'OK', X.now, X.wall_ms, leases, {}, {}, {}, 0, PREPARED, {} }
    end
  end
  Traps.given(head.patterns)
  Grades.given(head.grades)
  local stage = prepare(head.stage or 0, hosts)
  X.ready = {}
  for lane = 0, 6 do
    X.ready[lane] = redis.call('ZCARD', Later.now(Hosts.READY_IN[lane]))
  end
  local leases, left, draws = {}, {}, X.draws
  local wanted, at = head.wanted, 1
  while #leases < hosts and #X.lacking == 0 and #X.ungraded == 0 and (not wanted or at <= #wanted) do
    local host, lane, reserved = pick(wanted and wanted[at])
    if host then
      local lease = lease_host(host, lane)
      if lease == 'lacking' then
        X.draws = X.draws - 1
        X.reserved = (X.reserved or 0) - (reserved and 1 or 0)
      elseif lease then
        table.insert(leases, lease)
        at = at + 1
      end
    elseif wanted then
      table.insert(left, wanted[at])
      at = at + 1
    else
      break
    end
  end
  for position = at, wanted and #wanted or 0 do
    table.insert(left, wanted[position])
  end
  Shard.set('draws', X.draws)
  Shard.set('tokens', X.tokens)
  Shard.count('draws', X.draws - draws)
  Shard.count('reserved', X.reserved or 0)
  if #X.granted > 0 then
    Claim.note_granted(args[4], args[5])
  end
  local ready = {}
  for lane = 0, 6 do
    ready[lane + 1] = X.ready[lane]
  end
  local moment = Tell.next_moment()
  Shard.close()
  return { 'OK', X.now, X.wall_ms, leases, X.lacking, ready, left, moment, stage, X.ungraded }
end
