-- The queue of a host: bundles of URLs that were found together, sorted by their places (bundles.lua has what is in one).
--
-- A bundle is named by a number; the sorted set of the host holds place and number, the hash the URLs. What is parked
-- lies in the same two, under a key that begins with its shelf. A chunk that is kept outside has a stub in the hash, and is
-- not in the sorted set (spilling.lua).

local MOST = 64 -- URLs in a bundle: one is written anew when a URL leaves it
local PROBE_MARK = '\0\0\0'
Queue.PROBE_MARK = PROBE_MARK
Queue.SHELF = { over_budget = 1, trap = 2, coverage = 3 }
Queue.REASONS = { 'over_budget', 'trap', 'coverage' }

local order_key = Queue.order_key

function Queue.length(host)
  local lanes = host.lanes
  return lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7]
end

local LAST = string.rep('\255', 23) -- behind all that begins with a prefix

-- The first member that begins with a prefix (from `after` on, if given).
function Queue.first(host, prefix, after)
  local low = after and ('(' .. after) or ('[' .. prefix)
  return redis.call('ZRANGEBYLEX', order_key(host), low, '[' .. prefix .. LAST, 'LIMIT', 0, 1)[1]
end

-- So many members that begin with a prefix, behind one of them.
function Queue.following(host, prefix, after, count)
  return redis.call('ZRANGEBYLEX', order_key(host), '(' .. after, '[' .. prefix .. LAST, 'LIMIT', 0, count)
end

local CHARS = {}
for lane = 0, 6 do
  CHARS[lane] = string.char(lane)
end

