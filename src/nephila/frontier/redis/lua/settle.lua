-- settle: end tasks under their token, links included, in one act.

local USEFUL_AFTER = 3 -- pages with new content that make a host count for its domain's budget of hosts
local LONGEST_GAP_S = 30 * 86400
local REMEMBERED = 4 -- calls that a host remembers, so that a repeated one is known again
local byte, find = string.byte, string.find
local STRAINED = { timeout = true, reset = true, connect = true, http_429 = true }

-- What an outcome says of a server's health; nil when the server was not asked.
local function seen_of(outcome)
  if outcome.kind == 'done' or outcome.kind == 'respelled' then
    return 'ok'
  elseif outcome.kind == 'retry' or outcome.kind == 'dead' then
    if outcome.reason == 'http_5xx' then
      return 'server_error'
    end
    return STRAINED[outcome.reason] and 'error' or nil
  elseif outcome.kind == 'learned' then
    return outcome.rules.kind == 'unavailable' and 'error' or 'ok'
  end
  return nil
end

function Settle.check_health(host, outcome)
  local seen = seen_of(outcome)
  if seen then
    local domain = Shard.domain(host.domain)
    if Policy.after_answer(domain, seen, X.rules) then
      domain.paused_until = X.now + X.rules.pause_ms
    end
  end
end

-- Pages

-- What the links of a page bring their targets, and what is left to the page (R1).
local function share_out(host, record, settlement)
  local outcome = settlement.outcome
  local source = {
    via = Urls.spell(host, record.tail), salt = outcome.salt, bit = outcome.bit, domain = host.domain,
    first_rank = Policy.SEED_RANK,
  }
  local outlinks, weight = math.max(outcome.outlinks, settlement.links), 1
  if outlinks == 0 then
    return source
  end
  if record.fetched > 0 then
    local gap = math.max(X.wall_s - record.history[4], 0)
    weight = math.min(gap / LONGEST_GAP_S, 1) / 2
  end
  source.share = Policy.share(record.rank, outlinks, Shard.domain(host.domain).pages + 1, weight)
  if record.fetched > 0 then
    record.rank = Policy.kept(record.rank, weight, outcome.salt)
  end
  return source
end

local function store(host, record, settlement)
  local outcome, had = settlement.outcome, record.segment ~= ''
  record.fetched = record.fetched + 1
  if outcome.changed or not had then
    record.changed_at = X.wall_s
  end
  if settlement.digest ~= '' then
    record.digest = settlement.digest
  elseif outcome.changed then
    record.digest = ''
  end
  record.status, record.segment, record.offset, record.finish =
    outcome.status, outcome.segment, outcome.offset, outcome.finish
  record.etag, record.last_modified, record.page = outcome.etag, outcome.last_modified, outcome.page and 1 or 0
  if not X.lent then -- who fetches for us keeps it where he likes: it is no segment's of ours
    Urls.hold_pending(host, record)
  end
end

local function count(host, outcome)
  host.fetched = host.fetched + 1
  if outcome.lied then
    host.lied_in = X.cycle
  end
  if not outcome.page then
    return
  end
  if host.cycle ~= X.cycle then
    host.cycle, host.fetched_in_cycle = X.cycle, 0
  end
  host.fetched_in_cycle = host.fetched_in_cycle + 1
  local domain = Shard.domain(host.domain)
  domain.pages = domain.pages + 1
  Shard.count('pages', 1)
  Shard.count('pages:' .. X.cycle, 1)
  if domain.pages == 1 then
    Shard.count('domains', 1)
    local domains = tonumber(redis.call('HGET', X.P .. 'count', 'domains') or 0) + X.counts.domains
    local wanted = X.rules.target_domains
    if wanted > 0 and domains + X.rules.domains_elsewhere >= wanted then
      X.covered = true
      Shard.set('covered', '1')
    end
  end
end

-- Plan the next visit (R2), and tell what is gone (R5).
local function plan(host, record, outcome)
  local planned = outcome.plan
  if not planned then
    return
  end
  local gone = planned.gone and 1 or 0
  Shard.count('gone', gone - record.gone)
  record.history, record.gone = planned.history, gone
  record.reason = gone == 1 and 'gone' or ''
  Urls.delay(host, record, X.now + planned.wait_s * 1000, 'due')
end

