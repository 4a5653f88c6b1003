-- Long queues: their far ends are kept outside as chunks of some hundred URLs, and come back before they are needed.
--
-- A *row* is what is taken in order: a lane of the queue, or a group of a shelf. Its head always stays here. A chunk is of one
-- row, and leaves in three steps, each of which may be repeated or be the last that is done:
--
--   pick   tells bundles of the far end as they are stored; nothing changes
--   (the caller keeps them where they are durable)
--   out    the bundles that are still the same leave; what is noted of their URLs names the chunk
--
-- It comes back by `back`, which is given what was kept. Whoever keeps chunks deletes one only when it has been back for
-- longer than the engine could forget (`returned`), so an engine that loses its last seconds finds it again.
--
-- Keys: `c:HOST` sorted set of chunks, as `z:HOST`, by the first member of each; `q:HOST` has a stub under the number of the
-- chunk; `sp:HOST` hash: first byte of rows -> URLs outside; `spilled` hash: host -> URLs outside; `chunks` hash: id -> host
-- and number; `returned` sorted set: id by time; `long` set: hosts whose queues may be too long.
--
-- What must stay true: what is noted of a URL decides. A URL in a chunk counts as long as its note names that chunk; one that
-- was moved since is passed over when the chunk comes back. All counters count what is outside as if it were here, except
-- `spilled` and `chunks`, which tell how much that is.

local KINDS = { 130, 129, 3, 2, 1 } -- first bytes of the rows that spill, least urgent first: traps, over budget, low .. high
local CHUNK, LEAST = 500, 125 -- URLs in a chunk, at most; and at least, where there are so many
local LOOKED_AT, ROWS, HOSTS = 600, 256, 64
local NO_GROUP = '\0\0\0\0\0\0\0\0'
local LATEST_MS = 600000 -- a chunk that was picked longer ago may have been cleared away as nobody's
local AFTER_ALL = string.rep('\255', 23)

local function key(name, host)
  return name == 'z' and Queue.order_key(host) or X.P .. name .. ':' .. host.name
end

-- The row of a member of z: or c:.
local function row_of(member)
  return #member > 13 and member:sub(1, 9) or member:sub(1, 1)
end

