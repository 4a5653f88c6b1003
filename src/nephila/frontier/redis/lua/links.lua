-- Candidates as they are given: all that are of one host are a group of four arguments, and stay as they are until one of
-- them has to be taken apart.
--
--   host, registrable domain
--   facts   what breaks ties for the host (4), length of the base (2, the highest bit says that all are alike in what makes
--           them belong together), the grade of its domain (grades.lua), then for each candidate, 25 bytes: its name (8 bytes of the fingerprint), depth, class,
--           hops, bonus (2, signed), its draw (4), what breaks ties (4), where its item begins (4)
--           A byte behind them says that each of these links stands for several (policy.lua).
--   items   the base, then an item for each, as it lies in a bundle (bundles.lua): so the new ones of a page are queued by
--           cutting them out of what was given, and a known one is met without a string or a table being made for it

local byte, sub = string.byte, string.sub
local HEAD, EACH, NO_LEVEL = 7, 25, 255
local TIE_AT, BEGIN_AT = 17, 21 -- behind where the facts of a candidate begin
Links.HEAD, Links.EACH, Links.NO_LEVEL = HEAD, EACH, NO_LEVEL

function Links.read_group(args, at)
  local facts, items = args[at + 2], args[at + 3]
  local high, low, grade = byte(facts, 5, 7)
  Grades.take(args[at], grade)
  local alike, behind = high > 127, (#facts - HEAD) % EACH
  if alike then
    high = high - 128
  end
  return {
    name = args[at], domain = args[at + 1], tie = sub(facts, 1, 4), facts = facts, items = items, alike = alike,
    base = sub(items, 1, high * 256 + low), count = (#facts - HEAD - behind) / EACH, keys = false,
    many = behind > 0,
  }
end

-- depth, hops
function Links.traits(group, position)
  local from = HEAD + EACH * (position - 1)
  local depth, _, hops = byte(group.facts, from + 9, from + 11)
  return depth, hops
end

-- What candidates have to have in common to be queued together: depth, class, hops, bonus, as they are given.
function Links.kind(group, position)
  local from = HEAD + EACH * (position - 1)
  return sub(group.facts, from + 9, from + 13)
end

-- depth, class (nil: by its score), hops, bonus
function Links.read_kind(kind)
  local depth, level, hops, bonus = struct.unpack('>BBBh', kind)
  return depth, level ~= NO_LEVEL and level or nil, hops, bonus
end

function Links.tie(group, position)
  local from = HEAD + EACH * (position - 1) + TIE_AT
  return sub(group.facts, from + 1, from + 4)
end

local function begin_of(group, position)
  if position > group.count then
    return #group.items
  end
  local from = HEAD + EACH * (position - 1) + BEGIN_AT
  local b1, b2, b3, b4 = byte(group.facts, from + 1, from + 4)
  return b1 * 16777216 + b2 * 65536 + b3 * 256 + b4
end

-- The items of candidates, as a bundle has them: neighbours are cut out together.
function Links.items(group, positions, first, last)
  if first == last then
    local position = positions[first]
    return sub(group.items, begin_of(group, position) + 1, begin_of(group, position + 1))
  end
  local parts, at = {}, first
  while at <= last do
    local from, till = positions[at], positions[at]
    while at < last and positions[at + 1] == till + 1 do
      at, till = at + 1, till + 1
    end
    parts[#parts + 1] = sub(group.items, begin_of(group, from) + 1, begin_of(group, till + 1))
    at = at + 1
  end
  return table.concat(parts)
end

-- Note what is new of a group, under one note.
function Links.note(host, group, positions, first, last, note)
  if not group.keys then -- the host is new
    Known.fetch({ Links.look_up(host, group) })
  end
  local keys, facts, parts = group.keys, group.facts, {}
  local low, high = Known.part(host)
  low, high = low + HEAD - EACH, high + HEAD - EACH
  if first == last then
    local position = positions[first]
    local from = EACH * position
    Known.add(host, keys[position], sub(facts, from + low, from + high) .. note)
    return
  end
  for at = first, last do
    local position = positions[at]
    local key, from = keys[position], EACH * position
    local entries = parts[key]
    if entries then
      entries[#entries + 1] = sub(facts, from + low, from + high)
    else
      parts[key] = { sub(facts, from + low, from + high) }
    end
  end
  for key, entries in pairs(parts) do
    Known.add(host, key, table.concat(entries, note) .. note)
  end
end

-- Find out in which buckets a group's candidates would be known; answers these.
function Links.look_up(host, group)
  local different
  group.keys, different = Known.buckets_of(host, group.facts, HEAD, EACH, group.count)
  return different
end

-- How a candidate is spelled behind its host, and its fingerprint.
local function spelling(group, position)
  local items, at = group.items, begin_of(group, position) + 1
  local begins, length = byte(items, at + 16, at + 17)
  local from = at + 18
  if length == 255 then
    local high, low = byte(items, from, from + 1)
    length, from = high * 256 + low, from + 2
  end
  return sub(group.base, 1, begins) .. sub(items, from, from + length - 1), sub(items, at, at + 15)
end
Links.spelling = spelling

-- A candidate, taken apart.
function Links.read(group, position)
  local depth, level, hops, bonus = Links.read_kind(Links.kind(group, position))
  local tail, fp = spelling(group, position)
  return {
    fp = fp, depth = depth, level = level, hops = hops, bonus = bonus, tie = Links.tie(group, position), tail = tail,
    rank = 0, admitted = X.wall_s, cycle = X.cycle, via = '', is_new = true,
  }
end

function Links.read_all(group, positions)
  local found = {}
  for at, position in ipairs(positions) do
    found[at] = Links.read(group, position)
  end
  return found
end

function Links.fingerprint(group, position)
  local _, fp = spelling(group, position)
  return fp
end

-- The tails of a group's candidates.
function Links.tails(group)
  local tails = {}
  for position = 1, group.count do
    tails[position] = spelling(group, position)
  end
  return tails
end
