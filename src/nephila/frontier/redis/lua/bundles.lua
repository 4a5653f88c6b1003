-- What is in a bundle: URLs that were found together, packed.
--
-- An item is fingerprint (16), how much of the bundle's base its tail begins with (1), length of the rest (1, or 3 from 255 on),
-- the rest; the base is the tail of the first URL that the bundle had. The rank is with what is noted of the URL (urls.lua). What
-- the URLs were found on is kept as a tail, too, where it is of the same host. The items of a bundle change when a URL leaves it,
-- and in no other way.

-- A bundle is read once in a call, and written at its end, however many URLs leave it: `X.queues` has those of each host, and
-- what comes into its sorted set and leaves it.

local function bundle_key(host)
  return X.P .. 'q:' .. host.name
end

local function queue_of(host)
  local name = host.name
  local queue = X.queues[name]
  if queue == nil then
    queue = { name = name, got = {}, changed = false, comes = false, goes = false, ends = false }
    X.queues[name] = queue
  end
  return queue
end

-- What is at hand of a host's bundles, by their numbers.
local function at_hand(host)
  return queue_of(host).got
end

local function with(list, value)
  if list then
    list[#list + 1] = value
    return list
  end
  return { value }
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
    number = number, member = member, asked = kind, hops = hops, admitted = admitted, cycle = cycle, via_tail = via,
    via = Urls.spell(host, via), items = raw:sub(after), base = base, depth = false, level = false, is_stored = true,
    changed = false,
  }
end

-- A bundle by its number; nil when there is none (any more).
function Queue.load(host, number)
  local bundles = at_hand(host)
  local bundle = bundles[number]
  if bundle == nil then
    local raw = redis.call('HGET', bundle_key(host), number)
    bundle = raw and Queue.decode(host, number, raw)
    bundles[number] = bundle
  end
  return bundle or nil
end

-- The bundle that holds a URL of which that is noted (kind and number), or the stub of its chunk; nil where there is none:
-- then what is noted is another URL's. What is noted are the last bits of a number, or nothing: few or all are looked through.
function Queue.holding(host, fingerprint, kind, noted)
  local outside = kind == Known.QUEUE_OUTSIDE or kind == Known.SHELF_OUTSIDE
  local function is_it(bundle)
    if bundle and outside then
      return bundle.spilled
    end
    return bundle and not bundle.spilled and bundle.items:find(fingerprint, 1, true)
  end
  local numbers = Known.numbers(host, kind, noted)
  if numbers then
    for at = 1, #numbers do
      local bundle = Queue.load(host, numbers[at])
      if is_it(bundle) then
        return bundle
      end
    end
    return nil
  end
  local bundles, cursor = at_hand(host), '0'
  for _, bundle in pairs(bundles) do
    if is_it(bundle) then
      return bundle
    end
  end
  repeat
    local step = redis.call('HSCAN', bundle_key(host), cursor, 'COUNT', 100)
    for at = 1, #step[2], 2 do
      local number, raw = step[2][at], step[2][at + 1]
      if bundles[number] == nil and (outside and raw:byte(1) == 2 or raw:find(fingerprint, 1, true)) then
        bundles[number] = Queue.decode(host, number, raw)
        if is_it(bundles[number]) then
          return bundles[number]
        end
      end
    end
    cursor = step[1]
  until cursor == '0'
  return nil
end

function Queue.number_in(member)
  return string.format('%.0f', struct.unpack('>I4', member:sub(-4)))
end