-- The first member of each class that URLs were queued in.
function Queue.firsts(host)
  local found = host.firsts
  if not found then
    found = {}
    for lane = 0, 6 do
      local first = host.lanes[lane + 1] > 0 and Queue.first(host, CHARS[lane])
      if first then -- all of them may be outside
        found[#found + 1] = first
      end
    end
    host.firsts = found
  end
  return found
end

-- Counters of the queue and the shelves

local AGE_STEP_S = 14400

-- A host with URLs that are put off for coverage, among those of its domain.
local function covering(host)
  return host.domain .. '\0' .. host.tie .. host.name
end

local LANES = {}
for lane = 0, 6 do
  LANES[lane] = 'q' .. lane
end
local last_age, ages = nil, {} -- names of the counters of an age: most that is counted came within the same hours

local function counter_of_age(age, level)
  if age ~= last_age then
    last_age = age
    for each = 0, 3 do
      ages[each] = 'a:' .. age .. ':' .. each
    end
  end
  return ages[level]
end

local function count(host, member, by, admitted)
  if #member > 13 then
    local shelf = member:byte(1) - 128
    host.shelved[shelf] = host.shelved[shelf] + by
    Shard.count('parked:' .. Queue.REASONS[shelf], by)
    if shelf == 3 and (host.shelved[3] == by or host.shelved[3] == 0) then
      if by > 0 then
        redis.call('ZADD', X.P .. 'covering', 0, covering(host))
      else
        redis.call('ZREM', X.P .. 'covering', covering(host))
      end
    end
  else
    local lane = member:byte(1)
    host.lanes[lane + 1] = host.lanes[lane + 1] + by
    Shard.count(LANES[lane], by)
    Shard.count(counter_of_age(Queue.age_of(admitted), Policy.level_of_lane(lane)), by)
  end
end

-- One URL was queued just now that was never asked for.
function Queue.count_new(lane)
  local counts, of_lane, of_age = X.counts, LANES[lane], counter_of_age(Queue.age_of(X.wall_s), lane)
  counts[of_lane], counts[of_age], counts.urls =
    (counts[of_lane] or 0) + 1, (counts[of_age] or 0) + 1, (counts.urls or 0) + 1
end

-- URLs are counted by when they were admitted, in steps of some hours.
function Queue.age_of(admitted)
  return math.floor(admitted / AGE_STEP_S)
end

function Queue.admitted_in(age)
  return age * AGE_STEP_S
end

-- So many of one age come or go.
function Queue.count_many(host, member, by, age)
  count(host, member, by, Queue.admitted_in(age))
end

-- Sections: URLs queued by their first path segment, counted once a host has many (T1)

function Queue.section_of(tail)
  local path = tail:match('^[^?]*')
  local rest = path:match('/(.*)$') or path
  return redis.sha1hex(rest:match('^[^/]*')):sub(1, 8)
end

local function section_key(host)
  return X.P .. 'sec:' .. host.name
end

local function tail_of(host, url)
  return url.asked and Urls.record(host, url.fp).tail or url.tail
end

function Queue.counts_sections(host, more)
  return host.sections == 1 or Queue.length(host) + more > math.floor(X.rules.queued_per_prefix / 2)
end

-- Sections are counted by a part of their name, so that no host has more than 4,096 counters: two that share one count together.
local function counter_of(section)
  return section:sub(1, 3)
end

local function add_to_sections(host, changes)
  for counter, by in pairs(changes) do
    if redis.call('HINCRBY', section_key(host), counter, by) == 0 then
      redis.call('HDEL', section_key(host), counter)
    end
  end
end

local function count_sections(host, urls, by, changes)
  if host.sections == 0 then
    return
  end
  local sums = changes or {}
  for _, url in ipairs(urls) do
    local counter = counter_of(Queue.section_of(tail_of(host, url)))
    sums[counter] = (sums[counter] or 0) + by
  end
  if not changes then
    add_to_sections(host, sums)
  end
end

-- From now on they are counted. What is outside by now is counted when it comes back.
function Queue.begin_sections(host)
  host.sections = 1
  local members, sums = redis.call('ZRANGEBYLEX', order_key(host), '-', '(\7'), {}
  for _, member in ipairs(members) do
    count_sections(host, Queue.items(Queue.load(host, Queue.number_in(member))), 1, sums)
  end
  add_to_sections(host, sums)
end

function Queue.in_section(host, section)
  return tonumber(redis.call('HGET', section_key(host), counter_of(section)) or 0)
end

function Queue.leaves_section(host, url)
  count_sections(host, { url }, -1)
end

local function came(host, urls)
  if host.sections == 1 then
    count_sections(host, urls, 1)
  elseif Queue.length(host) > math.floor(X.rules.queued_per_prefix / 2) then
    Queue.begin_sections(host)
  end
end

-- Places

-- A place that nobody stands at, under a prefix (empty for the queue, a shelf's name elsewhere).
local function free_place(host, prefix, lane, step, depth, tie)
  local place = Policy.pack_place(lane, step, depth, tie)
  while Queue.first(host, prefix .. place) do
    if tie:sub(1, 3) == PROBE_MARK then
      tie = PROBE_MARK .. string.char((tie:byte(4) + 1) % 256)
    else
      tie = Arith.tie(tie, X.rules.tie_seed)
    end
    place = Policy.pack_place(lane, step, depth, tie)
  end
  return place
end

-- Put URLs that belong together into the queue or onto a shelf, in bundles that follow each other.
local function put(host, urls, prefix, place)
  for first = 1, #urls, MOST do
    local number = host.next_bundle
    host.next_bundle = number + 1
    local parts, one, begins = {}, urls[first], 0
    local kind, depth = prefix == '' and Known.IN_QUEUE or Known.ON_SHELF, place:byte(5)
    for at = first, math.min(first + MOST - 1, #urls) do
      local url = urls[at]
      parts[#parts + 1], begins = Queue.item(url, one.tail, begins)
      if not url.asked then
        Known.note(host, url.fp, kind, url.rank or Queue.rank_of(host, url), depth, number)
      end
    end
    if one.is_new then
      Known.came(host, #parts)
    end
    local bundle = {
      number = Known.word(number), member = prefix .. place .. struct.pack('>I4', number),
      asked = one.asked and 1 or 0, hops = one.hops, admitted = one.admitted, cycle = one.cycle, via = one.via,
      items = table.concat(parts), base = one.tail,
    }
    Queue.keep(host, bundle)
    count(host, bundle.member, #parts, one.admitted)
    one.put_in = number
    Spill.notice(host, number)
  end
end

-- Queue candidates that are new, as they are given and without taking them apart (links.lua): those at `positions` of a
-- group, which belong together. Answers the place.
function Queue.enqueue_new(host, group, positions, rank, lane, step)
  local depth, hops = Links.traits(group, positions[1])
  -- Nobody stands there: what breaks ties is of a URL that was never met.
  local place = Policy.pack_place(lane, step, depth, Links.tie(group, positions[1]))
  for first = 1, #positions, MOST do
    local number, last = host.next_bundle, math.min(first + MOST - 1, #positions)
    host.next_bundle = number + 1
    Links.note(host, group, positions, first, last, Known.pack(Known.IN_QUEUE, rank, depth, number))
    Known.came(host, last - first + 1)
    local bundle = {
      number = Known.word(number), member = place .. struct.pack('>I4', number), asked = 0, hops = hops, admitted =
      X.wall_s, cycle = X.cycle, via = X.via, items = Links.items(group, positions, first, last), base = group.base,
    }
    Queue.keep(host, bundle)
    count(host, bundle.member, last - first + 1, X.wall_s)
    Spill.notice(host, number)
  end
  if host.work_since == 0 then
    host.work_since = math.max(1, X.now)
  end
  return place
end

-- Give a waiting URL another place, which is better than the one it had: nobody who breaks ties like it stands there. Its item
-- goes there as it is, and so does what the URLs of its bundle have in common. Answers the place, and the number of its bundle.
function Queue.move(host, bundle, candidate, lane, step, depth)
  local item, tail = Queue.cut_out(host, bundle, candidate.fp)
  local tie = tail == candidate.tail and candidate.tie or Arith.tie(host.name .. tail, X.rules.tie_seed)
  local place, number = Policy.pack_place(lane, step, depth, tie), host.next_bundle
  local member = place .. struct.pack('>I4', number)
  host.next_bundle = number + 1
  count(host, bundle.member, -1, bundle.admitted)
  Queue.keep(host, {
    number = Known.word(number), member = member, asked = 0, hops = bundle.hops, admitted = bundle.admitted, cycle =
    bundle.cycle, via_tail = bundle.via_tail, via = bundle.via, items = item, base = bundle.base,
  })
  count(host, member, 1, bundle.admitted)
  Spill.notice(host, number)
  if host.work_since == 0 then
    host.work_since = math.max(1, X.now)
  end
  if host.sections == 0 and Queue.length(host) > math.floor(X.rules.queued_per_prefix / 2) then
    Queue.begin_sections(host)
  end
  return place, number
end

-- Whether what stands at a member waits behind all that is queued now (see `put_behind`).
function Queue.is_behind(member)
  local lane, step = Policy.read_place(Queue.place_in(member))
  return lane == 0 or step > Policy.step_for(X.step, 0)
end

-- Let all URLs of a bundle wait behind the others, in the last class of new or due work; they keep their bundle.
function Queue.put_behind(host, bundle)
  local lane, _, depth, tie = Policy.read_place(Queue.place_in(bundle.member))
  local many = #Queue.items(bundle)
  count(host, bundle.member, -many, bundle.admitted)
  local step = math.min(Policy.step_for(X.step, 0) + 1, 0xFFFFFF)
  Queue.change_place(host, bundle, Policy.pack_place(lane <= 3 and 3 or 6, step, depth, tie))
  count(host, bundle.member, many, bundle.admitted)
end

-- What was outside, at the place that it had; `counted` says whether its sections know of it.
function Queue.put_again(host, urls, prefix, place, counted)
  put(host, urls, prefix, place)
  if prefix == '' and not counted then
    count_sections(host, urls, 1)
  end
end

-- The same at exactly that place: what comes from another engine keeps its order.
function Queue.put_at(host, urls, prefix, place)
  put(host, urls, prefix, place)
  if prefix == '' then
    if host.work_since == 0 then
      host.work_since = math.max(1, X.now)
    end
    came(host, urls)
  end
end

-- Queue URLs that belong together: they have one place, and keep their order. Answers the place.
function Queue.enqueue(host, urls, lane, step, depth, tie)
  local place = free_place(host, '', lane, step, math.min(depth, 255), tie or urls[1].tie)
  put(host, urls, '', place)
  if host.work_since == 0 then
    host.work_since = math.max(1, X.now)
  end
  came(host, urls)
  return place
end

-- Park URLs that belong together, to come back to the place that they would have had.
function Queue.shelve(host, urls, reason, group, lane, step, depth, tie)
  local prefix = string.char(128 + Queue.SHELF[reason]) .. group
  put(host, urls, prefix, free_place(host, prefix, lane, step, depth, tie))
end

-- Take a URL out of the bundle it waits in; answers the URL.
function Queue.take(host, bundle, fingerprint)
  local url, at, after = Queue.find(bundle, fingerprint)
  count(host, bundle.member, -1, bundle.admitted)
  if #bundle.member == 13 then
    count_sections(host, { url }, -1)
  end
  Queue.put_items(host, bundle, bundle.items:sub(1, at - 1) .. bundle.items:sub(after))
  return url
end

-- Take all (or the first `most`) URLs out of a bundle.
function Queue.take_all(host, bundle, most)
  local urls, at = {}, 1
  while at <= #bundle.items and not (most and #urls >= most) do
    urls[#urls + 1], at = Queue.item_at(bundle, at)
  end
  count(host, bundle.member, -#urls, bundle.admitted)
  if #bundle.member == 13 then
    count_sections(host, urls, -1)
  end
  Queue.put_items(host, bundle, bundle.items:sub(at))
  return urls
end

-- A URL that was asked for before

-- Its queue entry, at a place of its own.
function Queue.enqueue_alone(host, record, points)
  local lane = Policy.lane_of(record.fetched > 0, record.level)
  local url = {
    fp = record.fp, tail = '', asked = true, hops = 0, admitted = record.admitted, cycle = 0, via = '',
  }
  local tie = Arith.tie(host.name .. record.tail, X.rules.tie_seed)
  local place = Queue.enqueue(host, { url }, lane, Policy.step_for(X.step, points), record.depth, tie)
  record.bundle = url.put_in
  return place
end

-- Take a record's URL out of the queue.
function Queue.take_record(host, record)
  if record.bundle ~= 0 then
    Queue.take(host, Queue.load(host, string.format('%.0f', record.bundle)), record.fp)
    record.bundle = 0
  end
end
