-- Traps told by what they bring (T2, T5): the twin of `nephila.frontier.traps`, on the tallies of a shard.
--
-- What a URL's patterns are is the caller's business (they are long to find and depend on nothing here). They are given
-- by spelling, each as {pattern, group}. Where some are needed and were not given, a verb asks for them before it has
-- written anything of the host in question, and is called again with them (`Traps.lacks`).

local RING, HASH = 128, 4
local PATIENCE = { 1.0, 1.2, 2.5 }
local ESTABLISHED, TRIED, STUMBLES, HOPES, PROVEN_FACTOR = 5, 10, 2, 20, 10
local DATE_NAMES = { date = true, day = true, month = true, year = true, week = true }
local NORMAL, SLOWED, QUARANTINED = 0, 1, 2

local function key_of(host)
  return X.P .. 't:' .. host.name
end

local BYTES = {}
for byte = 0, 255 do
  BYTES[string.format('%02x', byte)] = string.char(byte)
end

local function unhex(text)
  return (text:gsub('%x%x', BYTES))
end
Traps.unhex = unhex

-- What a caller gave: {spelling: [[pattern, group in hex], ...]}.
function Traps.given(patterns)
  X.patterns, X.lacking = {}, {}
  for url, found in pairs(patterns or {}) do
    local some = {}
    for at, pattern in ipairs(found) do
      some[at] = { pattern[1], unhex(pattern[2]) }
    end
    X.patterns[url] = some
  end
end

-- Whether the patterns of a URL are missing: they are asked for then.
function Traps.lacks(host, tail)
  local url = Urls.spell(host, tail)
  if X.patterns[url] then
    return false
  end
  table.insert(X.lacking, url)
  return true
end

local function patterns_of(host, url)
  return X.patterns[Urls.spell(host, url.tail)]
end
Traps.patterns_of = patterns_of

local function read(pattern, raw)
  local values = cmsgpack.unpack(raw)
  return {
    pattern = pattern,
    state = values[1], barren = values[2], fetched = values[3], fresh = values[4], duplicates = values[5],
    repeats = values[6], errors = values[7], since_s = values[8], not_before_s = values[9], released =
    values[10], poured = values[11], poured_hour = values[12], flagged_s = values[13], example = values[14],
    texts = values[15], shapes = values[16], hopes = values[17], group = values[18],
  }
end

-- What was read of a host in this call, by pattern; false for what is not counted yet.
local function read_before(host)
  local found = X.tallies[host.name]
  if found == nil then
    found = {}
    X.tallies[host.name] = found
  end
  return found
end

local function find(host, pattern)
  local found = read_before(host)
  if found[pattern] == nil then
    local raw = redis.call('HGET', key_of(host), pattern)
    found[pattern] = raw and read(pattern, raw) or false
  end
  return found[pattern] or nil
end

local function save(host, tally, was)
  read_before(host)[tally.pattern] = tally
  local counted = X.counted[host.name]
  if not counted then
    counted = {}
    X.counted[host.name] = counted
  end
  counted[tally.pattern] = tally
  local change = (tally.state ~= NORMAL and 1 or 0) - (was ~= NORMAL and 1 or 0)
  host.flagged = host.flagged + change
  if change ~= 0 and host.flagged > 0 then
    redis.call('ZADD', X.P .. 'flagged', 0, host.name)
  elseif change ~= 0 then
    redis.call('ZREM', X.P .. 'flagged', host.name)
  end
  Shard.count('traps', change)
end
Traps.save = save

-- Tallies that have changed are packed when the call ends, or somebody reads all of a host: pages of a lease have the same ones.
local function pack_tallies(name, counted)
  for pattern, tally in pairs(counted) do
    Later.set('t:' .. name, pattern, cmsgpack.pack({
      tally.state, tally.barren, tally.fetched, tally.fresh, tally.duplicates, tally.repeats, tally.errors,
      tally.since_s, tally.not_before_s, tally.released, tally.poured, tally.poured_hour, tally.flagged_s,
      tally.example, tally.texts, tally.shapes, tally.hopes, tally.group,
    }))
  end
end

function Traps.close()
  for name, counted in pairs(X.counted) do
    pack_tallies(name, counted)
  end
end

