-- Hosts and domains as they are stored: fixed fields, one after the other.
--
-- Most calls read and write several of them, and `struct` makes no table on the way: MessagePack costs five times as much.
-- Of a host, what every link asks for comes first, so that a link to what is known reads that much, and writes it anew
-- without having taken the rest apart. Moments are doubles, as Lua has them. A table is filled in one constructor: one that
-- grows while it is filled costs several times as much.

local GLANCE = '>Bc0I4I4I4I4I4I4' -- domain, buckets, URLs, flagged patterns, two halves of its referrers, URLs over budget
local REST = '>c4dBdBc0dddddI4I4I4I4dI4I4dBI4I4I4I4I4I4I4I4I4I4I4Bc0BdBc0'
local DOMAIN = '>I4I4I4I4I4I4I4dI2c0I4BI4'
local KEY = 21 -- bytes of what a host's place among the ready ones begins with: its lane, and the rest but its name

function Packed.glance(name, raw)
  local domain, buckets, urls, flagged, ref_hi, ref_lo, over_budget, after = struct.unpack(GLANCE, raw)
  return {
    name = name, raw = raw, after = after, domain = domain, buckets = buckets, urls = urls, flagged = flagged,
    ref_hi = ref_hi, ref_lo = ref_lo, over_budget = over_budget, is_glance = true, changed = false,
  }
end

function Packed.of_glance(glance)
  local domain = glance.domain
  return struct.pack(
    GLANCE, #domain, domain, glance.buckets, glance.urls, glance.flagged, glance.ref_hi, glance.ref_lo, glance.over_budget
  ) .. glance.raw:sub(glance.after)
end

local function keys_in(text)
  local keys = {}
  for at = 1, #text, KEY do
    keys[#keys + 1] = text:sub(at, at + KEY - 1)
  end
  return keys
end

-- A host, of which a glance was had.
function Packed.host(glance)
  local tie, token, standing, next_at, reason, free_at, released_at, slept_ms, delay_ms, crawl_delay_ms, fetched, cycle,
    fetched_in_cycle, lied_in, work_since, admitted, fresh, trap_at, over, next_bundle, l1, l2, l3, l4, l5, l6, l7, robots,
    in_traps, for_coverage, settles, sections, elapsed_ms, ready = struct.unpack(REST, glance.raw, glance.after)
  return {
    name = glance.name, raw = glance.raw, was_reason = false, was_put_off = 0, domain = glance.domain,
    buckets = glance.buckets, urls = glance.urls, flagged = glance.flagged, ref_hi = glance.ref_hi, ref_lo = glance.ref_lo,
    tie = tie, token = token, standing = standing, next_at = next_at, reason = reason, free_at = free_at,
    released_at = released_at, slept_ms = slept_ms, delay_ms = delay_ms, crawl_delay_ms = crawl_delay_ms,
    fetched = fetched, cycle = cycle, fetched_in_cycle = fetched_in_cycle, lied_in = lied_in, work_since = work_since,
    admitted = admitted, fresh = fresh, trap_at = trap_at, over = over, next_bundle = next_bundle,
    lanes = { l1, l2, l3, l4, l5, l6, l7 }, robots = robots, shelved = { glance.over_budget, in_traps, for_coverage },
    settles = settles, sections = sections, elapsed_ms = elapsed_ms, ready = keys_in(ready),
  }
end

function Packed.of_host(host)
  local domain, reason, lanes, shelved, settles = host.domain, host.reason, host.lanes, host.shelved, host.settles
  local ready = table.concat(host.ready)
  return struct.pack(
    GLANCE, #domain, domain, host.buckets, host.urls, host.flagged, host.ref_hi, host.ref_lo, shelved[1]
  ) .. struct.pack(
    REST, host.tie, host.token, host.standing, host.next_at, #reason, reason, host.free_at, host.released_at,
    host.slept_ms, host.delay_ms, host.crawl_delay_ms, host.fetched, host.cycle, host.fetched_in_cycle, host.lied_in,
    host.work_since, host.admitted, host.fresh, host.trap_at, host.over, host.next_bundle, lanes[1], lanes[2], lanes[3],
    lanes[4], lanes[5], lanes[6], lanes[7], host.robots, shelved[2], shelved[3], #settles, settles, host.sections,
    host.elapsed_ms, #ready, ready
  )
end

function Packed.domain(name, raw)
  local pages, hosts, hosts_over, useful, ref_hi, ref_lo, looked_for, paused_until, window, errors_in_row, lowered, successes =
    struct.unpack(DOMAIN, raw)
  return {
    name = name, raw = raw, pages = pages, hosts = hosts, hosts_over = hosts_over, useful = useful, ref_hi = ref_hi,
    ref_lo = ref_lo, looked_for = looked_for, paused_until = paused_until, window = window,
    errors_in_row = errors_in_row, lowered = lowered, successes = successes,
  }
end

-- Of a domain that is not taken apart: behind its window come a row of errors and this.
local WINDOW_AT = 7 * 4 + 8

function Packed.lowered(raw)
  local high, low = raw:byte(WINDOW_AT + 1, WINDOW_AT + 2)
  return raw:byte(WINDOW_AT + 2 + high * 256 + low + 4 + 1)
end

function Packed.of_domain(domain)
  return struct.pack(
    DOMAIN, domain.pages, domain.hosts, domain.hosts_over, domain.useful, domain.ref_hi, domain.ref_lo, domain.looked_for,
    domain.paused_until, #domain.window, domain.window, domain.errors_in_row, domain.lowered, domain.successes
  )
end