-- How many bundles a row has before its first chunk, at least, while there is a chunk.
local function wanted_ahead(row)
  local many = math.max(1, math.floor(X.rules.spill_keep / 64))
  return (#row == 1 or row:sub(2) == NO_GROUP) and many or 1
end

-- URLs outside by the first byte of their rows.
local function outside(host)
  local found, all = {}, redis.call('HGETALL', key('sp', host))
  for at = 1, #all, 2 do
    found[all[at]:byte(1)] = tonumber(all[at + 1])
  end
  return found
end

local function here(host, kind, spilled)
  local all = kind > 128 and host.shelved[kind - 128] or host.lanes[kind + 1]
  return all - (spilled[kind] or 0)
end

-- Called when a bundle was put: a host that may have too many is remembered, now and then.
function Spill.notice(host, number)
  local above = X.rules.spill_above
  if not above or above == 0 or number % math.min(16, above) ~= 0 then
    return
  end
  local lanes, shelved = host.lanes, host.shelved
  if lanes[2] + lanes[3] + lanes[4] + shelved[1] + shelved[2] > above then
    redis.call('SADD', X.P .. 'long', host.name)
  end
end

local function leased_of(host)
  local lease = host.token ~= 0 and Claim.lease_of(string.format('%.0f', host.token))
  return lease and lease[4] or {}
end

local function may_leave(bundle, leased)
  if bundle.spilled or bundle.asked == 1 then
    return false
  end
  for _, fingerprint in ipairs(leased) do
    if Queue.find(bundle, fingerprint) then
      return false
    end
  end
  return true
end

-- The last bundles of the last row of a kind, without its first: numbers and stored values by turns, and their row.
local function far_end(host, kind, most)
  local taken, count, row, leased = {}, 0, nil, leased_of(host)
  local low = '[' .. string.char(kind)
  local members = redis.call('ZREVRANGEBYLEX', key('z', host), low .. AFTER_ALL, low, 'LIMIT', 0, LOOKED_AT)
  for at = 1, #members - 1 do
    local member = members[at]
    local its_row = row_of(member)
    if row and its_row ~= row then
      break
    end
    if row_of(members[at + 1]) == its_row then
      local number = Queue.number_in(member)
      local raw = redis.call('HGET', key('q', host), number)
      local bundle = Queue.decode(host, number, raw)
      if may_leave(bundle, leased) then
        local many = #Queue.items(bundle)
        if count + many > most then
          break
        end
        count, row = count + many, its_row
        taken[#taken + 1], taken[#taken + 2] = number, raw
      end
    end
  end
  return taken, count
end

-- What could leave a host that has too much here: when that was told, numbers of bundles and what is stored by turns, and
-- how many URLs those are. ARGV: clock, host
function Spill.pick(keys, args)
  Shard.open(keys[1], args[1])
  local host, above, keep = Shard.host(args[2]), X.rules.spill_above or 0, X.rules.spill_keep
  local spilled, all = host and outside(host) or {}, 0
  for _, kind in ipairs(host and KINDS or {}) do
    all = all + here(host, kind, spilled)
  end
  if above > 0 and all > above then
    for _, kind in ipairs(KINDS) do
      local excess = here(host, kind, spilled) - keep
      if excess >= math.min(LEAST, above - keep) then
        local most = math.min(CHUNK, above - keep) -- so that it does not leave again as soon as it is back
        local taken, count = far_end(host, kind, math.min(most, excess))
        if count > 0 then
          return { X.now, taken, count }
        end
      end
    end
  end
  redis.call('SREM', X.P .. 'long', args[2])
  return { X.now, {}, 0 }
end

local function stub_of(bundle)
  return '\2' .. cmsgpack.pack({ bundle.member, bundle.id, bundle.count, bundle.ages, bundle.counted and 1 or 0 })
end

local function save(host, stub)
  redis.call('HSET', key('q', host), stub.number, stub_of(stub))
end

-- So many URLs more (or fewer) are outside.
local function count_outside(host, member, by)
  redis.call('HINCRBY', key('sp', host), member:sub(1, 1), by)
  if redis.call('HINCRBY', X.P .. 'spilled', host.name, by) <= 0 then
    redis.call('HDEL', X.P .. 'spilled', host.name)
  end
  Shard.count('spilled', by)
end

local function read_notes(host, urls)
  local names = {}
  for position, url in ipairs(urls) do
    names[position] = url.fp
  end
  Known.read_all(host, names)
end

-- Bundles that were picked, and are kept outside by now, leave. Answers whether the chunk is known, and its URLs.
-- ARGV: clock, host, id, when they were picked, then number and SHA-1 of what is stored, for each
function Spill.out(keys, args)
  Shard.open(keys[1], args[1])
  local host, id = Shard.host(args[2]), args[3]
  if redis.call('HEXISTS', X.P .. 'chunks', id) == 1 then
    return { 1, 0 }
  end
  if X.now - tonumber(args[4]) > LATEST_MS then
    return { 0, 0 }
  end
  local number, leased = host.next_bundle, leased_of(host)
  local stub = { number = string.format('%.0f', number), id = id, count = 0, ages = {}, counted = host.sections == 1 }
  for at = 5, #args, 2 do
    local raw = redis.call('HGET', key('q', host), args[at])
    if raw and redis.sha1hex(raw) == args[at + 1] then
      local bundle = Queue.decode(host, args[at], raw)
      if may_leave(bundle, leased) then
        local urls = Queue.items(bundle)
        read_notes(host, urls)
        for _, url in ipairs(urls) do
          local kind, rank, depth = Known.where(host, url.fp)
          kind = (kind == Known.IN_QUEUE or kind == Known.QUEUE_OUTSIDE) and Known.QUEUE_OUTSIDE or Known.SHELF_OUTSIDE
          Known.note(host, url.fp, kind, rank, depth, number)
        end
        local age = Queue.age_of(bundle.admitted)
        stub.ages[age] = (stub.ages[age] or 0) + #urls
        stub.count = stub.count + #urls
        if not stub.member or bundle.member < stub.member then
          stub.member = bundle.member
        end
        redis.call('HDEL', key('q', host), args[at])
        redis.call('ZREM', key('z', host), bundle.member)
      end
    end
  end
  if stub.count > 0 then
    host.next_bundle = number + 1
    stub.member = stub.member:sub(1, -5) .. struct.pack('>I4', number)
    save(host, stub)
    redis.call('ZADD', key('c', host), 0, stub.member)
    redis.call('HSET', X.P .. 'chunks', id, host.name .. '\0' .. stub.number)
    count_outside(host, stub.member, stub.count)
    Shard.count('chunks', 1)
  end
  Shard.close()
  return { stub.count > 0 and 1 or 0, stub.count }
end

-- Coming back

-- Chunks of a host that are to come back by now.
local function due_back(host, found)
  local first, rows = redis.call('ZRANGEBYLEX', key('c', host), '-', '+', 'LIMIT', 0, 1)[1], 0
  while first and rows < ROWS do
    local row = row_of(first)
    local ahead = redis.call('ZLEXCOUNT', key('z', host), '[' .. row, '(' .. first)
    if ahead < wanted_ahead(row) then
      local stub = Queue.load(host, Queue.number_in(first))
      found[#found + 1] = { host.name, stub.number, stub.id }
    end
    rows = rows + 1
    first = redis.call('ZRANGEBYLEX', key('c', host), '(' .. row .. AFTER_ALL, '+', 'LIMIT', 0, 1)[1]
  end
end

-- Whether something of the queue is outside that does not stand behind all that is queued now: it comes here soon.
function Spill.has_before(host)
  for lane = 1, 6 do
    local row = string.char(lane)
    local first = redis.call('ZRANGEBYLEX', key('c', host), '[' .. row, '[' .. row .. AFTER_ALL, 'LIMIT', 0, 1)[1]
    if first and not Queue.is_behind(first) then
      return true
    end
  end
  return false
end

-- What is to be done: where to go on, hosts that may have too much, chunks that are to come back. ARGV: clock, cursor, count
function Spill.look(keys, args)
  Shard.open(keys[1], args[1])
  local step, back = redis.call('HSCAN', X.P .. 'spilled', args[2], 'COUNT', tonumber(args[3])), {}
  for at = 1, #step[2], 2 do
    due_back({ name = step[2][at] }, back)
  end
  return { step[1], redis.call('SRANDMEMBER', X.P .. 'long', HOSTS), back }
end

-- The URLs of a stored bundle that still belong to the chunk of that number.
function Spill.living(host, bundle, number)
  local found, urls = {}, Queue.items(bundle)
  read_notes(host, urls)
  for _, url in ipairs(urls) do
    local kind, rank, _, noted = Known.where(host, url.fp)
    local outside = kind == Known.QUEUE_OUTSIDE or kind == Known.SHELF_OUTSIDE
    if outside and Known.names_chunk(noted, number) then
      url.rank = rank
      found[#found + 1] = url
    end
  end
  return found
end

local function forget(host, stub)
  redis.call('HDEL', key('q', host), stub.number)
  Queue.is_gone(host, stub.number)
  redis.call('ZREM', key('c', host), stub.member)
  redis.call('HDEL', X.P .. 'chunks', stub.id)
  redis.call('ZADD', X.P .. 'returned', string.format('%.0f', X.now), stub.id)
  count_outside(host, stub.member, -stub.count)
  Shard.count('chunks', -1)
end

-- A chunk comes back; one that was here before changes nothing. ARGV: clock, host, number, id, then what was stored of each bundle
function Spill.back(keys, args)
  Shard.open(keys[1], args[1])
  local host = Shard.host(args[2])
  local stub = host and Queue.load(host, args[3])
  if not stub or not stub.spilled or stub.id ~= args[4] then
    return 0
  end
  local count, number = 0, tonumber(args[3])
  forget(host, stub)
  for age, many in pairs(stub.ages) do
    Queue.count_many(host, stub.member, -many, age)
  end
  for at = 5, #args do
    local bundle = Queue.decode(host, '', args[at])
    local urls = Spill.living(host, bundle, number)
    if #urls > 0 then
      local member = bundle.member
      Queue.put_again(host, urls, #member > 13 and member:sub(1, 9) or '', Queue.place_in(member), stub.counted)
      count = count + #urls
    end
  end
  if stub.member:byte(1) == 130 then
    host.trap_at = math.max(1, host.trap_at > 0 and math.min(host.trap_at, X.now) or X.now) -- its shelf is looked at again
  end
  if host.token == 0 and host.reason == 'spilled' then
    Hosts.rest(host)
  else
    Hosts.wake(host)
  end
  Shard.close()
  return count
end

-- What is outside, and is met again

-- One URL leaves a chunk for a place of its own; the copy that is kept outside counts no more.
function Spill.take(host, stub, candidate, rank)
  local age = next(stub.ages)
  if not age then
    return nil -- of several that it may be, this is not the one: the other tells it when it comes back
  end
  stub.ages[age] = stub.ages[age] > 1 and stub.ages[age] - 1 or nil
  stub.count = stub.count - 1
  save(host, stub)
  count_outside(host, stub.member, -1)
  Queue.count_many(host, stub.member, -1, age)
  local url = {
    fp = candidate.fp, tail = candidate.tail, rank = rank, hops = candidate.hops, admitted = Queue.admitted_in(age),
    cycle = X.cycle, via = X.via or '',
  }
  if #stub.member == 13 and stub.counted then
    Queue.leaves_section(host, url)
  end
  return url
end

-- A queued URL that is outside is met again: it comes here where it is nearer, or of a better class, by now.
function Spill.meet(host, stub, candidate, rank, depth)
  local lane, nearer = stub.member:byte(1), math.min(depth, candidate.depth)
  local points = candidate.level and Policy.NOMINAL[candidate.level] or Queue.score(host, rank, nearer, candidate.bonus)
  local level = candidate.level or Policy.level_of(X.rules, points)
  local better = math.min(lane, Policy.lane_of(false, level))
  if better >= lane and nearer >= depth then
    return
  end
  local url = Spill.take(host, stub, candidate, rank)
  if not url then
    return
  end
  Hosts.wake(host, { Queue.enqueue(host, { url }, better, Policy.step_for(X.step, points), nearer, candidate.tie) })
end

-- The bundle of a URL among what was kept of its chunk; nil when it is not there.
function Spill.found(host, raws, first, fingerprint)
  for at = first, #raws do
    local bundle = Queue.decode(host, '', raws[at])
    if Queue.find(bundle, fingerprint) then
      return bundle
    end
  end
  return nil
end

-- URLs on the shelf of a group, and outside, in so many chunks at most; and whether there are more.
function Spill.of_row(host, row, most)
  local count = 0
  local members = redis.call('ZRANGEBYLEX', key('c', host), '[' .. row, '[' .. row .. AFTER_ALL, 'LIMIT', 0, most + 1)
  for at = 1, math.min(#members, most) do
    count = count + Queue.load(host, Queue.number_in(members[at])).count
  end
  return count, #members > most
end

-- Clearing up

-- Chunks that have been back for long enough. ARGV: clock, milliseconds, how many
function Spill.done(keys, args)
  Shard.open(keys[1], args[1])
  local until_at = string.format('%.0f', X.now - tonumber(args[2]))
  return redis.call('ZRANGEBYSCORE', X.P .. 'returned', '-inf', until_at, 'LIMIT', 0, tonumber(args[3]))
end

-- They are deleted. ARGV: clock, ids
function Spill.forget(keys, args)
  Shard.open(keys[1], args[1])
  for at = 2, #args do
    redis.call('ZREM', X.P .. 'returned', args[at])
  end
  return #args - 1
end

-- Of chunks that are kept, those that nobody here knows. ARGV: clock, ids
function Spill.strangers(keys, args)
  Shard.open(keys[1], args[1])
  local found = {}
  for at = 2, #args do
    local id = args[at]
    if redis.call('HEXISTS', X.P .. 'chunks', id) == 0 and not redis.call('ZSCORE', X.P .. 'returned', id) then
      found[#found + 1] = id
    end
  end
  return found
end