-- The tallies of a URL's patterns, new ones where nothing was counted yet.
local function tallies_of(host, patterns)
  local found, before = {}, read_before(host)
  if #patterns == 3 and before[patterns[1][1]] == nil then
    local one, two, three = patterns[1][1], patterns[2][1], patterns[3][1]
    local raws = redis.call('HMGET', key_of(host), one, two, three)
    before[one] = before[one] or (raws[1] and read(one, raws[1]) or false)
    before[two] = before[two] or (raws[2] and read(two, raws[2]) or false)
    before[three] = before[three] or (raws[3] and read(three, raws[3]) or false)
  end
  for at, pattern in ipairs(patterns) do
    found[at] = find(host, pattern[1]) or {
      pattern = pattern[1], group = pattern[2], state = NORMAL, barren = 0, fetched = 0, fresh = 0, duplicates = 0,
      repeats = 0, errors = 0, since_s = 0, not_before_s = 0, released = 0, poured = 0, poured_hour = 0,
      flagged_s = 0, example = '', texts = '', shapes = '', hopes = 0,
    }
  end
  return found
end

function Traps.all(host)
  pack_tallies(host.name, X.counted[host.name] or {})
  local all, found, before = redis.call('HGETALL', Later.all_now('t:' .. host.name)), {}, read_before(host)
  for at = 1, #all, 2 do
    before[all[at]] = before[all[at]] or read(all[at], all[at + 1])
    table.insert(found, before[all[at]])
  end
  return found
end

local function has_merit(tally)
  if tally.released == 1 then
    return true
  end
  local tried = tally.fetched >= TRIED and tally.fresh * 4 >= tally.fetched
  return tally.state == NORMAL and tried and tally.barren < X.rules.slow_after
end

-- The tally that holds URLs of these patterns back, the strictest one; nil when they may go.
local function holding(tallies)
  local found
  for _, tally in ipairs(tallies) do
    if tally.state > (found and found.state or NORMAL) then
      found = tally
    end
    if has_merit(tally) then
      break
    end
  end
  return found
end

local function wait_s(state)
  return state == QUARANTINED and X.rules.probe_s or X.rules.slow_s
end

-- What holds a URL back, by its patterns.
function Traps.hold_on(host, patterns)
  return holding(tallies_of(host, patterns))
end

function Traps.without_trapped(host, urls, lane, step, depth)
  local free, held, order = {}, {}, {}
  for _, url in ipairs(urls) do
    local tally = Traps.hold_on(host, patterns_of(host, url))
    if tally == nil then
      table.insert(free, url)
    else
      if held[tally.group] == nil then
        held[tally.group] = {}
        table.insert(order, tally.group)
      end
      table.insert(held[tally.group], url)
      local moment = X.now + math.max(1, math.max(1, tally.not_before_s) - X.wall_s) * 1000
      host.trap_at = host.trap_at > 0 and math.min(host.trap_at, moment) or moment
    end
  end
  for _, group in ipairs(order) do
    Shelves.park(host, held[group], 'trap', group, lane, step, depth)
  end
  return free
end

-- Whether a queued URL is held back: it is parked then.
function Traps.catch(host, url)
  local place = Queue.place_in(url.bundle.member)
  if host.flagged == 0 or url.asked or place:byte(1) == 0 or place:sub(6, 8) == Queue.PROBE_MARK then
    return false
  end
  local tally = Traps.hold_on(host, patterns_of(host, url))
  if tally == nil then
    return false
  end
  local lane, step, depth = Policy.read_place(place)
  local taken = Queue.take(host, url.bundle, url.fp)
  Shelves.park(host, { taken }, 'trap', tally.group, lane, step, depth)
  Shelves.look_further(host)
  return true
end

