-- One URL that is new on a host of which nothing special is known: what most links to other hosts come to.
--
-- A page brings something new to three or four other hosts, a URL to each. On the ordinary way (admit.lua, queue.lua) that
-- costs as much as all that is new on its own host, since what has to be found out is found out for a host. Here is the same
-- for the common case in one go; whatever is not common goes the ordinary way, of which nothing has been done then.

local byte, find, sub = string.byte, string.find, string.sub
local HEAD, NO_LEVEL = Links.HEAD, Links.NO_LEVEL
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
  if low and not find(X.buckets[group.keys[1]], sub(group.facts, HEAD + low, HEAD + 8), 1, true) then
    return ONE
  end
  return nil
end

-- Queue the only candidate of a group; false where its host is not ordinary.
function Admit.queue_only(group, source)
  local host, facts = Shard.host(group.name), group.facts
  local depth, level, hops, high, low = byte(facts, HEAD + 9, HEAD + 13)
  if level ~= NO_LEVEL or host.buckets >= Known.WIDE or not Shelves.has_room_for(host, 1) then
    return false
  end
  local rank = Admit.first_rank(group.domain, source)
  local points = Queue.score(host, rank, depth, (high < 128 and high or high - 256) * 256 + low)
  local lane, step, number = Policy.level_of(X.rules, points), Policy.step_for(X.step, points), host.next_bundle
  local place = struct.pack('>I4B', lane * 16777216 + step, depth) .. sub(facts, HEAD + 18, HEAD + 21)
  local note = Known.pack(Known.IN_QUEUE, rank, depth, number)
  Known.add(host, group.keys[1], sub(facts, HEAD + 9 - Known.PART, HEAD + 8) .. note)
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
  if host.standing ~= Hosts.READY or Hosts.is_better(host, place) then
    Hosts.wake(host, { place })
  end
  if host.standing == Hosts.IDLE and host.trap_at > 0 then
    Hosts.rest(host)
  end
  return true
end
