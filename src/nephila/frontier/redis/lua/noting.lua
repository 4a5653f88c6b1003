-- What is noted of URLs is written: changes, what is new, and buckets that are split (known.lua has how they lie).

local byte, sub, char, floor = string.byte, string.sub, string.char, math.floor
local LOAD = 128 -- URLs to a bucket, on average: more make a bucket dearer to write, fewer more room for its name
local WIDE = Known.WIDE
local put, bucket_of, bucket_at, place_of, field_of, size_of, head_of =
  Known.put, Known.bucket_of, Known.bucket_at, Known.place_of, Known.field_of, Known.size_of, Known.head_of

-- Changes of notes are gathered, and made together: a bucket is put together anew once for all of a page's links.
local function edit(field, at, text)
  local edits = X.edits
  if not edits then
    edits = {}
    X.edits = edits
  end
  local of_bucket = edits[field]
  if of_bucket == nil then
    edits[field] = { at, [-at] = text }
  else
    if of_bucket[-at] == nil then
      of_bucket[#of_bucket + 1] = at
    end
    of_bucket[-at] = text
  end
end

-- Make the changes that were gathered.
function Known.apply()
  local edits = X.edits
  X.edits = false
  for field, places in pairs(edits or {}) do
    local text, count = X.buckets[field], #places
    if count == 1 then
      local at = places[1]
      local new = places[-at]
      put(field, sub(text, 1, at - 1) .. new .. sub(text, at + #new))
    else
      local parts, from = {}, 1
      table.sort(places)
      for number = 1, count do
        local at = places[number]
        local new = places[-at]
        parts[2 * number - 1], parts[2 * number] = sub(text, from, at - 1), new
        from = at + #new
      end
      parts[2 * count + 1] = sub(text, from)
      put(field, table.concat(parts))
    end
  end
end

-- Note another rank of a URL whose entry begins there, of that kind.
function Known.note_rank(field, at, kind, rank)
  if Known.UNIT > 1 then
    edit(field, at + 4, char(floor(byte(X.buckets[field], at + 4) / 32) * 32 + floor(rank / 4)))
  else
    edit(field, at + 6, char(kind == 0 and rank or rank + 128))
  end
end

-- Note something else of a URL whose entry begins there.
function Known.note_at(field, at, kind, rank, depth, number)
  edit(field, at + Known.PART, Known.pack(kind, rank, depth, number))
end

-- Note URLs that are new: entries of a bucket that was read.
function Known.add(host, field, entries)
  local text = X.buckets[field]
  if host.buckets >= WIDE and #text % Known.ENTRY == 0 then
    text = struct.pack('>I2', #text / Known.ENTRY) .. text
  end
  put(field, text .. entries)
end

function Known.note(host, fingerprint, kind, rank, depth, number)
  if X.edits then
    Known.apply()
  end
  local note, field = Known.pack(kind, rank, depth, number), bucket_of(host, fingerprint)
  local text = bucket_at(field)
  local at = place_of(host, text, fingerprint)
  if at then
    put(field, sub(text, 1, at + Known.PART - 1) .. note .. sub(text, at + Known.ENTRY))
  else
    Known.add(host, field, sub(fingerprint, Known.part(host)) .. note)
  end
end

-- Growing

local function joined(narrow, entries)
  local text = table.concat(entries)
  return narrow == #entries and text or struct.pack('>I2', narrow) .. text
end

-- Divide entries that lie one after the other: those go whose byte at `telling` has the bit of that weight.
local function divide(text, first, last, telling, weight, kept, moved)
  local double, behind, kept_count, moved_count = weight * 2, Known.ENTRY - 1, #kept, #moved
  for at = first, last, Known.ENTRY do
    if byte(text, at + telling) % double >= weight then
      moved_count = moved_count + 1
      moved[moved_count] = sub(text, at, at + behind)
    else
      kept_count = kept_count + 1
      kept[kept_count] = sub(text, at, at + behind)
    end
  end
end

-- A host gets one bucket more: what is in one of the others is divided between the two. All names in that one end alike, but for
-- one bit; so that is all that is looked at, in one byte of each entry.
local function split(host)
  local size = size_of(host)
  local from, new, kept, moved = field_of(host, host.buckets - size), host.buckets, {}, {}
  local text = bucket_at(from)
  local head, narrow = head_of(text)
  local of_narrow, of_wide, weight = Known.telling(size)
  local wide_from = head + narrow * Known.ENTRY
  divide(text, head + 1, wide_from, of_narrow, weight, kept, moved)
  local kept_narrow, moved_narrow = #kept, #moved
  divide(text, wide_from + 1, #text, of_wide, weight, kept, moved)
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
  if X.edits then
    Known.apply()
  end
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
