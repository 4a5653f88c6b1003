-- A crawl on its way from one engine to another (nephila.frontier.moving): all that a shard knows, told page by page, and
-- written as it was told.
--
-- Telling goes through hashes by HSCAN, a bounded number of entries a call; who asks leaves out what was told twice.
-- Writing counts as the verbs count; a shard that is written to has no workers, and cannot be opened before all of it
-- is there.

local RECORD = {
  'state', 'tail', 'rank', 'level', 'depth', 'hops', 'retries', 'cycle', 'admitted', 'via', 'settled', 'reason',
  'detail', 'due_at', 'due_reason', 'fetched', 'bundle', 'status', 'segment', 'offset', 'finish', 'digest', 'etag',
  'last_modified', 'page', 'changed_at', 'pending', 'trail', 'history', 'gone',
}
local TALLY = {
  'pattern', 'state', 'barren', 'fetched', 'fresh', 'duplicates', 'repeats', 'errors', 'since_s', 'not_before_s',
  'released', 'poured', 'poured_hour', 'flagged_s', 'example', 'texts', 'shapes', 'hopes',
}

local function values_of(record, fields)
  local values = {}
  for at, field in ipairs(fields) do
    values[at] = record[field]
  end
  return values
end

-- A record as it is told: its fingerprint, and its fields in order.
local function told_record(host, fingerprint)
  local record = Urls.record(host, fingerprint)
  record.pending = record.state == Urls.DONE and Urls.is_pending(host, record) and 1 or 0
  return { fingerprint, values_of(record, RECORD) }, record
end

-- Telling. ARGV: clock, then as it is said

-- What holds for the shard as a whole.
function Move.whole(keys, args)
  Shard.open(keys[1], args[1])
  local count = redis.call('HMGET', X.P .. 'count', 'draws', 'reserved', 'pages', 'pages:' .. X.cycle)
  return {
    X.now, X.cycle, X.mean, X.draws, X.tokens, X.covered and 1 or 0, Shard.sweeps() and 1 or 0, X.last,
    tonumber(count[1] or 0), tonumber(count[2] or 0), tonumber(count[3] or 0), tonumber(count[4] or 0),
    redis.call('HLEN', X.P .. 'lease'),
  }
end

