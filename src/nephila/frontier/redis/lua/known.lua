-- Which URLs of a host are known, and what is noted of each.
--
-- The index of a host is cut into buckets, which are strings of entries one after the other: a part of the URL's name (the
-- first eight bytes of its fingerprint) and a note. All buckets of a shard are fields of one hash, `known`: `HOST` is the first
-- of a host, `HOST:N` the others. A bucket is read whole, looked through by `string.find` and, where it has changed, written
-- whole when the call ends: so all the links of a page cost one HMGET and one HSET, whatever hosts they go to. A host grows by
-- one bucket at a time: linear hashing, so that no call ever pays for the whole host.
--
--   part   the last six bytes of the name. The number of a bucket is that of the name's last bits: from 256 buckets on it tells the
--          last byte, and the part begins one byte earlier instead (a *wide* entry). Older ones stay as they are: they stand
--          first, and two bytes before the first entry say how many they are. Something new is taken for known less than
--          once in 10^9, up to 280,000 URLs by 48 bits, and up to 72 million on one host by 56.
--   note   three bytes: kind, rank (7 bits), depth (up to 15, which stands for more) and a number: the last bits of that of the bundle
--          or chunk that it is in (queue.lua finds it by them), or how its record ended.
--
-- A crawl that is `compact` has parts of four bytes and notes of one: kind, a fourth of the rank, and no place.
--
-- What must stay true: an entry is never lost, so what is known is never taken for new. A part may be another URL's: whoever
-- follows a note has to live with not finding his URL there.

local byte, find, sub, char, floor = string.byte, string.find, string.sub, string.char, math.floor
local LOAD = 128 -- URLs to a bucket, on average: more make a bucket dearer to write, fewer more room for its name
local WIDE = 256
local HEAD = 2
local DEEP = 15
local PART, ENTRY, COMPACT = 6, 9, false

Known.IN_QUEUE, Known.ON_SHELF, Known.HAS_RECORD, Known.QUEUE_OUTSIDE, Known.SHELF_OUTSIDE = 0, 1, 2, 3, 4
Known.DEEP = DEEP
-- What is read of a record: it has not ended, or in this cycle, or (as far as is known) in an earlier one
local WAITS, ENDED, ENDED_BEFORE = -1, 0, 1
Known.WAITS, Known.ENDED, Known.ENDED_BEFORE = WAITS, ENDED, ENDED_BEFORE
Known.UNIT = 1 -- ranks are noted in steps of so many

-- A call begins, in a crawl of one of the two kinds.
function Known.open(compact)
  if compact ~= COMPACT then
    COMPACT = compact
    PART, ENTRY, Known.UNIT = compact and 4 or 6, compact and 5 or 9, compact and 4 or 1
  end
end

-- Buckets

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

function Known.word(number)
  return WORDS[number] or string.format('%d', number)
end
local word = Known.word

local function field_of(host, number)
  return number == 0 and host.name or host.name .. ':' .. word(number)
end

-- The bucket that a URL of that name belongs to.
local function bucket_of(host, name)
  local number = 0
  if host.buckets > 1 then
    local b1, b2, b3, b4 = byte(name, 5, 8)
    local size = size_of(host)
    number = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % (size * 2)
    if number >= host.buckets then
      number = number - size
    end
  end
  return field_of(host, number)
end

-- The buckets of many URLs: their names lie `stride` bytes apart in a text, from behind `before` on.
function Known.buckets_of(host, text, before, stride, count)
  local fields, buckets = {}, host.buckets
  if buckets == 1 then
    local only = host.name
    for at = 1, count do
      fields[at] = only
    end
    return fields
  end
  local size, made, from = size_of(host), {}, before + 5
  local double = size * 2
  for at = 1, count do
    local b1, b2, b3, b4 = byte(text, from, from + 3)
    local number = (b1 * 16777216 + b2 * 65536 + b3 * 256 + b4) % double
    if number >= buckets then
      number = number - size
    end
    local field = made[number]
    if field == nil then
      field = field_of(host, number)
      made[number] = field
    end
    fields[at], from = field, from + stride
  end
  return fields
end

