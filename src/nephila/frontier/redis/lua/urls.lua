-- Records of the URLs that were asked for, and how a URL is spelled.

Urls.QUEUED, Urls.DELAYED, Urls.DONE, Urls.DROPPED, Urls.DEAD = 0, 1, 2, 3, 4
Urls.COUNTERS = { [2] = 'done', [3] = 'dropped', [4] = 'dead' }

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
  local key = 'r:' .. host.name
  local saved = X.fields[key]
  local raw = saved and saved[fingerprint] or redis.call('HGET', X.P .. key, fingerprint)
  if not raw then
    return nil -- what is noted is another URL's
  end
  local values, _, rank = cmsgpack.unpack(raw), Known.where(host, fingerprint)
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
  Later.set('r:' .. host.name, record.fp, cmsgpack.pack({
    record.state, record.tail, record.level, record.depth, record.hops, record.retries, record.cycle,
    record.admitted, record.via, record.settled, record.reason, record.detail, record.due_at, record.due_reason,
    record.fetched, record.bundle, record.status, record.segment, record.offset, record.finish, record.digest,
    record.etag, record.last_modified, record.page, record.changed_at, record.trail, record.history, record.gone,
  }))
  local ended = record.state >= Urls.DONE and record.cycle or Known.WAITS
  Known.note(host, record.fp, Known.HAS_RECORD, record.rank, record.depth, ended)
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
  Later.add('pend:' .. record.segment, string.format('%.0f', record.finish), name_of(host, record))
  if not X.pends[record.segment] then
    X.pends[record.segment] = true
    redis.call('SADD', X.P .. 'pends', record.segment)
  end
end

function Urls.is_pending(host, record)
  local segment = record.segment
  return segment ~= '' and redis.call('ZSCORE', Later.now('pend:' .. segment), name_of(host, record)) ~= false
end

function Urls.end_pending(host, record)
  Shard.count('pending', -1)
  Later.remove('pend:' .. record.segment, name_of(host, record))
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
