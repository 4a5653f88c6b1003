-- Which URLs of a host are known, and the records of those that were asked for.
--
-- The index of a host is cut into buckets, which are strings of entries one after the other: eight bytes of a fingerprint
-- (the URL's name) and what is noted of the URL (seven). A bucket is read whole, looked through by `string.find` and, where
-- it has changed, written whole when the call ends: so all the links of a page cost one MGET and one MSET, whatever
-- hosts they go to. It grows by one bucket at a time: linear hashing, so that no call ever pays for the whole host.

local byte, find, sub = string.byte, string.find, string.sub
local LOAD = 48 -- URLs to a bucket, on average: more make a bucket dearer to write, fewer more room for its key
local NAME, ENTRY = 8, 15

Urls.QUEUED, Urls.DELAYED, Urls.DONE, Urls.DROPPED, Urls.DEAD = 0, 1, 2, 3, 4
Urls.COUNTERS = { [2] = 'done', [3] = 'dropped', [4] = 'dead' }

-- The power of two that a host's buckets have outgrown: number and size of the bucket follow from it.
local function size_of(host)
  local size, buckets = 1, host.buckets
  while size * 2 <= buckets do
    size = size * 2
  end
  return size
end

local WORDS = {} -- small numbers as words: making one of a number costs more than a look into a bucket
for number = 0, 255 do
  WORDS[number] = string.format('%d', number)
end

function Urls.word(number)
  return WORDS[number] or string.format('%d', number)
end
local word = Urls.word

local function prefix_of(host)
  return X.P .. 'u:' .. host.name .. ':'
end

-- The key of the bucket that a URL of that name belongs to.
local function key_of(host, name)
  local number = 0
  if host.buckets > 1 then
    local b1, b2, b3, b4 = byte(name, 5, 8)
    local size = size_of(host)
    number = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % (size * 2)
    if number >= host.buckets then
      number = number - size
    end
  end
  return prefix_of(host) .. word(number)
end

-- The keys of the buckets of many URLs: their names lie `stride` bytes apart in a text, from behind `before` on.
function Urls.keys_of(host, text, before, stride, count)
  local keys, prefix, buckets = {}, prefix_of(host), host.buckets
  if buckets == 1 then
    local only = prefix .. '0'
    for at = 1, count do
      keys[at] = only
    end
    return keys
  end
  local size, made, from = size_of(host), {}, before + 5
  local double = size * 2
  for at = 1, count do
    local b1, b2, b3, b4 = byte(text, from, from + 3)
    local number = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % double
    if number >= buckets then
      number = number - size
    end
    local key = made[number]
    if key == nil then
      key = prefix .. word(number)
      made[number] = key
    end
    keys[at], from = key, from + stride
  end
  return keys
end

-- Buckets, by their keys; what was read in this call is not read again.
function Urls.fetch(lists)
  local buckets, missing, asked = X.buckets, {}, 0
  for _, keys in ipairs(lists) do
    for _, key in ipairs(keys) do
      if buckets[key] == nil then
        buckets[key] = ''
        asked = asked + 1
        missing[asked] = key
      end
    end
  end
  for first = 1, asked, 1000 do
    local last = math.min(first + 999, asked)
    local found = redis.call('MGET', unpack(missing, first, last))
    for at = first, last do
      buckets[missing[at]] = found[at - first + 1] or ''
    end
  end
end

local function bucket_at(key)
  local text = X.buckets[key]
  if text == nil then
    text = redis.call('GET', key) or ''
    X.buckets[key] = text
  end
  return text
end

local function put(key, text)
  X.buckets[key], X.changed_buckets[key] = text, true
end

-- Where the entry of a name begins in a bucket: a find may also be at home in two entries.
local function place_of(text, name)
  local at = find(text, name, 1, true)
  while at and (at - 1) % ENTRY ~= 0 do
    at = find(text, name, at + 1, true)
  end
  return at
end

-- What is noted of a URL: kind (0 queued, 1 parked, 2 it has a record), rank, depth, and the number of its bundle, or
-- state and cycle of its record. So most links to what is known are dealt with by looking here.
Urls.IN_QUEUE, Urls.ON_SHELF, Urls.HAS_RECORD = 0, 1, 2
local NOTE = '>BBBI4'

-- kind, rank, depth, number
function Urls.read(note)
  return struct.unpack(NOTE, note)
end

-- The same of a URL by the key of its bucket and its name, and where its entry is; nil when it is not known.
function Urls.entry(key, name)
  local text = X.buckets[key]
  local at = find(text, name, 1, true)
  if at and (at - 1) % ENTRY ~= 0 then
    at = place_of(text, name)
  end
  if at then
    local kind, rank, depth, n1, n2, n3, n4 = byte(text, at + 8, at + 14)
    return kind, rank, depth, n1 * 16777216 + n2 * 65536 + n3 * 256 + n4, at
  end
  return nil
end

-- Note another rank of a URL whose entry begins there.
function Urls.note_rank(key, at, rank)
  local text = X.buckets[key]
  put(key, sub(text, 1, at + 8) .. string.char(rank) .. sub(text, at + 10))
end

function Urls.pack(kind, rank, depth, number)
  return struct.pack(NOTE, kind, rank, depth < 255 and depth or 255, number)
end

-- Note URLs that are new: entries of a bucket that was read.
function Urls.add(key, entries)
  put(key, X.buckets[key] .. entries)
end

local last_kind, last_rank, last_depth, last_number, last_note -- URLs of one bundle are alike

function Urls.note(host, fingerprint, kind, rank, depth, number)
  if number ~= last_number or rank ~= last_rank or kind ~= last_kind or depth ~= last_depth then
    last_kind, last_rank, last_depth, last_number = kind, rank, depth, number
    last_note = Urls.pack(kind, rank, depth, number)
  end
  local name, key = sub(fingerprint, 1, NAME), key_of(host, fingerprint)
  local text = bucket_at(key)
  local at = place_of(text, name)
  if at then
    put(key, sub(text, 1, at + NAME - 1) .. last_note .. sub(text, at + ENTRY))
  else
    put(key, text .. name .. last_note)
  end
end

-- What is noted of a URL; nil when it is not known.
function Urls.where(host, fingerprint)
  local text = bucket_at(key_of(host, fingerprint))
  local at = place_of(text, sub(fingerprint, 1, NAME))
  return at and sub(text, at + NAME, at + ENTRY - 1)
end

function Urls.has_record(host, fingerprint)
  local note = Urls.where(host, fingerprint)
  return note and note:byte(1) == Urls.HAS_RECORD
end

-- What is noted of many URLs, by their names; answers a table by position, false for what is not known.
function Urls.where_all(host, names)
  local keys, found = Urls.keys_of(host, table.concat(names), 0, NAME, #names), {}
  Urls.fetch({ keys })
  for at, name in ipairs(names) do
    local text = X.buckets[keys[at]]
    local place = place_of(text, name)
    found[at] = place and sub(text, place + NAME, place + ENTRY - 1) or false
  end
  return found
end

local function split(host)
  local size, prefix = size_of(host), prefix_of(host)
  local old, new, double = prefix .. word(host.buckets - size), host.buckets, size * 2
  local text, kept, moved = bucket_at(old), {}, {}
  for at = 1, #text, ENTRY do
    local b1, b2, b3, b4 = byte(text, at + 4, at + 7)
    local goes = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % double == new
    local list = goes and moved or kept
    list[#list + 1] = sub(text, at, at + ENTRY - 1)
  end
  put(old, table.concat(kept))
  put(prefix .. word(new), table.concat(moved))
  host.buckets = host.buckets + 1
end

-- So many URLs are new; the buckets of their host are split when the call ends.
function Urls.came(host, count)
  host.urls = host.urls + count
  X.grown[host.name] = host
  Shard.count('urls', count)
end

-- Write the buckets that have changed.
function Urls.close()
  for _, host in pairs(X.grown) do
    while host.urls > host.buckets * LOAD do
      split(host)
    end
  end
  local words, count = {}, 0
  for key in pairs(X.changed_buckets) do
    words[count + 1], words[count + 2] = key, X.buckets[key]
    count = count + 2
    if count == 1000 then
      redis.call('MSET', unpack(words, 1, count))
      count = 0
    end
  end
  if count > 0 then
    redis.call('MSET', unpack(words, 1, count))
  end
end

-- How a URL is spelled: its tail begins with a mark of the scheme, or with = where it is whole.
function Urls.spell(host, tail)
  local mark, rest = tail:sub(1, 1), tail:sub(2)
  if mark == 's' then
    return 'https://' .. host.name .. rest
  elseif mark == 'h' then
    return 'http://' .. host.name .. rest
  end
  return rest
end

function Urls.origin(url)
  local slash = url:find('/', 9, true)
  return slash and url:sub(1, slash - 1) or url
end

-- Records

function Urls.record(host, fingerprint)
  local values = cmsgpack.unpack(redis.call('HGET', X.P .. 'r:' .. host.name, fingerprint))
  local _, rank = Urls.read(Urls.where(host, fingerprint))
  return {
    asked = true, fp = fingerprint, rank = rank,
    state = values[1], tail = values[2], level = values[3], depth = values[4], hops = values[5], retries =
    values[6], cycle = values[7], admitted = values[8], via = values[9], settled = values[10], reason =
    values[11], detail = values[12], due_at = values[13], due_reason = values[14], fetched = values[15], bundle
    = values[16], status = values[17], segment = values[18], offset = values[19], finish = values[20], digest =
    values[21], etag = values[22], last_modified = values[23], page = values[24], changed_at = values[25], trail
    = values[26], history = values[27], gone = values[28],
  }
end

function Urls.save(host, record)
  redis.call('HSET', X.P .. 'r:' .. host.name, record.fp, cmsgpack.pack({
    record.state, record.tail, record.level, record.depth, record.hops, record.retries, record.cycle,
    record.admitted, record.via, record.settled, record.reason, record.detail, record.due_at, record.due_reason,
    record.fetched, record.bundle, record.status, record.segment, record.offset, record.finish, record.digest,
    record.etag, record.last_modified, record.page, record.changed_at, record.trail, record.history, record.gone,
  }))
  Urls.note(host, record.fp, Urls.HAS_RECORD, record.rank, record.depth, record.state * 16777216 + record.cycle % 16777216)
end

-- A record for a URL that is in a bundle until now.
function Urls.new_record(url)
  return {
    asked = true, fp = url.fp, state = Urls.QUEUED, tail = url.tail, rank = url.rank, level = url.level,
    depth = url.depth, hops = url.hops, retries = 0, cycle = url.cycle, admitted = url.admitted, via = url.via,
    settled = 0, reason = '', detail = '', due_at = 0, due_reason = '', fetched = 0, bundle = 0, status = 0,
    segment = '', offset = -1, finish = 0, digest = '', etag = '', last_modified = '', page = 0, changed_at = 0,
    trail = {}, history = { 0, 0, 0, 0, 0, 0 }, gone = 0,
  }
end

local function name_of(host, record)
  return host.name .. '\0' .. record.fp
end

-- Move a record into a state; what counts states is told.
function Urls.enter(host, record, state)
  local old, new = Urls.COUNTERS[record.state], Urls.COUNTERS[state]
  if old then
    Shard.count(old, -1)
  end
  if new then
    Shard.count(new, 1)
  end
  if record.state == Urls.DEAD then
    redis.call('ZREM', X.P .. 'dead', name_of(host, record))
  end
  if state == Urls.DEAD then
    redis.call('ZADD', X.P .. 'dead', 0, name_of(host, record))
  end
  record.state = state
end

function Urls.delay(host, record, moment, reason)
  record.due_at, record.due_reason = math.max(1, moment), reason
  Shard.count('delay:' .. reason, 1)
  redis.call('ZADD', X.P .. 'due', string.format('%.0f', record.due_at), name_of(host, record))
end

function Urls.end_delay(host, record)
  if record.due_at > 0 then
    Shard.count('delay:' .. record.due_reason, -1)
    redis.call('ZREM', X.P .. 'due', name_of(host, record))
    record.due_at, record.due_reason = 0, ''
  end
end

-- Captures

-- A page is pending while its segment's set names it, and not a moment longer: nothing else says so.

function Urls.hold_pending(host, record)
  Shard.count('pending', 1)
  local key = X.P .. 'pend:' .. record.segment
  redis.call('ZADD', key, string.format('%.0f', record.finish), name_of(host, record))
  if not X.pends[record.segment] then
    X.pends[record.segment] = true
    redis.call('SADD', X.P .. 'pends', record.segment)
  end
end

function Urls.is_pending(host, record)
  return record.segment ~= '' and redis.call('ZSCORE', X.P .. 'pend:' .. record.segment, name_of(host, record)) ~= false
end

function Urls.end_pending(host, record)
  Shard.count('pending', -1)
  redis.call('ZREM', X.P .. 'pend:' .. record.segment, name_of(host, record))
end

function Urls.forget_capture(record)
  record.status, record.segment, record.offset, record.finish = 0, '', -1, 0
  record.digest, record.etag, record.last_modified, record.page, record.changed_at = '', '', '', 0, 0
end

-- A URL leaves the state it is in. A capture that may never become durable is forgotten.
function Urls.end_state(host, record)
  Urls.end_delay(host, record)
  if record.state == Urls.DONE and Urls.is_pending(host, record) then
    Urls.end_pending(host, record)
    Urls.forget_capture(record)
  end
end

function Urls.cooling_s(record)
  if record.settled == 0 then
    return 0
  end
  local cooldown = X.rules.cooldown_s
  return math.min(cooldown, record.settled + cooldown - X.wall_s)
end
