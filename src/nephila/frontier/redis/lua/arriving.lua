-- One URL that is new on a host of which nothing special is known: what most links to other hosts come to.
--
-- A page brings something new to three or four other hosts, a URL to each. On the ordinary way (admit.lua, queue.lua) that
-- costs as much as all that is new on its own host, since what has to be found out is found out for a host. Here is the same
-- for the common case in one go; whatever is not common goes the ordinary way, of which nothing has been done then.

local byte, sub, char, floor = string.byte, string.sub, string.char, math.floor
local HEAD, EACH, NO_LEVEL = Links.HEAD, Links.EACH, Links.NO_LEVEL
local READY, SHALLOW = Hosts.READY, 15
local ONE = { 1 }
local word = Known.word

-- Whether a crawl is such that hosts may be ordinary: nobody has said what to keep out, and no domain is put off.
function Admit.is_ordinary()
  return X.policies == 0 and X.blocks == 0 and (X.rules.target_domains == 0 or X.covered) and not X.rules.compact
end

-- Whether the only candidate of a group is plainly new: its positions then, else nil.
function Admit.only_new(group)
  local host = group.host
  local low = group.count == 1 and Known.plain(host)
  if low and not string.find(X.buckets[group.keys[1]], sub(group.facts, HEAD + low, HEAD + 8), 1, true) then
    return ONE
  end
  return nil
end

local function has_room(host, rules)
  local lanes = host.lanes
  local queued = lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7] + 1
  return host.flagged == 0 and host.over == 0 and host.sections == 0 and host.admitted < rules.first_urls
    and queued <= rules.queued_per_host and queued <= floor(rules.queued_per_prefix / 2)
end

local function rank_for(group, source)
  local share = source.share
  if not share then
    return source.first_rank
  end
  local rank = Admit.first_rank(share[group.domain == source.domain and 1 or 3], source)
  X.mean = Policy.next_mean(X.mean, rank)
  X.meta.mean = X.mean
  return rank
end

-- Queue the only candidate of a group; false where its host is not ordinary.
function Admit.queue_only(group, source)
  local host, rules, facts = Shard.host(group.name), X.rules, group.facts
  local depth, level, hops, high, low = byte(facts, HEAD + 9, HEAD + 13)
  if level ~= NO_LEVEL or host.buckets >= Known.WIDE or not has_room(host, rules) then
    return false
  end
  local rank = rank_for(group, source)
  local points = Queue.score(host, rank, depth, (high < 128 and high or high - 256) * 256 + low)
  local lane = points >= rules.high_from and 1 or points >= rules.medium_from and 2 or 3
  local number, step = host.next_bundle, Policy.step_for(X.step, points)
  local place = struct.pack('>I4B', lane * 16777216 + step, depth) .. sub(facts, HEAD + 18, HEAD + 21)
  local noted = number % 4096
  Known.add(host, group.keys[1], sub(facts, HEAD + 9 - Known.PART, HEAD + 8) .. char(
    rank, (depth < SHALLOW and depth or SHALLOW) * 16 + floor(noted / 256), noted % 256
  ))
  Queue.keep(host, {
    number = word(number), member = place .. struct.pack('>I4', number), asked = 0, hops = hops, admitted = X.wall_s,
    cycle = X.cycle, via = X.via, items = sub(group.items, #group.base + 1), base = group.base,
  })
  host.next_bundle, host.admitted, host.urls = number + 1, host.admitted + 1, host.urls + 1
  host.lanes[lane + 1] = host.lanes[lane + 1] + 1
  X.grown[host.name] = host
  Queue.count_new(lane)
  Spill.notice(host, number)
  if host.work_since == 0 then
    host.work_since = math.max(1, X.now)
  end
  if host.token ~= 0 then
    return true
  end
  if host.standing ~= READY or Hosts.is_better(host, place) then
    Hosts.wake(host, { place })
  end
  if host.standing == Hosts.IDLE and host.trap_at > 0 then
    Hosts.rest(host)
  end
  return true
end
