-- The queue of a host: bundles of URLs that were found together, sorted by their places.
--
-- A bundle is named by a number; the sorted set of the host holds place and number, the hash the URLs. What is parked
-- lies in the same two, under a key that begins with its shelf. An item is fingerprint (16), length of the tail (2), tail;
-- its rank is with what is noted of the URL (urls.lua).

local MOST = 64 -- URLs in a bundle: one is written anew when a URL leaves it
local PROBE_MARK = '\0\0\0'
Queue.PROBE_MARK = PROBE_MARK
Queue.SHELF = { over_budget = 1, trap = 2, coverage = 3 }
Queue.REASONS = { 'over_budget', 'trap', 'coverage' }

local function order_key(host)
  return X.P .. 'z:' .. host.name
end

local function bundle_key(host)
  return X.P .. 'q:' .. host.name
end

function Queue.length(host)
  local lanes = host.lanes
  return lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7]
end

-- The first member that begins with a prefix (from `after` on, if given).
function Queue.first(host, prefix, after)
  local low = after and ('(' .. after) or ('[' .. prefix)
  return redis.call('ZRANGEBYLEX', order_key(host), low, '[' .. prefix .. '\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255', 'LIMIT', 0, 1)[1]
end

-- The first place of each class that URLs were queued in.
function Queue.firsts(host)
  local found = {}
  for lane = 0, 6 do
    if host.lanes[lane + 1] > 0 then
      table.insert(found, Queue.first(host, string.char(lane)):sub(1, 9))
    end
  end
  return found
end

local function place_in(member)
  return #member > 13 and member:sub(10, 18) or member:sub(1, 9)
end
Queue.place_in = place_in

-- Bundles

function Queue.load(host, number)
  local raw = redis.call('HGET', bundle_key(host), number)
  local values = cmsgpack.unpack(raw)
  return {
    number = number, member = values[1], asked = values[2], hops = values[3], admitted = values[4],
    cycle = values[5], via = values[6], items = values[7],
  }
end

function Queue.number_in(member)
  return string.format('%.0f', struct.unpack('>I4', member:sub(-4)))
end

local function save(host, bundle)
  local values = {
    bundle.member, bundle.asked, bundle.hops, bundle.admitted, bundle.cycle, bundle.via, bundle.items,
  }
  redis.call('HSET', bundle_key(host), bundle.number, cmsgpack.pack(values))
end

local function forget(host, bundle)
  redis.call('HDEL', bundle_key(host), bundle.number)
  redis.call('ZREM', order_key(host), bundle.member)
end

local function item(url)
  return url.fp .. struct.pack('>I2', #url.tail) .. url.tail
end

-- The URL at a position of a bundle, and where the next one begins.
function Queue.item_at(bundle, at)
  local items = bundle.items
  local high, low = items:byte(at + 16, at + 17)
  local length = high * 256 + low
  local depth = bundle.depth
  if depth == nil then
    local place = place_in(bundle.member)
    depth = place:byte(5)
    bundle.depth, bundle.level = depth, Policy.level_of_lane(place:byte(1))
  end
  return {
    fp = items:sub(at, at + 15), tail = items:sub(at + 18, at + 17 + length),
    hops = bundle.hops, admitted = bundle.admitted, cycle = bundle.cycle, via = bundle.via,
    level = bundle.level, depth = depth, asked = bundle.asked == 1, bundle = bundle,
  }, at + 18 + length
end

function Queue.items(bundle)
  local found, at = {}, 1
  while at <= #bundle.items do
    local url
    url, at = Queue.item_at(bundle, at)
    table.insert(found, url)
  end
  return found
end

-- The rank of a URL in a bundle.
function Queue.rank_of(host, url)
  local _, rank = Urls.read(Urls.where(host, url.fp))
  return rank
end

function Queue.find(bundle, fingerprint)
  local at = bundle.items:find(fingerprint, 1, true)
  return at and Queue.item_at(bundle, at), at
end

-- Counters of the queue and the shelves

local AGE_STEP_S = 14400

-- A host with URLs that are put off for coverage, among those of its domain.
local function covering(host)
  return host.domain .. '\0' .. host.tie .. host.name
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
    Shard.count('q' .. lane, by)
    Shard.count('a:' .. math.floor(admitted / AGE_STEP_S) .. ':' .. Policy.level_of_lane(lane), by)
  end
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

local function count_sections(host, urls, by)
  if host.sections == 0 then
    return
  end
  for _, url in ipairs(urls) do
    redis.call('HINCRBY', section_key(host), Queue.section_of(tail_of(host, url)), by)
  end
end

function Queue.begin_sections(host)
  host.sections = 1
  local members = redis.call('ZRANGEBYLEX', order_key(host), '-', '(\7')
  for _, member in ipairs(members) do
    count_sections(host, Queue.items(Queue.load(host, Queue.number_in(member))), 1)
  end
end

function Queue.in_section(host, section)
  return tonumber(redis.call('HGET', section_key(host), section) or 0)
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
    local parts, one = {}, urls[first]
    local kind, depth = prefix == '' and Urls.IN_QUEUE or Urls.ON_SHELF, place:byte(5)
    for at = first, math.min(first + MOST - 1, #urls) do
      local url = urls[at]
      parts[#parts + 1] = item(url)
      if not url.asked then
        Urls.note(host, url.fp, kind, url.rank or Queue.rank_of(host, url), depth, number)
      end
    end
    if one.is_new then
      Urls.came(host, #parts)
    end
    local bundle = {
      number = string.format('%.0f', number), member = prefix .. place .. struct.pack('>I4', number),
      asked = one.asked and 1 or 0, hops = one.hops, admitted = one.admitted, cycle = one.cycle, via = one.via,
      items = table.concat(parts),
    }
    save(host, bundle)
    redis.call('ZADD', order_key(host), 0, bundle.member)
    count(host, bundle.member, #parts, one.admitted)
    one.put_in = number
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
  local url, at = Queue.find(bundle, fingerprint)
  count(host, bundle.member, -1, bundle.admitted)
  if #bundle.member == 13 then
    count_sections(host, { url }, -1)
  end
  bundle.items = bundle.items:sub(1, at - 1) .. bundle.items:sub(at + 18 + #url.tail)
  if bundle.items == '' then
    forget(host, bundle)
  else
    save(host, bundle)
  end
  return url
end

-- Take all (or the first `most`) URLs out of a bundle.
function Queue.take_all(host, bundle, most)
  local urls, left = {}, {}
  for at, url in ipairs(Queue.items(bundle)) do
    if most and at > most then
      left[#left + 1] = item(url)
    else
      urls[#urls + 1] = url
    end
  end
  count(host, bundle.member, -#urls, bundle.admitted)
  if #bundle.member == 13 then
    count_sections(host, urls, -1)
  end
  bundle.items = table.concat(left)
  if bundle.items == '' then
    forget(host, bundle)
  else
    save(host, bundle)
  end
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