-- Read buckets; what was read in this call is not read again.
function Known.fetch(lists)
  local buckets, missing, asked = X.buckets, {}, 0
  for _, fields in ipairs(lists) do
    for at = 1, #fields do
      local field = fields[at]
      if buckets[field] == nil then
        buckets[field] = ''
        asked = asked + 1
        missing[asked] = field
      end
    end
  end
  for first = 1, asked, 1000 do
    local last = math.min(first + 999, asked)
    local found = redis.call('HMGET', X.P .. 'known', unpack(missing, first, last))
    for at = first, last do
      buckets[missing[at]] = found[at - first + 1] or ''
    end
  end
end

local function bucket_at(field)
  local text = X.buckets[field]
  if text == nil then
    text = redis.call('HGET', X.P .. 'known', field) or ''
    X.buckets[field] = text
  end
  return text
end

local function put(field, text)
  X.buckets[field], X.changed_buckets[field] = text, true
end

-- Where the entries of a bucket begin, and how many of them are not wide.
local function head_of(text)
  if #text % ENTRY == 0 then
    return 0, #text / ENTRY
  end
  local high, low = byte(text, 1, 2)
  return HEAD, high * 256 + low
end

-- The place of an entry among those of a host with many buckets. A find may also be at home in two entries.
local function place_among(text, name)
  local head, narrow = head_of(text)
  local shared, before = sub(name, 9 - PART, 7), byte(name, 8 - PART)
  local at = find(text, shared, head + 1, true)
  while at do
    local offset = at - 1 - head
    local within = offset % ENTRY
    if within == 0 and offset / ENTRY < narrow then
      return at
    elseif within == 1 and (offset - 1) / ENTRY >= narrow and byte(text, at - 1) == before then
      return at - 1
    end
    at = find(text, shared, at + 1, true)
  end
  return nil
end

-- Where the entry of a name begins in a bucket of a host.
local function place_of(host, text, name)
  if host.buckets >= WIDE then
    return place_among(text, name)
  end
  local part = sub(name, 9 - PART, 8)
  local at = find(text, part, 1, true)
  while at and (at - 1) % ENTRY ~= 0 do
    at = find(text, part, at + 1, true)
  end
  return at
end

-- What of a name its entry has: from which byte to which.
function Known.part(host)
  if host.buckets >= WIDE then
    return 8 - PART, 7
  end
  return 9 - PART, 8
end

-- Notes

-- `number`: of a bundle or a chunk; of a record the cycle in which it has ended, or WAITS.
function Known.pack(kind, rank, depth, number)
  if COMPACT then
    if kind == 2 and number >= 0 then
      kind = 5 + number % 3
    end
    return char(kind * 32 + floor(rank / 4))
  end
  depth = depth < DEEP and depth or DEEP
  if kind == 0 then
    number = number % 4096
    return char(rank, depth * 16 + floor(number / 256), number % 256)
  end
  if kind == 2 then
    number = number < 0 and 0 or 512 + number % 512
  end
  number = number % 1024
  return char(128 + rank, depth * 16 + (kind - 1) * 4 + floor(number / 256), number % 256)
end

-- kind, rank, depth, number of the entry that begins there.
local function note_at(text, at)
  if COMPACT then
    local value = byte(text, at + 4)
    local kind, rank = floor(value / 32), value % 32 * 4
    if kind < 5 then
      return kind, rank, 0, WAITS
    end
    return 2, rank, 0, kind - 5 == X.cycle % 3 and ENDED or ENDED_BEFORE
  end
  local rank, middle, low = byte(text, at + 6, at + 8)
  local high = middle % 16
  local depth = (middle - high) / 16
  if rank < 128 then
    return 0, rank, depth, high * 256 + low
  end
  local kind, number = 1 + floor(high / 4), high % 4 * 256 + low
  if kind == 2 then
    number = number < 512 and WAITS or number - 512 == X.cycle % 512 and ENDED or ENDED_BEFORE
  end
  return kind, rank - 128, depth, number
end

-- The note of a URL by its bucket, which was read, and its name, and where its entry is; nil when it is not known.
function Known.entry(host, field, name)
  local text = X.buckets[field]
  local at = place_of(host, text, name)
  if at then
    local kind, rank, depth, number = note_at(text, at)
    return kind, rank, depth, number, at
  end
  return nil
end

-- The same of a URL by its fingerprint.
function Known.where(host, fingerprint)
  local text = bucket_at(bucket_of(host, fingerprint))
  local at = place_of(host, text, fingerprint)
  if at then
    return note_at(text, at)
  end
  return nil
end

-- Read the buckets of URLs, by their names (or fingerprints), all at once.
function Known.read_all(host, names)
  local fields = {}
  for at, name in ipairs(names) do
    fields[at] = bucket_of(host, name)
  end
  Known.fetch({ fields })