-- Write what became of a page; answers it as the source of its links.
local function end_page(host, record, settlement)
  local outcome = settlement.outcome
  local source = {
    via = Urls.spell(host, record.tail), bit = -1, domain = host.domain, first_rank = Policy.SEED_RANK, salt = 0,
  }
  record.cycle, record.settled, record.reason, record.detail = X.cycle, X.wall_s, '', ''
  if outcome.kind == 'done' then
    Urls.enter(host, record, Urls.DONE)
    source = share_out(host, record, settlement)
    store(host, record, settlement)
    count(host, outcome)
    plan(host, record, outcome)
  elseif outcome.kind == 'retry' then
    Urls.enter(host, record, Urls.DELAYED)
    record.retries = record.retries + 1
    record.reason, record.detail = 'retry', outcome.detail ~= '' and outcome.reason .. ': ' .. outcome.detail or outcome.reason
    Urls.delay(host, record, X.now + outcome.wait_ms, 'retry')
  elseif outcome.kind == 'deferred' then
    Urls.enter(host, record, Urls.DELAYED)
    record.reason = outcome.reason
    Urls.delay(host, record, X.now + outcome.wait_ms, outcome.reason)
  elseif outcome.kind == 'respelled' then
    table.insert(record.trail, settlement.url)
    record.hops, record.tail = record.hops + 1, outcome.tail
    Grades.take(host.name, outcome.grade or Grades.NONE)
    Queue.put_back(host, record, record.level)
    source.via = Urls.spell(host, record.tail)
  else
    Urls.enter(host, record, outcome.kind == 'dead' and Urls.DEAD or Urls.DROPPED)
    record.reason, record.detail = outcome.reason, outcome.detail
  end
  return source
end

-- How many of the candidates at these positions a page pours out: a 0 or a 1 for each candidate of its host says so.
local function count_poured(flags, positions)
  if not find(flags, '1', 1, true) then
    return 0
  end
  local count = 0
  for at = 1, #positions do
    count = count + (byte(flags, positions[at]) == 49 and 1 or 0)
  end
  return count
end

-- What a fetch brought under its patterns; whether it was new content.
local function observe(host, settlement, news, first)
  local outcome = settlement.outcome
  if outcome.kind ~= 'done' then
    return false
  end
  local missing = outcome.status >= 400 and outcome.status < 500
  if not first or host.fetched < X.rules.tallied_from or not (outcome.page or missing) or not settlement.seen.patterns then
    return first and outcome.page and not outcome.duplicate
  end
  local seen = settlement.seen
  local own, links, abroad = nil, {}, 0
  for at, new in ipairs(news) do
    if settlement.groups[at].name == host.name and not settlement.groups[at].many then
      own, links = settlement.groups[at], new
    else
      abroad = abroad + #new
    end
  end
  seen.inside = own and outcome.poured ~= '' and count_poured(outcome.poured, links) or 0
  return Traps.judge(host, seen, own, links, abroad + outcome.abroad)
end

local function end_page_task(host, settlement)
  local record = settlement.record
  if record.is_new then
    local bundle = record.bundle_of
    record.is_new, record.bundle_of = nil, nil
    Queue.take(host, bundle, record.fp)
  else
    Queue.take_record(host, record)
  end
  local source = end_page(host, record, settlement)
  local first = record.fetched == 1
  Urls.save(host, record)
  local added, known, cooling, news = Admit.all(settlement.groups, source)
  if Policy.gives_back(settlement.outcome, added) then
    host.admitted = math.max(0, host.admitted - 1)
  end
  Admit.refuse(settlement.refusals, Urls.spell(host, record.tail))
  Settle.check_health(host, settlement.outcome)
  if observe(host, settlement, news, first) then
    host.fresh = host.fresh + 1
    if host.fresh == USEFUL_AFTER then
      local domain = Shard.domain(host.domain)
      domain.useful = domain.useful + 1
      Shelves.take_on_hosts(host.domain)
    end
  end
  local kind = settlement.outcome.kind
  if kind ~= 'retry' and kind ~= 'deferred' and kind ~= 'respelled' then
    Shelves.look_further(host)
  end
  Shelves.refill(host)
  return added, known, cooling
end

-- The call

-- What is known of a page of a lease; one that was never asked for is taken out of its bundle when it ends.
local function record_of(host, lease, fp)
  local kind, rank, _, number = Known.where(host, fp) -- it was read with the buckets of the links
  local record = kind == Known.HAS_RECORD and Urls.record(host, fp)
  if not record then
    local bundle = Claim.bundle_of(host, lease, fp, kind, number)
    local url = Queue.find(bundle, fp)
    url.rank = rank
    record = Urls.new_record(url)
    record.is_new, record.bundle_of = true, bundle
  end
  return record