-- A page of a hash: answers where to go on, and what `tell` makes of each entry.
local function page(key, args, tell)
  local step, found = redis.call('HSCAN', X.P .. key, args[2], 'COUNT', tonumber(args[3])), {}
  for at = 1, #step[2], 2 do
    found[#found + 1] = tell(step[2][at], step[2][at + 1])
  end
  return { step[1], found }
end

-- cursor, count
function Move.domains(keys, args)
  Shard.open(keys[1], args[1])
  return page('domains', args, function(name)
    local one = Shard.domain(name)
    X.domains[name] = nil
    return {
      name, one.pages, one.hosts, one.hosts_over, one.useful, one.ref_hi, one.ref_lo, one.looked_for,
      one.paused_until, one.window, one.errors_in_row, one.lowered, one.successes,
    }
  end)
end

-- cursor, count
function Move.hosts(keys, args)
  Shard.open(keys[1], args[1])
  return page('hosts', args, function(name)
    local one = Shard.host(name)
    X.hosts[name] = nil
    local free_at = one.free_at > 0 and one.free_at + X.slept_ms - one.slept_ms or 0
    return {
      name, one.fetched, one.cycle, one.fetched_in_cycle, one.lied_in, free_at, one.released_at, one.delay_ms,
      one.crawl_delay_ms, one.elapsed_ms, one.work_since, one.admitted, one.fresh, one.ref_hi, one.ref_lo,
      one.trap_at, one.over, one.token == 0 and one.reason or '', one.token == 0 and one.standing or 0, one.next_at,
      one.robots,
    }
  end)
end

-- Chunks of a host that are kept outside, after one of them. host, after, count
function Move.chunks(keys, args)
  Shard.open(keys[1], args[1])
  local host, found = { name = args[2] }, {}
  for at, member in ipairs(redis.call(
    'ZRANGEBYLEX', X.P .. 'c:' .. host.name, args[3] == '' and '-' or '(' .. args[3], '+', 'LIMIT', 0, tonumber(args[4])
  )) do
    local stub = Queue.load(host, Queue.number_in(member))
    found[at] = { member, stub.number, stub.id, stub.count }
  end
  return found
end

-- The bundles of such a chunk, as far as they still count. host, number, then what was kept of each
function Move.chunk(keys, args)
  Shard.open(keys[1], args[1])
  local host, found = Shard.host(args[2]), {}
  for at = 4, #args do
    local bundle, urls = Queue.decode(host, '', args[at]), {}
    for position, url in ipairs(Spill.living(host, bundle, tonumber(args[3]))) do
      urls[position] = { url.fp, url.rank, url.tail }
    end
    found[#found + 1] = { bundle.member, 0, bundle.hops, bundle.admitted, bundle.cycle, bundle.via, urls }
  end
  return found
end

-- The bundles of a host after one of them, with the records of those that have one. host, after, count
function Move.queue(keys, args)
  Shard.open(keys[1], args[1])
  local host, found = Shard.host(args[2]), {}
  for _, member in ipairs(redis.call(
    'ZRANGEBYLEX', X.P .. 'z:' .. host.name, args[3] == '' and '-' or '(' .. args[3], '+', 'LIMIT', 0, tonumber(args[4])
  )) do
    local bundle, urls = Queue.load(host, Queue.number_in(member)), {}
    for at, url in ipairs(Queue.items(bundle)) do
      if bundle.asked == 1 then
        urls[at] = told_record(host, url.fp)
      else
        urls[at] = { url.fp, Queue.rank_of(host, url), url.tail }
      end
    end
    found[#found + 1] = { member, bundle.asked, bundle.hops, bundle.admitted, bundle.cycle, bundle.via, urls }
  end
  return found
end

-- The records of a host that wait in no queue. host, cursor, count
function Move.records(keys, args)
  Shard.open(keys[1], args[1])
  local host = Shard.host(args[2])
  local step, found = redis.call('HSCAN', Later.all_now('r:' .. host.name), args[3], 'COUNT', tonumber(args[4])), {}
  for at = 1, #step[2], 2 do
    local told, record = told_record(host, step[2][at])
    if record.bundle == 0 then
      found[#found + 1] = told
    end
  end
  return { step[1], found }
end

-- What else belongs to a host: robots.txt files that wait, tallies. host
function Move.rest_of_host(keys, args)
  Shard.open(keys[1], args[1])
  local host, robots, tallies = Shard.host(args[2]), {}, {}
  local all = redis.call('HGETALL', X.P .. 'rb:' .. host.name)
  for at = 1, #all, 2 do
    local entry = cmsgpack.unpack(all[at + 1])
    robots[#robots + 1] = { all[at], entry[1], entry[2] }
  end
  for at, tally in ipairs(Traps.all(host)) do
    tallies[at] = values_of(tally, TALLY)
  end
  return { robots, tallies }
end

-- cursor, count
function Move.origins(keys, args)
  Shard.open(keys[1], args[1])
  return page('origins', args, function(name)
    return { name, Settle.origin(name), redis.call('HGET', X.P .. 'rules', name) or '' }
  end)
end

-- cursor, count
function Move.refused(keys, args)
  Shard.open(keys[1], args[1])
  return page('refused', args, function(name, raw)
    return { name, cmsgpack.unpack(raw) }
  end)
end

-- Writing

local Load = {}

function Load.whole(told)
  X.cycle = told.cycle
  Shard.set('cycle', told.cycle)
  Shard.set('mean', told.mean_rank)
  Shard.set('draws', told.draws)
  Shard.set('tokens', told.tokens)
  if told.covered then
    Shard.set('covered', '1')
  end
  if told.sweeping then
    Shard.set('sweep', 'begin')
  end
  Shard.count('draws', told.counted.draws)
  Shard.count('reserved', told.counted.reserved)
  Shard.count('pages', told.counted.pages)
  Shard.count('pages:' .. told.cycle, told.counted.pages_in_cycle)
end

function Load.domain(told)
  local domain = Shard.domain(told.name)
  for field, value in pairs(told) do
    domain[field] = value
  end
  if told.pages > 0 then
    Shard.count('domains', 1)
  end
end

function Load.host(told, tie)
  if Shard.host(told.name) then
    error({ err = 'TWICE ' .. told.name })
  end
  local host = Shard.new_host(told.name, told.domain, tie)
  for field, value in pairs(told) do
    host[field] = value
  end
  host.slept_ms = X.slept_ms
  if host.over == 1 then
    redis.call('ZADD', X.P .. 'over', 0, host.domain .. '\0' .. tie .. host.name)
  end
end

-- All of a host is there: it rests one full delay, or is put off as it was.
function Load.rest(told)
  local host = Shard.host(told.name)
  host.free_at = math.max(host.free_at, X.now + Hosts.delay_of(host) + 1)
  if told.parked and told.reason ~= '' then
    Hosts.park(host, told.reason)
  elseif told.reason ~= '' and told.until_at > 0 then
    Hosts.wait(host, math.max(told.until_at, host.free_at), told.reason)
  else
    Hosts.rest(host)
  end
end

-- URLs that were never asked for and stand at one place, in the queue or on a shelf.
function Load.bundle(told, items)
  local host = Shard.host(told.host)
  local place = Policy.pack_place(told.lane, told.step, told.depth, items:sub(1, 4))
  local urls, at = {}, 5
  while at <= #items do
    local length = struct.unpack('>I2', items:sub(at + 17, at + 18))
    urls[#urls + 1] = {
      fp = items:sub(at, at + 15), rank = items:byte(at + 16), tail = items:sub(at + 19, at + 18 + length),
      hops = told.hops, admitted = told.admitted, cycle = told.cycle, via = told.via, is_new = true,
    }
    at = at + 19 + length
  end
  local since = host.work_since
  Move.put(host, urls, told, place)
  if since > 0 then
    host.work_since = since
  end
end

-- Put URLs that belong together at a place of the queue, or of a shelf.
function Move.put(host, urls, told, place)
  if told.shelf == '' then
    Queue.put_at(host, urls, '', place)
    return
  end
  local by_group, order = {}, {}
  for _, url in ipairs(urls) do
    local group = told.group
    if group == 'section' then
      group = Queue.section_of(url.tail)
    elseif group == '' then
      group = '\0\0\0\0\0\0\0\0'
    else
      group = Traps.unhex(group)
    end
    if not by_group[group] then
      by_group[group] = {}
      order[#order + 1] = group
    end
    table.insert(by_group[group], url)
  end
  for _, group in ipairs(order) do
    Queue.put_at(host, by_group[group], string.char(128 + Queue.SHELF[told.shelf]) .. group, place)
  end
end

local COUNTED = { done = Urls.DONE, dropped = Urls.DROPPED, dead = Urls.DEAD, delayed = Urls.DELAYED, queued = Urls.QUEUED }

-- A URL that was asked for. `raw` is its fingerprint, the tie of its place, and its digest.
function Load.record(told, raw)
  local host = Shard.host(told.host)
  local record = Urls.new_record({
    fp = raw:sub(1, 16), tail = told.tail, rank = told.rank, level = told.level, depth = told.depth, hops = told.hops,
    cycle = told.cycle, admitted = told.admitted, via = told.via,
  })
  for field, value in pairs(told.fields) do
    record[field] = value
  end
  record.digest = raw:sub(21)
  Known.came(host, 1)
  Urls.enter(host, record, COUNTED[told.state])
  if told.state == 'queued' then
    local url = {
      fp = record.fp, tail = '', asked = true, hops = 0, admitted = record.admitted, cycle = 0, via = '',
    }
    local since = host.work_since
    Urls.save(host, record)
    Queue.put_at(host, { url }, '', Policy.pack_place(told.lane, told.step, math.min(told.depth, 255), raw:sub(17, 20)))
    if since > 0 then
      host.work_since = since
    end
    record.bundle = url.put_in
  end
  if told.due_at > 0 then
    Urls.delay(host, record, told.due_at, told.due_reason)
  end
  if told.pending then
    Urls.hold_pending(host, record)
  end
  Shard.count('gone', record.gone)
  Urls.save(host, record)
end

-- `rings` are the texts, then the shapes.
function Load.tally(told, rings)
  local tally = told.tally
  tally.texts, tally.shapes = rings:sub(1, told.texts), rings:sub(told.texts + 1)
  tally.group = Traps.unhex(tally.group)
  Traps.save(Shard.host(told.host), tally, 0)
end

function Load.robots(told)
  local host = Shard.host(told.host)
  redis.call('HSET', X.P .. 'rb:' .. host.name, told.origin, cmsgpack.pack({ told.url, told.hops }))
  host.robots = host.robots + 1
end

function Load.origin(told, body)
  Settle.put_origin(told.name, told.values, body)
end

function Load.refused(told, fingerprint)
  local note = cmsgpack.pack({ told.url, told.reason, told.detail, told.at_s, told.via })
  redis.call('HSETNX', X.P .. 'refused', told.host .. '\0' .. fingerprint, note)
end

function Load.mark(told)
  redis.call('HSET', X.P .. 'marks', told.segment, string.format('%.0f', told.upto))
end

function Load.orphan(told)
  redis.call('SADD', X.P .. 'orphaned', told.segment)
  redis.call('SADD', X.P .. 'orphans:' .. told.segment, string.format('%.0f', told.offset))
end

-- clock, then for each row: what it is, what is told of it (JSON), bytes that belong to it
function Move.load(keys, args)
  Shard.open(keys[1], args[1])
  for at = 2, #args, 3 do
    Load[args[at]](cjson.decode(args[at + 1]), args[at + 2])
  end
  Shard.close()
  return #args
end
