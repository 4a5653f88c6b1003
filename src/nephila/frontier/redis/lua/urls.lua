-- Which URLs of a host are known, and the records of those that were asked for.
--
-- The index of a host is cut into buckets that stay small (Valkey packs a small hash without pointers), and grows by
-- one bucket at a time: linear hashing, so that no call ever pays for the whole host.

local LOAD = 48 -- URLs to a bucket, on average; at most 128 may lie in one for it to stay packed

Urls.QUEUED, Urls.DELAYED, Urls.DONE, Urls.DROPPED, Urls.DEAD = 0, 1, 2, 3, 4
Urls.COUNTERS = { [2] = 'done', [3] = 'dropped', [4] = 'dead' }

local function bucket_number(host, fingerprint)
  if host.buckets == 1 then
    return 0
  end
  local b1, b2, b3, b4 = fingerprint:byte(5, 8)
  local hash, size = ((b1 * 256 + b2) * 256 + b3) * 256 + b4, 1
  while size * 2 <= host.buckets do
    size = size * 2
  end
  local number = hash % (size * 2)
  return number < host.buckets and number or hash % size
end

local function key_of(host, number)
  return X.P .. 'u:' .. host.name .. ':' .. number
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

function Urls.note(host, fingerprint, kind, rank, depth, number)
  noted(host)[fingerprint:sub(1, 8)] = struct.pack(NOTE, kind, rank, math.min(depth, 255), number)
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

-- The same for many candidates, bucket by bucket; answers a table by their position.
function Urls.where_all(host, candidates)
  local buckets, positions, found, notes = {}, {}, {}, X.notes[host.name]
  for at = 1, #candidates do
    local name = candidates[at]:sub(1, 8)
    if notes and notes[name] then
      found[at] = notes[name]
    else
      local number = bucket_number(host, name)
      local fields = buckets[number]
      if fields == nil then
        fields = { 'HMGET', key_of(host, number) }
        buckets[number], positions[number] = fields, {}
      end
      local some = positions[number]
      fields[#fields + 1], some[#some + 1] = name, at
    end
  end
  for number, fields in pairs(buckets) do
    local some = positions[number]
    for first = 1, #some, 1000 do
      local last = math.min(first + 999, #some)
      local values = redis.call('HMGET', fields[2], unpack(fields, first + 2, last + 2))
      for at = first, last do
        found[some[at]] = values[at - first + 1] or nil
      end
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
  local buckets = {}
  for name, note in pairs(notes) do
    local number = bucket_number(host, name)
    local fields = buckets[number]
    if fields == nil or #fields > 1000 then
      if fields then
        redis.call(unpack(fields))
      end
      fields = { 'HSET', key_of(host, number) }
      buckets[number] = fields
    end
    local size = #fields
    fields[size + 1], fields[size + 2] = name, note
  end
  for _, fields in pairs(buckets) do
    redis.call(unpack(fields))
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