end

-- The same of a page that was looked at, after others of its call have ended: what is leased stays in its bundle.
local function record_again(host, lease, one)
  local record = one.record
  local kind, rank = Known.where(host, one.fp)
  if kind == Known.IN_QUEUE and record.is_new and record.bundle_of.items:find(one.fp, 1, true) then
    record.rank = rank
    return record
  end
  return record_of(host, lease, one.fp)
end

-- Whether every task is (still) this lease's, and named once; what is known of each is read.
local function is_its_to_settle(host, lease, settlements)
  local left = {}
  for _, fp in ipairs(lease[4]) do
    left[fp] = true
  end
  if #settlements > 1 then
    Queue.read_all(host, lease[7])
  end
  for _, one in ipairs(settlements) do
    if one.origin then
      if lease[3] ~= one.origin then
        return false
      end
    elseif not left[one.fp] then
      return false
    else
      left[one.fp] = nil
      one.record = record_of(host, lease, one.fp)
    end
  end
  return true
end

local function lacks_patterns(host, settlements)
  local lacking, fetched = false, host.fetched
  for _, one in ipairs(settlements) do
    lacking = Admit.lacks_patterns(one.groups) or lacking
    local outcome = one.outcome
    if outcome.kind == 'done' and one.fp then
      fetched = fetched + 1 -- by the time that this one is looked at
      one.seen = {
        url = one.url, patterns = {}, found_on = outcome.found_on, text = one.text, shape = one.shape,
        near = outcome.near, outlinks = outcome.outlinks, duplicate = outcome.duplicate,
        error = outcome.status >= 400 and outcome.status < 500,
      }
      if fetched >= X.rules.tallied_from and one.record.fetched == 0 and (outcome.page or one.seen.error) then
        one.seen.patterns = X.patterns[one.url] -- whoever gives none is not counted
        if one.seen.patterns and Traps.needs_links(host, one.seen) then
          for _, group in ipairs(one.groups) do
            for _, tail in ipairs(group.name == host.name and Links.tails(group) or {}) do
              lacking = Traps.lacks(host, tail) or lacking
            end
          end
        end
      end
    end
  end
  return lacking
end

-- What a caller may leave out of a page that is done.
local function complete(outcome)
  outcome.salt, outcome.bit, outcome.outlinks = outcome.salt or 0, outcome.bit or -1, outcome.outlinks or 0
  outcome.etag, outcome.last_modified = outcome.etag or '', outcome.last_modified or ''
  outcome.poured, outcome.found_on = outcome.poured or '', outcome.found_on or {}
  outcome.abroad = outcome.abroad or 0
end

local function read_settlements(head)
  for _, one in ipairs(head.settlements) do
    local name = Admit.next()
    one.links, one.refused, one.outcome.detail = one.links or 0, one.refused or 0, one.outcome.detail or ''
    if one.outcome.kind == 'done' then
      complete(one.outcome)
    end
    if one.outcome.robots then
      one.origin, one.body = name, Admit.next()
    else
      one.fp, one.digest, one.text, one.shape = name, Admit.next(), Admit.next(), Admit.next()
    end
    one.groups, one.refusals = Admit.read_groups(one.groups or 0), Admit.read_refusals(one.refused)
  end
  return head.settlements
end

local function release_host(host, release, served)
  if served then
    host.work_since = math.max(1, X.now) -- its robots.txt alone is no service
  end
  host.delay_ms, host.crawl_delay_ms, host.elapsed_ms = release.delay_ms, release.crawl_delay_ms, release.elapsed_ms
  -- The answer ended within this millisecond, not at its beginning: round up.
  Hosts.free(host, X.now + release.wait_ms + (release.wait_ms > 0 and 1 or 0))
  if release.reason and host.standing == Hosts.WAITING then
    Hosts.wait(host, host.free_at, release.reason)
  end
end