end

function Known.has_record(host, fingerprint)
  local kind = Known.where(host, fingerprint)
  return kind == Known.HAS_RECORD and redis.call('HEXISTS', X.P .. 'r:' .. host.name, fingerprint) == 1
end

-- Whether a number is the one that is noted of a URL in a chunk.
function Known.names_chunk(noted, number)
  return COMPACT or noted == number % 1024
end

-- The numbers that a bundle or chunk may have by what is noted of its URL; nil where nothing is.
function Known.numbers(host, kind, noted)
  if COMPACT then
    return nil
  end
  local found, step = {}, kind == 0 and 4096 or 1024
  for number = noted, host.next_bundle - 1, step do
    found[#found + 1] = word(number)
  end
  return found
end

-- Writing

-- Note another rank of a URL whose entry begins there.
function Known.note_rank(field, at, rank)
  local text = X.buckets[field]
  if COMPACT then
    local kind = floor(byte(text, at + 4) / 32)
    put(field, sub(text, 1, at + 3) .. char(kind * 32 + floor(rank / 4)) .. sub(text, at + 5))
    return
  end
  local first = byte(text, at + 6)
  put(field, sub(text, 1, at + 5) .. char(rank + (first < 128 and 0 or 128)) .. sub(text, at + 7))
end

-- Note URLs that are new: entries of a bucket that was read.
function Known.add(host, field, entries)
  local text = X.buckets[field]
  if host.buckets >= WIDE and #text % ENTRY == 0 then
    text = struct.pack('>I2', #text / ENTRY) .. text
  end
  put(field, text .. entries)
end

function Known.note(host, fingerprint, kind, rank, depth, number)
  local note, field = Known.pack(kind, rank, depth, number), bucket_of(host, fingerprint)
  local text = bucket_at(field)
  local at = place_of(host, text, fingerprint)
  if at then
    put(field, sub(text, 1, at + PART - 1) .. note .. sub(text, at + ENTRY))
  else
    Known.add(host, field, sub(fingerprint, Known.part(host)) .. note)
  end
end

-- Growing

local function joined(narrow, entries)
  local text = table.concat(entries)
  return narrow == #entries and text or struct.pack('>I2', narrow) .. text
end

local function split(host)
  local size = size_of(host)
  local old, new, double = host.buckets - size, host.buckets, size * 2
  local from = field_of(host, old)
  local text, kept, moved, kept_narrow, moved_narrow = bucket_at(from), {}, {}, 0, 0
  local head, narrow = head_of(text)
  for at = head + 1, #text, ENTRY do
    local is_narrow, number = (at - 1 - head) / ENTRY < narrow, nil
    if is_narrow then
      local b1, b2, b3, b4 = byte(text, at + PART - 4, at + PART - 1)
      number = b1 * 16777216 + b2 * 65536 + b3 * 256 + b4
    else
      local b1, b2, b3 = byte(text, at + PART - 3, at + PART - 1)
      number = b1 * 16777216 + b2 * 65536 + b3 * 256 + old % 256
    end
    if number % double == new then
      moved[#moved + 1] = sub(text, at, at + ENTRY - 1)
      moved_narrow = moved_narrow + (is_narrow and 1 or 0)
    else
      kept[#kept + 1] = sub(text, at, at + ENTRY - 1)
      kept_narrow = kept_narrow + (is_narrow and 1 or 0)
    end
  end
  put(from, joined(kept_narrow, kept))
  put(field_of(host, new), joined(moved_narrow, moved))
  host.buckets = new + 1
end

-- So many URLs are new; the buckets of their host are split when the call ends.
function Known.came(host, count)
  host.urls = host.urls + count
  X.grown[host.name] = host
  Shard.count('urls', count)
end

-- Write the buckets that have changed.
function Known.close()
  for _, host in pairs(X.grown) do
    while host.urls > host.buckets * LOAD do
      split(host)
    end
  end
  local words, count, key = {}, 0, X.P .. 'known'
  for field in pairs(X.changed_buckets) do
    words[count + 1], words[count + 2] = field, X.buckets[field]
    count = count + 2
    if count == 1000 then
      redis.call('HSET', key, unpack(words, 1, count))
      count = 0
    end
  end
  if count > 0 then
    redis.call('HSET', key, unpack(words, 1, count))
  end
end