-- Read bundles by their numbers, those that are not at hand in one command.
function Queue.read_all(host, numbers)
  local missing, bundles = {}, at_hand(host)
  for _, number in ipairs(numbers) do
    if number ~= '' and bundles[number] == nil then
      missing[#missing + 1] = number
    end
  end
  if #missing > 0 then
    for at, raw in ipairs(redis.call('HMGET', bundle_key(host), unpack(missing))) do
      bundles[missing[at]] = raw and Queue.decode(host, missing[at], raw)
    end
  end
  return bundles
end

-- The bundles of members, in their order.
function Queue.load_all(host, members)
  local numbers = {}
  for at, member in ipairs(members) do
    numbers[at] = Queue.number_in(member)
  end
  local bundles = Queue.read_all(host, numbers)
  for at, number in ipairs(numbers) do
    numbers[at] = bundles[number]
  end
  return numbers
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

-- A bundle as it is stored.
local function encode(host, bundle)
  local member, via, base = bundle.member, bundle.via_tail or as_tail(host, bundle.via), bundle.base
  return struct.pack(
    HEAD, bundle.asked, #member, member, bundle.hops, bundle.admitted, bundle.cycle % 16777216, #via, via, #base, base
  ) .. bundle.items
end

-- A new bundle, at its place.
function Queue.keep(host, bundle)
  local queue = queue_of(host)
  queue.got[bundle.number], bundle.changed, host.firsts = bundle, true, nil
  queue.changed = with(queue.changed, bundle)
  if queue.comes then
    local length = #queue.comes
    queue.comes[length + 1], queue.comes[length + 2] = 0, bundle.member
  else
    queue.comes = { 0, bundle.member }
  end
end

-- Other items are in a bundle than before.
function Queue.put_items(host, bundle, items)
  local queue = queue_of(host)
  bundle.items = items
  if items == '' then
    queue.got[bundle.number], bundle.changed, host.firsts = false, false, nil
    queue.goes = with(queue.goes, bundle.member)
    if bundle.is_stored then
      queue.ends = with(queue.ends, bundle.number)
    end
  elseif not bundle.changed then
    bundle.changed = true
    queue.changed = with(queue.changed, bundle)
  end
end

-- A bundle stands elsewhere in its queue, under the number that it has.
function Queue.change_place(host, bundle, place)
  local queue, member = queue_of(host), place .. bundle.member:sub(-4)
  queue.goes = with(queue.goes, bundle.member)
  bundle.member, bundle.depth, bundle.level, host.firsts = member, nil, nil, nil
  queue.comes = with(with(queue.comes, 0), member)
  if not bundle.changed then
    bundle.changed = true
    queue.changed = with(queue.changed, bundle)
  end
end

-- It is written elsewhere (a stub that has gone).
function Queue.is_gone(host, number)
  at_hand(host)[number] = false
end

local function in_parts(command, key, words)
  local count = #words
  if count <= 1000 then
    redis.call(command, key, unpack(words))
    return
  end
  for first = 1, count, 1000 do
    redis.call(command, key, unpack(words, first, math.min(first + 999, count)))
  end
end

local function write_order(queue)
  local key = X.P .. 'z:' .. queue.name
  if queue.comes then
    in_parts('ZADD', key, queue.comes)
    queue.comes = false
  end
  if queue.goes then
    in_parts('ZREM', key, queue.goes)
    queue.goes = false
  end
end

-- The key of a host's sorted set, for whoever reads it: it is as it should be now.
function Queue.order_key(host)
  local queue = X.queues[host.name]
  if queue then
    write_order(queue)
  end
  return X.P .. 'z:' .. host.name
end

-- Write what has changed.
function Queue.close()
  for _, queue in pairs(X.queues) do
    write_order(queue)
    if queue.changed then
      local words, count = {}, 0
      for _, bundle in ipairs(queue.changed) do
        if bundle.changed then
          words[count + 1], words[count + 2] = bundle.number, encode(queue, bundle)
          count = count + 2
        end
      end
      if count > 0 then
        in_parts('HSET', bundle_key(queue), words)
      end
    end
    if queue.ends then
      in_parts('HDEL', bundle_key(queue), queue.ends)
    end
  end
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

-- Take a URL's item out of a bundle as it is: the item, and how the URL is spelled.
function Queue.cut_out(host, bundle, fingerprint)
  local items = bundle.items
  local at = items:find(fingerprint, 1, true)
  local begins, length = items:byte(at + 16, at + 17)
  local from = at + 18
  if length == 255 then
    local high, low = items:byte(from, from + 1)
    length, from = high * 256 + low, from + 2
  end
  local after = from + length
  Queue.put_items(host, bundle, items:sub(1, at - 1) .. items:sub(after))
  return items:sub(at, after - 1), bundle.base:sub(1, begins) .. items:sub(from, after - 1)
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
