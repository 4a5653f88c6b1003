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
local WIDE = 256
local HEAD = 2
local DEEP = 15
local PART, ENTRY, COMPACT = 6, 9, false

Known.IN_QUEUE, Known.ON_SHELF, Known.HAS_RECORD, Known.QUEUE_OUTSIDE, Known.SHELF_OUTSIDE = 0, 1, 2, 3, 4
Known.DEEP = DEEP
-- What is read of a record: it has not ended, or in this cycle, or (as far as is known) in an earlier one
local WAITS, ENDED, ENDED_BEFORE = -1, 0, 1
Known.WAITS, Known.ENDED, Known.ENDED_BEFORE = WAITS, ENDED, ENDED_BEFORE
Known.UNIT, Known.PART, Known.ENTRY, Known.WIDE = 1, PART, ENTRY, WIDE -- ranks are noted in steps of UNIT

-- A call begins, in a crawl of one of the two kinds.
function Known.open(compact)
  if compact ~= COMPACT then
    COMPACT = compact
    PART, ENTRY, Known.UNIT = compact and 4 or 6, compact and 5 or 9, compact and 4 or 1
    Known.PART, Known.ENTRY = PART, ENTRY
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
Known.bucket_of = bucket_of

-- By what a bucket of so many is divided between two: where that byte of an entry lies (of one that is not wide; of a wide one), and
-- the weight of the bit in it.
function Known.telling(size)
  local behind = 1
  while size >= 256 do
    size, behind = size / 256, behind + 1
  end
  return PART - behind, PART - behind + 1, size
end

-- The buckets of many URLs: their names lie `stride` bytes apart in a text, from behind `before` on. Only those that differ
-- are among the second ones that are answered.
function Known.buckets_of(host, text, before, stride, count)
  local buckets = host.buckets
  if buckets == 1 then
    local only = host.name
    if count == 1 then
      return { only }, { only }
    end
    local fields = {}
    for at = 1, count do
      fields[at] = only
    end
    return fields, { only }
  end
  -- The last byte of a name tells which one it is, as long as there are no more of them than that has values.
  local size = size_of(host)
  local double, from, narrow = size * 2, before + 8, buckets <= 256
  local fields, made, different, differ = {}, {}, {}, 0
  for at = 1, count do
    local number = byte(text, from)
    if not narrow then
      local b1, b2, b3 = byte(text, from - 3, from - 1)
      number = b1 * 16777216 + b2 * 65536 + b3 * 256 + number
    end
    number = number % double
    if number >= buckets then
      number = number - size
    end
    local field = made[number]
    if not field then
      field = field_of(host, number)
      made[number] = field
      differ = differ + 1
      different[differ] = field
    end
    fields[at], from = field, from + stride
  end
  return fields, different
end

-- Read buckets; what was read in this call is not read again.
function Known.fetch(lists)
  local buckets, missing, asked = X.buckets, {}, 0
  for number = 1, #lists do
    local fields = lists[number]
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

Known.place_of, Known.read = place_of, note_at

-- For whoever looks through many entries by himself: what of a name is in one, and its length; nil where it is not so simple.
function Known.plain(host)
  if COMPACT or host.buckets >= WIDE then
    return nil
  end
  return 9 - PART, ENTRY
end

-- The same of a URL by its fingerprint.
function Known.where(host, fingerprint)
  if X.edits then
    Known.apply()
  end
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
  if kind ~= Known.HAS_RECORD then
    return false
  end
  local key = 'r:' .. host.name
  local saved = X.fields[key]
  return saved and saved[fingerprint] and true or redis.call('HEXISTS', X.P .. key, fingerprint) == 1
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

Known.put, Known.bucket_at, Known.field_of, Known.size_of, Known.head_of = put, bucket_at, field_of, size_of, head_of