-- Whether the first URLs on a shelf are held by a stricter pattern by now: they are put onto its shelf then.
local function held_by_another(host, group)
  local member = Queue.first(host, string.char(128 + Queue.SHELF.trap) .. group)
  local first = Queue.item_at(Queue.load(host, Queue.number_in(member)), 1)
  local tally = Traps.hold_on(host, patterns_of(host, first))
  if tally == nil or tally.group == group then
    return false
  end
  local place, urls = member:sub(1, 18), {}
  while member do
    for _, url in ipairs(Queue.take_all(host, Queue.load(host, Queue.number_in(member)))) do
      urls[#urls + 1] = url
    end
    member = Queue.first(host, place)
  end
  local lane, step, depth = Policy.read_place(place:sub(10))
  Shelves.park(host, urls, 'trap', tally.group, lane, step, depth)
  return true
end

local function by_group(host)
  local found = {}
  for _, tally in ipairs(Traps.all(host)) do
    if tally.state ~= NORMAL then
      found[tally.group] = tally
    end
  end
  return found
end

-- Let come back what may: one URL of each pattern whose time has come, and all that nothing holds.
function Traps.take_probe(host)
  if host.trap_at == 0 or host.trap_at > X.now then
    return
  end
  local held = by_group(host)
  for _, group in ipairs(Shelves.groups(host, 'trap')) do
    local tally = held[group]
    if tally == nil then
      Shelves.unshelve(host, 'trap', Shelves.RELEASED_AT_ONCE, group)
    elseif tally.not_before_s <= X.wall_s and not held_by_another(host, group) then
      Shelves.unshelve(host, 'trap', 1, group, Queue.PROBE_MARK .. '\0')
      tally.not_before_s = X.wall_s + wait_s(tally.state)
      save(host, tally, tally.state)
    end
  end
  local soonest = 0
  for _, group in ipairs(Shelves.groups(host, 'trap')) do
    local moment = X.now + (held[group] and math.max(1, held[group].not_before_s - X.wall_s) * 1000 or 1)
    soonest = soonest > 0 and math.min(soonest, moment) or moment
  end
  host.trap_at = soonest
end

-- Whether `take_probe` would need patterns that were not given: of the first URL of each group on the shelf.
function Traps.lacks_for_probe(host, at_once)
  local lacking = false
  if host.shelved[2] > 0 and (at_once or (host.trap_at > 0 and host.trap_at <= X.now)) then
    for _, group in ipairs(Shelves.groups(host, 'trap')) do
      local member = Queue.first(host, string.char(128 + Queue.SHELF.trap) .. group)
      local first = Queue.item_at(Queue.load(host, Queue.number_in(member)), 1)
      lacking = Traps.lacks(host, first.tail) or lacking
    end
  end
  return lacking
end

-- Let a pattern start anew, by a person's word; how many URLs come back at once.
function Traps.release(host, group)
  for _, tally in ipairs(Traps.all(host)) do
    if tally.group == group then
      local was, shelved = tally.state, host.shelved[1] + host.shelved[2] + host.shelved[3]
      tally.state, tally.since_s, tally.barren, tally.not_before_s, tally.released = NORMAL, X.wall_s, 0, 0, 1
      save(host, tally, was)
      host.trap_at = math.max(1, X.now)
      if host.token == 0 then
        Traps.take_probe(host)
        Hosts.rest(host)
      end
      return shelved - (host.shelved[1] + host.shelved[2] + host.shelved[3])
    end
  end
  return 0
end

-- Judging a fetch

local function place_in_ring(ring, hash)
  local at = ring:find(hash, 1, true)
  while at and (at - 1) % HASH ~= 0 do
    at = ring:find(hash, at + 1, true)
  end
  return at
end

local function remembering(ring, hash)
  if hash == '' then
    return ring
  end
  local at = place_in_ring(ring, hash)
  if at then
    ring = ring:sub(1, at - 1) .. ring:sub(at + HASH)
  end
  return (ring .. hash):sub(-RING * HASH)
end

local function dated(pattern)
  if pattern:find('{date}', 1, true) then
    return true
  end
  local names = pattern:match('%?(.*)$')
  for name in (names or ''):gmatch('[^&]+') do
    if DATE_NAMES[name] then
      return true
    end
  end
  return false
end

local function shape_of(seen)
  if seen.shape ~= '' then
    return seen.shape:sub(1, HASH)
  end
  return seen.outlinks > 0 and '\0\0\0\0' or ''
end

local function says_nothing_new(tallies, seen)
  local text = seen.text:sub(1, HASH)
  if text ~= '' then
    for _, tally in ipairs(tallies) do
      if place_in_ring(tally.texts, text) then
        return true
      end
    end
  end
  local kind = (#tallies == 3 and tallies[1].fetched >= ESTABLISHED) and tallies[1] or tallies[#tallies - 1]
  local own = false
  for _, pattern in ipairs(seen.found_on) do
    own = own or pattern == kind.pattern
  end
  if not (own or dated(tallies[1].pattern)) then
    return false
  end
  local shape = shape_of(seen)
  return seen.near or (shape ~= '' and place_in_ring(kind.shapes, shape) ~= nil)
end

local function worth_it(tally)
  if tally == nil then
    return true
  end
  if tally.state ~= NORMAL or tally.barren > STUMBLES then
    return false
  end
  if tally.fetched == 0 or tally.fresh * 2 > tally.fetched then
    return true
  end
  return tally.fetched >= TRIED and tally.fresh * 4 >= tally.fetched
end

local function count_outside(host, own, group, positions)
  local kind, by_date = own[1][1], dated(own[1][1])
  local kin = kind:find('?', 1, true) and own[#own - 1][1] or ''
  local good, count = { [kind] = false }, 0
  for _, position in ipairs(positions) do
    local link = X.patterns[Urls.spell(host, (Links.spelling(group, position)))]
    local other = link[1][1]
    if good[other] == nil then
      local tally = find(host, other)
      local promising = worth_it(tally) and (link[#link - 1][1] ~= kin or tally == nil or tally.fetched < TRIED)
      good[other] = promising and not (by_date and dated(other))
    end
    count = count + (good[other] and 1 or 0)
  end
  return count
end

local function count(tally, seen, result)
  tally.fetched = tally.fetched + 1
  if seen.error then
    tally.errors = tally.errors + 1
  elseif seen.duplicate then
    tally.duplicates = tally.duplicates + 1
  end
  if result == 'fresh' then
    tally.fresh = tally.fresh + 1
    tally.barren = math.max(0, tally.barren - 9)
  elseif result == 'wasted' then
    if not seen.error and not seen.duplicate then
      tally.repeats = tally.repeats + 1
    end
    tally.barren = tally.barren + 1
    tally.example = seen.url:sub(1, 300)
  end
  if not seen.error then
    tally.texts = remembering(tally.texts, seen.text:sub(1, HASH))
    tally.shapes = remembering(tally.shapes, shape_of(seen))
  end
end

local function move(tally, result, patience)
  local rules = X.rules
  local slow, stop = rules.slow_after * patience, rules.stop_after * patience
  local pours = tally.poured > rules.poured_per_hour * (has_merit(tally) and PROVEN_FACTOR or 1)
  if pours then
    tally.flagged_s = X.wall_s
  end
  local state = tally.state
  if state == QUARANTINED then
    if result == 'fresh' then
      state, tally.barren = SLOWED, math.floor(slow)
    end
  elseif tally.barren >= stop or (pours and tally.barren >= slow) then
    state = QUARANTINED
  elseif pours or tally.barren >= slow then
    state = SLOWED
  elseif tally.barren <= slow / 2 then
    state = NORMAL
  end
  if state ~= tally.state then
    tally.state, tally.since_s = state, X.wall_s
    tally.released = (tally.released == 1 and state == NORMAL) and 1 or 0
  end
  if state ~= NORMAL then
    tally.not_before_s = X.wall_s + wait_s(state)
  end
end

-- Whether the links' patterns decide what a fetch was: then they have to be given.
function Traps.needs_links(host, seen)
  return not seen.error and not seen.duplicate and says_nothing_new(tallies_of(host, seen.patterns), seen)
end

-- Count a fetch in the tallies of its patterns; whether it brought new content. The new URLs of its host are those at
-- `positions` of a group of candidates.
function Traps.judge(host, seen, group, positions, abroad)
  local tallies, result = tallies_of(host, seen.patterns), 'fresh'
  if seen.error or seen.duplicate then
    result = 'wasted'
  elseif says_nothing_new(tallies, seen) then
    local outside = count_outside(host, seen.patterns, group, positions) + abroad
    result = (outside > 0 and tallies[#tallies].hopes < HOPES) and 'alive' or 'wasted'
  end
  local widest, hour, freed = tallies[#tallies], math.floor(X.wall_s / 3600), false
  widest.hopes = result == 'fresh' and 0 or widest.hopes + 1
  local counting = true
  for at, tally in ipairs(tallies) do
    local was = tally.state
    if counting then
      local patience = PATIENCE[#PATIENCE - #tallies + at]
      local speaks_for_itself = tally.fetched >= X.rules.stop_after * patience
      count(tally, seen, result)
      if hour ~= tally.poured_hour then
        tally.poured, tally.poured_hour = 0, hour
      end
      tally.poured = tally.poured + seen.inside
      move(tally, result, patience)
      freed = freed or (was ~= NORMAL and tally.state == NORMAL)
      counting = not speaks_for_itself
    end
    save(host, tally, was)
  end
  if freed then
    host.trap_at = math.max(1, X.now) -- what lies on its shelf may come back
  end
  return result == 'fresh'
end