-- Read all that these settlements will ask for: hosts, their domains, and the buckets of the URLs and their links.
local function read_ahead(name, settlements)
  local named, domains, lists, own = { { name = name } }, {}, {}, {}
  for _, one in ipairs(settlements) do
    for _, group in ipairs(one.groups) do
      named[#named + 1] = group
    end
  end
  Shard.glance_all(named)
  local host = Shard.glance(name)
  if not host then
    return
  end
  domains[1] = host.domain
  for at = 2, #named do
    local group = named[at]
    group.host = Shard.glance(group.name) or false
    domains[at] = group.domain
    if group.host then
      lists[#lists + 1] = Links.look_up(group.host, group)
    end
  end
  for _, one in ipairs(settlements) do
    if one.fp then
      own[#own + 1] = Known.bucket_of(host, one.fp)
    end
  end
  lists[#lists + 1] = own
  Known.fetch(lists)
  Shard.read_domains(domains)
end

-- The answer to a call whose lease is lost or does not have these tasks (any more). One that is repeated may have ended
-- them itself, longer ago than its host remembers: then its records are the pages' newest.
local function refuse(host, again, settlements)
  local ended = 0
  for _, one in ipairs(host and again and settlements or {}) do
    if one.outcome.kind == 'done' then
      local record = Urls.record(host, one.fp)
      if not record or record.segment ~= one.outcome.segment or record.offset ~= one.outcome.offset then
        return { 'OK', 0, 0, 0, 0 }
      end
      ended = 1
    end
  end
  return { 'OK', ended, 0, 0, 0 }
end

-- ARGV: clock, token, host, request, again (1 when it may have been done before), header, then what belongs to each
function Settle.call(keys, args)
  Shard.open(keys[1], args[1])
  local token, request, again = args[2], args[4], args[5] == '1'
  local head = Shard.header(args[6])
  Admit.begin(args, 7)
  local settlements = read_settlements(head)
  read_ahead(args[3], settlements)
  local host = Shard.host(args[3])
  if host and again and host.settles:find(request, 1, true) then
    return { 'OK', 1, 0, 0, 0 }
  end
  local raw = redis.call('HGET', X.P .. 'lease', token)
  if not raw or not host then
    return refuse(host, again, settlements)
  end
  local lease = cmsgpack.unpack(raw)
  X.lent = head.holder ~= nil
  Traps.given(head.patterns)
  if lease[1] ~= host.name or (head.holder and lease[5] ~= head.holder) or not is_its_to_settle(host, lease, settlements) then
    return refuse(host, again, settlements)
  end
  for _, one in ipairs(settlements) do
    if one.outcome.kind == 'wrong' then
      return { 'WRONG', one.outcome.why }
    end
  end
  local policy = Shard.policy(host.domain)
  for _, one in ipairs(settlements) do
    local planned = one.outcome.plan
    if planned and (planned.tier ~= policy.tier or planned.recrawl_s ~= (policy.recrawl_s or -1)) then
      return { 'POLICY', policy.tier, policy.recrawl_s and tostring(policy.recrawl_s) or '' }
    end
  end
  if lacks_patterns(host, settlements) then
    return { 'PATTERNS', X.lacking }
  end
  local added, known, cooling, served, each = 0, 0, 0, false, {}
  for _, one in ipairs(settlements) do
    local a, k, c
    if one.origin then
      lease[3] = ''
      a, k, c = Settle.end_robots(host, one)
    else
      if served then -- the links of another page of this call may have raised its rank, or moved it
        one.record = record_again(host, lease, one)
      end
      for at, fp in ipairs(lease[4]) do
        if fp == one.fp then
          table.remove(lease[4], at)
          table.remove(lease[7], at)
          break
        end
      end
      X.settling = lease -- what is left of it
      a, k, c = end_page_task(host, one)
      served = true
    end
    added, known, cooling = added + a, known + k, cooling + c
    if #settlements > 1 then
      each[#each + 1], each[#each + 2], each[#each + 3] = a, k, c
    end
  end
  if head.release then
    redis.call('HDEL', X.P .. 'lease', token)
    redis.call('ZREM', X.P .. 'lends', token)
    release_host(host, head.release, served)
  else
    redis.call('HSET', X.P .. 'lease', token, cmsgpack.pack(lease))
  end
  host.settles = (host.settles .. request):sub(-8 * REMEMBERED)
  Shard.close()
  return { 'OK', 1, added, known, cooling, each }
end

-- What a settle in another shard says of this one: rules of an origin, a robots.txt that waits here.
-- ARGV: clock, header, body or tie
function Settle.elsewhere(keys, args)
  Shard.open(keys[1], args[1])
  local head = cmsgpack.unpack(args[2])
  if head.learned then
    Settle.learn(head.learned, args[3], head.crawl_delay_ms)
  end
  if head.moved then
    Settle.moved(head.moved)
  end
  if head.target then
    head.target.tie = args[3]
    Settle.queue_robots(head.target)
  end
  Shard.close()
  return { 'OK' }
end
