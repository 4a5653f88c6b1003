-- Which URLs of a host are known, and the records of those that were asked for.
--
-- The index of a host is cut into buckets that stay small (Valkey packs a small hash without pointers), and grows by
-- one bucket at a time: linear hashing, so that no call ever pays for the whole host.

local byte = string.byte
local LOAD = 48 -- URLs to a bucket, on average; at most 128 may lie in one for it to stay packed

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

local function bucket_number(host, fingerprint, size)
  if host.buckets == 1 then
    return 0
  end
  local b1, b2, b3, b4 = byte(fingerprint, 5, 8)
  size = size or size_of(host)
  local number = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % (size * 2)
  return number < host.buckets and number or number - size
end

local NUMBERS = {} -- as words: making one of a number costs more than a look into a bucket
for number = 0, 4095 do
  NUMBERS[number] = string.format('%d', number)
end

local function key_of(host, number)
  return X.P .. 'u:' .. host.name .. ':' .. (NUMBERS[number] or string.format('%d', number))
end

-- What is noted of a URL: kind (0 queued, 1 parked, 2 it has a record), rank, depth, and the number of its bundle, or
-- state and cycle of its record. So most links to what is known are dealt with by looking here.
Urls.IN_QUEUE, Urls.ON_SHELF, Urls.HAS_RECORD = 0, 1, 2
local NOTE = '>BBBI4'

local function noted(host)
  local notes = X.notes[host.name]
  if notes == nil then
    notes = {}
    X.notes[host.name] = notes
  end
  return notes
end

-- kind, rank, depth, number
function Urls.read(note)
  return struct.unpack(NOTE, note)
end

local last_kind, last_rank, last_depth, last_number, last_note -- URLs of one bundle are alike

function Urls.note(host, fingerprint, kind, rank, depth, number)
  if number ~= last_number or rank ~= last_rank or kind ~= last_kind or depth ~= last_depth then
    last_kind, last_rank, last_depth, last_number = kind, rank, depth, number
    last_note = struct.pack(NOTE, kind, rank, depth < 255 and depth or 255, number)
  end
  noted(host)[fingerprint:sub(1, 8)] = last_note
end

-- Note another rank of a URL, by the part of its fingerprint that names it.
function Urls.note_rank(host, name, kind, rank, depth, number)
  noted(host)[name] = struct.pack(NOTE, kind, rank, depth, number)
end

-- What is noted of a URL; nil when it is not known.
function Urls.where(host, fingerprint)
  local name = fingerprint:sub(1, 8)
  local note = X.notes[host.name] and X.notes[host.name][name]
  return note or redis.call('HGET', key_of(host, bucket_number(host, fingerprint)), name) or nil
end

function Urls.has_record(host, fingerprint)
  local note = Urls.where(host, fingerprint)
  return note and note:byte(1) == Urls.HAS_RECORD
end

local FORMATS, AT_ONCE = {}, 128
for count = 1, AT_ONCE do
  FORMATS[count] = string.rep('c8', count)
end

-- The names of many URLs, which are eight bytes each and lie one after the other.
function Urls.names(text, count)
  if count <= AT_ONCE then
    local names = { struct.unpack(FORMATS[count], text) }
    names[count + 1] = nil -- where the text ends
    return names
  end
  local names = {}
  for at = 1, count do
    names[at] = text:sub(8 * at - 7, 8 * at)
  end
  return names
end

-- What is noted of many URLs, by their names, bucket by bucket; answers a table by position, false for what is not known.
function Urls.where_all(host, names)
  local notes, count, found = X.notes[host.name], #names, nil
  if host.buckets == 1 then
    if count <= 1000 then
      found = redis.call('HMGET', key_of(host, 0), unpack(names))
    else
      found = {}
      for first = 1, count, 1000 do
        local last = math.min(first + 999, count)
        local values = redis.call('HMGET', key_of(host, 0), unpack(names, first, last))
        for at = first, last do
          found[at] = values[at - first + 1]
        end
      end
    end
  else
    found = {}
    local size, buckets, lists, places = size_of(host), host.buckets, {}, {}
    local double = size * 2
    for at = 1, count do
      local b1, b2, b3, b4 = byte(names[at], 5, 8)
      local number = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % double
      if number >= buckets then
        number = number - size
      end
      local list = lists[number]
      if list == nil then
        lists[number], places[number] = { names[at] }, { at }
      else
        local length = #list + 1
        list[length], places[number][length] = names[at], at
      end
    end
    for number, list in pairs(lists) do
      local some, key = places[number], key_of(host, number)
      for first = 1, #list, 1000 do
        local last = math.min(first + 999, #list)
        local values = redis.call('HMGET', key, unpack(list, first, last))
        for at = first, last do
          found[some[at]] = values[at - first + 1]
        end
      end
    end
  end
  if notes then
    for at = 1, count do
      found[at] = notes[names[at]] or found[at]
    end
  end
  return found
end

local function split(host)
  local size = 1
  while size * 2 <= host.buckets do
    size = size * 2
  end
  local old, new = host.buckets - size, host.buckets
  local all, moved, gone = redis.call('HGETALL', key_of(host, old)), {}, {}
  for at = 1, #all, 2 do
    if struct.unpack('>I4', all[at]:sub(5, 8)) % (size * 2) == new then
      table.insert(moved, all[at])
      table.insert(moved, all[at + 1])
      table.insert(gone, all[at])
    end
  end
  if #gone > 0 then
    redis.call('HSET', key_of(host, new), unpack(moved))
    redis.call('HDEL', key_of(host, old), unpack(gone))
  end
  host.buckets = host.buckets + 1
end

function Urls.came(host, count)
  host.urls = host.urls + count
  Shard.count('urls', count)
end

-- Write what was noted of a host's URLs, bucket by bucket.
function Urls.write_notes(host, notes)
  while host.urls > host.buckets * LOAD do
    split(host)
  end
  local buckets, size = {}, size_of(host)
  for name, note in pairs(notes) do
    local number = bucket_number(host, name, size)
    local fields = buckets[number]
    if fields == nil then
      buckets[number] = { name, note }
    else
      local length = #fields
      fields[length + 1], fields[length + 2] = name, note
    end
  end
  for number, fields in pairs(buckets) do
    local key = key_of(host, number)
    for first = 1, #fields, 1000 do
      redis.call('HSET', key, unpack(fields, first, math.min(first + 999, #fields)))
    end
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
