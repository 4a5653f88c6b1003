-- What is in a bundle: URLs that were found together, packed.
--
-- An item is fingerprint (16), how much of the bundle's base its tail begins with (1), length of the rest (1, or 3 from 255 on),
-- the rest; the base is the tail of the first URL that the bundle had. The rank is with what is noted of the URL (urls.lua). What
-- the URLs were found on is kept as a tail, too, where it is of the same host. The items of a bundle change when a URL leaves it,
-- and in no other way.

local function bundle_key(host)
  return X.P .. 'q:' .. host.name
end

local function place_in(member)
  return #member > 13 and member:sub(10, 18) or member:sub(1, 9)
end
Queue.place_in = place_in

-- Kind (0: never asked for, 1: they have records, 2: the stub of a chunk, and MessagePack from there on), member, hops,
-- admitted, cycle, via, base; then the items.
local HEAD = '>BBc0BI4I3I2c0I2c0'

-- A bundle as it is stored, or the stub of a chunk.
function Queue.decode(host, number, raw)
  local kind = raw:byte(1)
  if kind == 2 then
    local values = cmsgpack.unpack(raw:sub(2))
    return {
      number = number, member = values[1], spilled = true, id = values[2], count = values[3], ages = values[4],
      counted = values[5] == 1,
    }
  end
  local _, member, hops, admitted, cycle, via, base, after = struct.unpack(HEAD, raw)
  return {
    number = number, member = member, asked = kind, hops = hops, admitted = admitted, cycle = cycle,
    via = Urls.spell(host, via), items = raw:sub(after), base = base, depth = false, level = false,
  }
end

function Queue.load(host, number)
  local raw = redis.call('HGET', bundle_key(host), number)
  return raw and Queue.decode(host, number, raw) or nil
end

-- The bundle that holds a URL of which that is noted (kind and number), or the stub of its chunk; nil where there is none:
-- then what is noted is another URL's. What is noted are the last bits of a number, or nothing: few or all are looked through.
function Queue.holding(host, fingerprint, kind, noted)
  local numbers, found = Known.numbers(host, kind, noted), nil
  local outside = kind == Known.QUEUE_OUTSIDE or kind == Known.SHELF_OUTSIDE
  local function is_it(raw)
    if outside then
      return raw:byte(1) == 2
    end
    return raw:byte(1) ~= 2 and raw:find(fingerprint, 1, true)
  end
  for first = 1, numbers and #numbers or 0, 1000 do
    local last = math.min(first + 999, #numbers)
    for at, raw in ipairs(redis.call('HMGET', bundle_key(host), unpack(numbers, first, last))) do
      if raw and is_it(raw) then
        return Queue.decode(host, numbers[first + at - 1], raw)
      end
    end
  end
  local cursor = not numbers and '0'
  while cursor and not found do
    local step = redis.call('HSCAN', bundle_key(host), cursor, 'COUNT', 100)
    for at = 1, #step[2], 2 do
      if is_it(step[2][at + 1]) then
        return Queue.decode(host, step[2][at], step[2][at + 1])
      end
    end
    cursor = step[1] ~= '0' and step[1]
  end
  return nil
end

function Queue.number_in(member)
  return string.format('%.0f', struct.unpack('>I4', member:sub(-4)))
end

-- The bundles of members, in their order.
function Queue.load_all(host, members)
  local numbers = {}
  for at, member in ipairs(members) do
    numbers[at] = Queue.number_in(member)
  end
  local bundles = #numbers > 0 and redis.call('HMGET', bundle_key(host), unpack(numbers)) or {}
  for at, raw in ipairs(bundles) do
    bundles[at] = Queue.decode(host, numbers[at], raw)
  end
  return bundles
end

-- A URL as a tail of the host, where it is one.
local function as_tail(host, url)
  if url == '' then
    return ''
  end
  local secure, name = url:sub(1, 8) == 'https://', host.name
  local from = secure and 9 or 8
  if (secure or url:sub(1, 7) == 'http://') and url:sub(from, from + #name) == name .. '/' then
    return (secure and 's' or 'h') .. url:sub(from + #name)
  end
  return '=' .. url
end

function Queue.save(host, bundle)
  local member, via, base = bundle.member, as_tail(host, bundle.via), bundle.base
  redis.call('HSET', bundle_key(host), bundle.number, struct.pack(
    HEAD, bundle.asked, #member, member, bundle.hops, bundle.admitted, bundle.cycle % 16777216, #via, via, #base, base
  ) .. bundle.items)
end

function Queue.forget(host, bundle)
  redis.call('HDEL', bundle_key(host), bundle.number)
  redis.call('ZREM', X.P .. 'z:' .. host.name, bundle.member)
end

-- How much of a base a tail begins with; `guess` is what another one of the bundle does.
local function shared(base, tail, guess)
  local most = math.min(#base, #tail, 255)
  local count = guess <= most and base:sub(1, guess) == tail:sub(1, guess) and guess or 0
  while count + 8 <= most and base:sub(count + 1, count + 8) == tail:sub(count + 1, count + 8) do
    count = count + 8
  end
  while count < most and base:byte(count + 1) == tail:byte(count + 1) do
    count = count + 1
  end
  return count
end

-- A URL as an item of a bundle with that base, and how much of it it begins with.
function Queue.item(url, base, guess)
  local tail = url.tail
  local begins = tail == base and math.min(#tail, 255) or shared(base, tail, guess)
  local length = #tail - begins
  if length < 255 then
    return url.fp .. string.char(begins, length) .. tail:sub(begins + 1), begins
  end
  return url.fp .. string.char(begins, 255) .. struct.pack('>I2', length) .. tail:sub(begins + 1), begins
end

-- The URL at a position of a bundle, and where the next one begins.
function Queue.item_at(bundle, at)
  local items = bundle.items
  local begins, length = items:byte(at + 16, at + 17)
  local from = at + 18
  if length == 255 then
    local high, low = items:byte(from, from + 1)
    length, from = high * 256 + low, from + 2
  end
  local depth = bundle.depth
  if not depth then
    local place = place_in(bundle.member)
    depth = place:byte(5)
    bundle.depth, bundle.level = depth, Policy.level_of_lane(place:byte(1))
  end
  return {
    fp = items:sub(at, at + 15), tail = bundle.base:sub(1, begins) .. items:sub(from, from + length - 1),
    hops = bundle.hops, admitted = bundle.admitted, cycle = bundle.cycle, via = bundle.via,
    level = bundle.level, depth = depth, asked = bundle.asked == 1, bundle = bundle,
  }, from + length
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
  local _, rank = Known.where(host, url.fp)
  return rank
end

-- The URL of a fingerprint in a bundle, where it begins, and where the next one does.
function Queue.find(bundle, fingerprint)
  local at = bundle.items:find(fingerprint, 1, true)
  if at then
    local url, after = Queue.item_at(bundle, at)
    return url, at, after
  end
  return nil
end
