-- Which URLs of a host are known, and the records of those that were asked for.
--
-- The index of a host is cut into buckets that stay small (Valkey packs a small hash without pointers), and grows by
-- one bucket at a time: linear hashing, so that no call ever pays for the whole host.

local LOAD = 48 -- URLs to a bucket, on average; at most 128 may lie in one for it to stay packed

local FIELDS = {
  'state', 'tail', 'rank', 'level', 'depth', 'hops', 'retries', 'cycle', 'admitted', 'via', 'settled', 'reason',
  'detail', 'due_at', 'due_reason', 'fetched', 'bundle', 'status', 'segment', 'offset', 'finish', 'digest', 'etag',
  'last_modified', 'page', 'changed_at', 'pending', 'trail', 'history', 'gone',
}
Urls.QUEUED, Urls.DELAYED, Urls.DONE, Urls.DROPPED, Urls.DEAD = 0, 1, 2, 3, 4
Urls.COUNTERS = { [2] = 'done', [3] = 'dropped', [4] = 'dead' }

local function bucket_number(host, fingerprint)
  local hash, size = struct.unpack('>I4', fingerprint:sub(5, 8)), 1
  while size * 2 <= host.buckets do
    size = size * 2
  end
  local number = hash % (size * 2)
  return number < host.buckets and number or hash % size
end

local function key_of(host, number)
  return X.P .. 'u:' .. host.name .. ':' .. number
end

-- Where a URL is: nil when it is not known, '0' when it has a record, else the number of its bundle.
function Urls.where(host, fingerprint)
  return redis.call('HGET', key_of(host, bucket_number(host, fingerprint)), fingerprint:sub(1, 8)) or nil
end

-- The same for many, bucket by bucket; answers a table by fingerprint.
function Urls.where_all(host, fingerprints)
  local by_bucket, found = {}, {}
  for _, fingerprint in ipairs(fingerprints) do
    local number = bucket_number(host, fingerprint)
    by_bucket[number] = by_bucket[number] or {}
    table.insert(by_bucket[number], fingerprint)
  end
  for number, some in pairs(by_bucket) do
    local fields = {}
    for at, fingerprint in ipairs(some) do
      fields[at] = fingerprint:sub(1, 8)
    end
    for first = 1, #fields, 1000 do
      local last = math.min(first + 999, #fields)
      local values = redis.call('HMGET', key_of(host, number), unpack(fields, first, last))
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

-- Note where URLs are; `new` counts those that were not known.
function Urls.put_all(host, fingerprints, bundle, new)
  if new then
    host.urls = host.urls + #fingerprints
    Shard.count('urls', #fingerprints)
    while host.urls > host.buckets * LOAD do
      split(host)
    end
  end
  local by_bucket = {}
  for _, fingerprint in ipairs(fingerprints) do
    local number = bucket_number(host, fingerprint)
    local pairs_of = by_bucket[number] or {}
    by_bucket[number] = pairs_of
    table.insert(pairs_of, fingerprint:sub(1, 8))
    table.insert(pairs_of, bundle)
  end
  for number, pairs_of in pairs(by_bucket) do
    redis.call('HSET', key_of(host, number), unpack(pairs_of))
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
  local raw = redis.call('HGET', X.P .. 'r:' .. host.name, fingerprint)
  if not raw then
    return nil
  end
  local values, record = cmsgpack.unpack(raw), { asked = true, fp = fingerprint }
  for at, field in ipairs(FIELDS) do
    record[field] = values[at]
  end
  return record
end

function Urls.save(host, record)
  local values = {}
  for at, field in ipairs(FIELDS) do
    values[at] = record[field]
  end
  redis.call('HSET', X.P .. 'r:' .. host.name, record.fp, cmsgpack.pack(values))
end

-- A record for a URL that is in a bundle until now.
function Urls.new_record(url)
  return {
    asked = true, fp = url.fp, state = Urls.QUEUED, tail = url.tail, rank = url.rank, level = url.level,
    depth = url.depth, hops = url.hops, retries = 0, cycle = url.cycle, admitted = url.admitted, via = url.via,
    settled = 0, reason = '', detail = '', due_at = 0, due_reason = '', fetched = 0, bundle = 0, status = 0,
    segment = '', offset = -1, finish = 0, digest = '', etag = '', last_modified = '', page = 0, changed_at = 0,
    pending = 0, trail = {}, history = { 0, 0, 0, 0, 0, 0 }, gone = 0,
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

function Urls.hold_pending(host, record)
  record.pending = 1
  Shard.count('pending', 1)
  local key = X.P .. 'pend:' .. record.segment
  redis.call('ZADD', key, string.format('%.0f', record.finish), name_of(host, record))
  redis.call('SADD', X.P .. 'pends', record.segment)
end

function Urls.end_pending(host, record)
  if record.pending == 1 then
    record.pending = 0
    Shard.count('pending', -1)
    redis.call('ZREM', X.P .. 'pend:' .. record.segment, name_of(host, record))
  end
end

function Urls.forget_capture(record)
  record.status, record.segment, record.offset, record.finish = 0, '', -1, 0
  record.digest, record.etag, record.last_modified, record.page, record.changed_at = '', '', '', 0, 0
end

-- A URL leaves the state it is in. A capture that may never become durable is forgotten.
function Urls.end_state(host, record)
  Urls.end_delay(host, record)
  if record.state == Urls.DONE and record.pending == 1 then
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
