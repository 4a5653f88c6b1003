-- Links to what is known: most raise a rank, and few do more (admit.lua has what is new).

local BAND = 8 -- a waiting URL is given another place when its rank enters another band of so many
local NO_LEVEL, HEAD, EACH = Links.NO_LEVEL, Links.HEAD, Links.EACH
local byte, find, sub = string.byte, string.find, string.sub
local ON_SHELF, SHELF_OUTSIDE, HAS_RECORD, DEEP = Known.ON_SHELF, Known.SHELF_OUTSIDE, Known.HAS_RECORD, Known.DEEP
local WAITS, ENDED_BEFORE, read_note, note_rank = Known.WAITS, Known.ENDED_BEFORE, Known.read, Known.note_rank

-- Give a waiting URL the place it deserves by now; what is leased stays as it was claimed. `key`, `at`: where it is noted.
local function move(host, bundle, rank, candidate, key, at)
  local lane, step, depth = Policy.read_place(bundle.member)
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
  local place, number = Queue.move(host, bundle, candidate, new_lane, new_step, nearer)
  Known.note_at(key, at, Known.IN_QUEUE, rank, nearer, number)
  Hosts.wake(host, { place })
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
local function meet_in_queue(host, candidate, kind, number, rank, depth, key, place)
  local bundle = Queue.holding(host, candidate.fp, kind, number)
  if bundle and bundle.spilled then
    Spill.meet(host, bundle, candidate, rank, depth)
  elseif bundle then
    move(host, bundle, rank, candidate, key, place)
  end
end

-- A link to what is known that comes to more than another rank. The bucket's key, and where its entry is; what is noted.
local function meet_again(host, group, position, key, place, rank, kind, depth, number)
  local candidate = Links.read(group, position)
  host = Shard.host(host.name)
  if kind == ON_SHELF or kind == SHELF_OUTSIDE then
    meet_on_shelf(host, candidate, kind, number, rank)
    return 0
  elseif kind ~= HAS_RECORD then
    meet_in_queue(host, candidate, kind, number, rank, depth, key, place)
    return 0
  end
  local record = Urls.record(host, candidate.fp)
  return record and meet_record(host, record, candidate) or 0
end

-- Where the entry of a candidate begins, and what is noted there; nil when it is new.
local function find_noted(host, text, name)
  local at = Known.place_of(host, text, name)
  if at then
    return at, read_note(text, at)
  end
  return nil
end

-- A link to what is known, and what is noted of it. Most come to nothing but another rank.
local function meet(host, group, position, raising, key, at, kind, rank, depth, number)
  local from = HEAD + EACH * (position - 1)
  local its_depth, level, _, _, _, c1, c2, c3, c4 = byte(group.facts, from + 9, from + 17)
  local special
  if kind == ON_SHELF or kind == SHELF_OUTSIDE then
    special = level == 0
  else
    local other = false
    if raising then
      local raised = raising.raised(rank, c1 * 16777216 + c2 * 65536 + c3 * 256 + c4)
      if raised ~= rank then
        Known.note_rank(key, at, kind, raised)
        other = raised - raised % BAND ~= rank - rank % BAND and not X.rules.compact
        rank = raised
      end
    end
    local nearer = its_depth < depth or (depth == DEEP and its_depth >= DEEP)
    if kind == HAS_RECORD then
      special = level ~= NO_LEVEL or number == ENDED_BEFORE or (nearer and number == WAITS)
    else
      special = level ~= NO_LEVEL or nearer or other
    end
  end
  return special and meet_again(host, group, position, key, at, rank, kind, depth, number) or 0
end

-- The links of a group: which are new (their positions), how many are known, and of these cooling. What waits, is not as deep
-- as can be told, and gets no other rank, is passed over here: that is most of them.
function Admit.meet_all(group, raising)
  local host, facts, keys, buckets, new, news, cooling = group.host, group.facts, group.keys, X.buckets, {}, 0, 0
  local low, entry = Known.plain(host)
  local from, raised_from, count = HEAD, raising and raising.from, group.count
  for position = 1, count do
    local key = keys[position]
    local text = buckets[key]
    local at = low and find(text, sub(facts, from + low, from + 8), 1, true)
    if at and (at - 1) % entry == 0 then
      local rank, middle = byte(text, at + 6, at + 7)
      local its_depth, level, _, _, _, c1, c2, c3, c4 = byte(facts, from + 9, from + 17)
      local chance = c1 * 16777216 + c2 * 65536 + c3 * 256 + c4
      if rank > 127 or level ~= NO_LEVEL or middle >= 240 or its_depth * 16 + 15 < middle then
        cooling = cooling + meet(host, group, position, raising, key, at, read_note(text, at))
      elseif raised_from and chance >= raised_from[rank] then
        local raised = raising.raised(rank, chance)
        if raised - raised % BAND == rank - rank % BAND then
          note_rank(key, at, 0, raised) -- and it stays where it is
        else
          cooling = cooling + meet(host, group, position, raising, key, at, read_note(text, at))
        end
      end
    else
      local kind, its_rank, depth, number
      if at or not low then
        at, kind, its_rank, depth, number = find_noted(host, text, sub(facts, from + 1, from + 8))
      end
      if at then
        cooling = cooling + meet(host, group, position, raising, key, at, kind, its_rank, depth, number)
      else
        news = news + 1
        new[news] = position
      end
    end
    from = from + EACH
  end
  return new, count - news, cooling
end
