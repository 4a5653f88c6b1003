-- The pure rules: score, rank, budget, health, order. Twins of `nephila.frontier.score`, `rank`, `budget`, `health`, `order`.
--
-- What must stay true: the same numbers in, the same numbers out as in Python; the contract suite and the model
-- comparison hold both against the plain engine.


local TOP_SCORE = 100
local RANKS, OF_ONE, PER_DOUBLING, FINE = 128, 56, 2, 4
local LAST_STEP = (RANKS - 1) * FINE
local MANY = 3 * PER_DOUBLING * FINE
local CASH = {}
for rank = 0, RANKS - 1 do
  CASH[rank] = 2 ^ ((rank - OF_ONE) / PER_DOUBLING)
end
local NOMINAL = { [0] = 100, [1] = 75, [2] = 35, [3] = 10 }
Policy.NOMINAL = NOMINAL
Policy.SEED_RANK = OF_ONE
Policy.FIRST_MEAN = (OF_ONE - 5 * PER_DOUBLING) * 65536

local TIER_POINTS = { high = 20, low = -20 }

-- Lanes and steps

function Policy.lane_of(due, level)
  return level == 0 and 0 or (due and 3 or 0) + level
end

function Policy.level_of_lane(lane)
  return lane == 0 and 0 or (lane - 1) % 3 + 1
end

function Policy.step_for(now_step, score)
  return math.min(now_step + TOP_SCORE - score, 0xFFFFFF)
end

function Policy.effective_lane(lane, step, now_step, rules, lowered)
  if lane == 0 then
    return 0
  end
  local score = math.max(0, math.min(TOP_SCORE, now_step + TOP_SCORE - step))
  local level = score >= rules.high_from and 1 or score >= rules.medium_from and 2 or 3
  level = math.min(3, math.min(level, (lane - 1) % 3 + 1) + lowered)
  return (lane > 3 and 3 or 0) + level
end

function Policy.pack_place(lane, step, depth, tie)
  return struct.pack('>I4Bc4', lane * 16777216 + step, math.min(depth, 255), tie)
end

-- lane, step, depth, tie
function Policy.read_place(place)
  local number, depth, tie = struct.unpack('>I4Bc4', place)
  local lane = math.floor(number / 16777216)
  return lane, number % 16777216, depth, tie
end

-- Which of the lanes with a ready host goes next; `present` is in rising order.
function Policy.draw_lane(present, draw, rules)
  if present[1] == 0 or #present == 1 then
    return present[1]
  end
  local new, due = {}, {}
  for _, lane in ipairs(present) do
    table.insert(lane <= 3 and new or due, lane)
  end
  if #new > 0 and #due > 0 then
    local point = Arith.point(draw, rules.flips[1], rules.flips[2], rules.new_share + rules.due_share)
    present = point < rules.new_share and new or due
  end
  local total = 0
  for _, lane in ipairs(present) do
    total = total + rules.shares[(lane - 1) % 3 + 1]
  end
  local point = Arith.point(draw, rules.flips[3], rules.flips[4], total)
  for _, lane in ipairs(present) do
    point = point - rules.shares[(lane - 1) % 3 + 1]
    if point < 0 then
      return lane
    end
  end
  return present[#present]
end

function Policy.reserved(draw, rules)
  return Arith.point(draw, rules.flips[5], rules.flips[6], 10000) < rules.reserve * 10000
end

-- Score

function Policy.score(rules, authority, depth, bonus, freshness, tier)
  local points = bonus
  if authority > 0 then
    points = points + (authority >= 1 and rules.authority or Arith.round(authority * rules.authority))
  end
  local near = rules.depth - rules.depth_step * depth
  if near > 0 then
    points = points + near
  end
  if freshness > 0 then
    points = points + (freshness >= 1 and rules.freshness or Arith.round(freshness * rules.freshness))
  end
  if tier == 'news' then
    points = points + rules.news
  else
    points = points + (TIER_POINTS[tier] or 0)
  end
  return math.max(0, math.min(100, points))
end

function Policy.level_of(rules, score)
  return score >= rules.high_from and 1 or score >= rules.medium_from and 2 or 3
end

-- history: interval_s, visits, changes, last_s, gone, gone_since_s; then period_s and shape, if somebody has kept them
function Policy.freshness(history, now_s)
  local interval, visits, changes, last, gone = history[1], history[2], history[3], history[4], history[5]
  if interval <= 0 or visits <= 0 or gone ~= 0 then
    return 0
  end
  local period, shape = history[7] or 0, (history[8] or 0) / 100
  if shape > 0 and period > 0 then
    return 1 - (1 + math.max(now_s - last, 0) / (shape * period)) ^ -shape
  end
  local compared = visits - 1
  local unchanged = math.max(compared - changes, 0)
  local elapsed = math.max(now_s - last, 0)
  return 1 - ((unchanged + 0.5) / (compared + 1)) ^ (elapsed / interval)
end

-- Plans

local PRICES = { high = 1 / 16, news = 1 / 16, low = 4 }
local FIRST = { high = 0.25, low = 2 }

local function within(terms, interval)
  return math.max(terms.min_s, math.min(Arith.round(interval), terms.max_s))
end

local function paying(terms, rate, tier, home)
  local price = terms.price_s * (PRICES[tier] or 1)
  if tier == 'news' and home then
    price = math.min(price, terms.news_home_s)
  end
  return within(terms, price / 2 * (1 + math.sqrt(1 + 4 / (rate * price))))
end

-- The interval of a page that was planned under other terms; 0 where nothing was planned. Twin of `SimpleRecrawl.revised`.
function Policy.revised(terms, history, tier, fixed_s, home)
  local chosen, visits, period, shape = history[1], history[2], history[7] or 0, (history[8] or 0) / 100
  if chosen <= 0 then
    return 0
  elseif history[5] ~= 0 then
    return math.min(math.max(chosen, terms.min_s), terms.gone_max_s)
  elseif fixed_s then
    return math.max(1, Arith.round(fixed_s))
  elseif visits > 1 then
    local known = terms.estimated and shape > 0 and period > 0
    return math.min(chosen, known and paying(terms, shape / (shape * period), tier, home) or terms.max_s)
  elseif chosen == period then -- its site's word
    return math.min(chosen, terms.max_s)
  end
  local first = tier == 'news' and home and terms.news_home_s or terms.first_s * (FIRST[tier] or 1)
  return math.min(chosen, within(terms, first))
end

-- Rank

local function entry_of(cash)
  if cash <= CASH[0] then
    return 0
  end
  if cash >= CASH[RANKS - 1] then
    return (RANKS - 1) * 4294967296
  end
  local low = math.floor(Arith.log2(cash) * PER_DOUBLING + OF_ONE)
  if cash < CASH[low] then
    low = low - 1
  elseif cash >= CASH[low + 1] then
    low = low + 1
  end
  local above = (cash - CASH[low]) / (CASH[low + 1] - CASH[low])
  return low * 4294967296 + math.floor(above * 4294967296)
end

local rows = {} -- by step, as they are asked for: 65,000 numbers of each kind at most

-- What ranks become by a step: for each rank the chance (of 2^32) from which on it is raised, and how to find out to what.
-- `unit`: ranks are kept in steps of so many.
function Policy.raising(step, unit)
  step = step < 0 and 0 or step > LAST_STEP and LAST_STEP or step
  local name = step * 8 + unit
  local row = rows[name]
  if row == nil then
    local found = {} -- by rank: what a chance is added to before it is divided by 2^32
    local function entry_at(rank)
      found[rank] = found[rank] or entry_of(CASH[rank] + 2 ^ ((step / FINE - OF_ONE) / PER_DOUBLING))
      return found[rank]
    end
    row = {
      raised = function(rank, chance)
        return math.floor(((found[rank] or entry_at(rank)) + chance * unit) / (4294967296 * unit)) * unit
      end,
      from = setmetatable({}, {
        __index = function(from, rank)
          from[rank] = ((rank + unit) * 4294967296 - entry_at(rank)) / unit
          return from[rank]
        end,
      }),
    }
    rows[name] = row
  end
  return row
end

local function part_cash(step)
  return 2 ^ ((step / FINE - OF_ONE) / PER_DOUBLING)
end

local firsts = {} -- by step: 500 at most

function Policy.first_rank(step, chance)
  step = math.max(0, math.min(step, LAST_STEP))
  local entry = firsts[step]
  if not entry then
    entry = entry_of(part_cash(step))
    firsts[step] = entry
  end
  return math.floor((entry + chance) / 4294967296)
end


function Policy.kept(rank, weight, chance)
  return math.floor((entry_of(CASH[rank] * (1 - weight)) + chance) / 4294967296)
end

local function step_of(cash)
  return Arith.round(Arith.log2(cash) * PER_DOUBLING * FINE) + OF_ONE * FINE
end

-- What each gets of the links that stand for eight pages' (told.py draws one page in so many).
function Policy.for_many(step)
  return step + MANY
end

-- What each link of a page gets: {inside new, inside known, abroad new, abroad known}, as steps.
function Policy.share(rank, outlinks, domain_pages, weight)
  local handed_on, base = 0.5 * CASH[rank], 1 / math.sqrt(math.max(1, domain_pages))
  local inside = step_of((handed_on + base) / math.max(1, outlinks))
  local abroad = step_of((handed_on + 4 * base) / math.max(1, outlinks))
  local less = weight >= 1 and 0 or Arith.round(Arith.log2(math.max(weight, 1e-9)) * PER_DOUBLING * FINE)
  return { inside, inside + less, abroad, abroad + less }
end

function Policy.next_mean(mean, rank)
  return mean + math.floor((rank * 65536 - mean) / 16384)
end

-- `doublings`: of the domains that speak for its domain (grades.lua).
function Policy.authority(rank, mean, doublings)
  local of_page = 0.3 + (rank * 65536 - mean) * (0.07 / (PER_DOUBLING * 65536))
  of_page = math.max(0, math.min(0.88, of_page))
  return math.min(1, of_page + (0.12 / 8) * doublings)
end

-- Budget

local ESTIMATES = {}
Policy.DOUBLINGS = {}
for count = 0, 64 do
  ESTIMATES[count] = 64 * math.log(64 / math.max(64 - count, 0.5))
  Policy.DOUBLINGS[count] = Arith.log2(1 + ESTIMATES[count])
end

local last_hi, last_lo, last_bits = 0, 0, 0 -- a host's are asked for several times in a row

-- How many domains link to a host, by the bits that stand for them; and how many bits that are.
function Policy.referrers(hi, lo)
  if hi ~= last_hi or lo ~= last_lo then
    last_hi, last_lo, last_bits = hi, lo, Arith.bits(hi, lo)
  end
  return ESTIMATES[last_bits], last_bits
end

local function allowance(given, earned, quality)
  local factor = math.max(0, quality)
  return math.max(1, math.floor(math.min(factor, 1) * given + factor * earned))
end

function Policy.url_allowance(rules, fresh, referrers, quality)
  return allowance(rules.first_urls + referrers * rules.urls_per_referrer, fresh * rules.urls_per_page, quality)
end

-- Whether a URL that has ended so, and brought so many new ones (here, and in other shards), gives its place back to its host.
function Policy.gives_back(outcome, added)
  if outcome.kind ~= 'done' or outcome.page or outcome.status < 300 or outcome.status >= 400 then
    return false
  end
  return added + outcome.abroad > 0
end

function Policy.host_allowance(rules, useful, referrers, quality)
  return allowance(
    rules.first_hosts + referrers * rules.hosts_per_referrer, useful * rules.hosts_per_useful_host, quality
  )
end

-- Health: window (a string of 0 and 1, the latest last), 5xx in a row, levels lowered, successes in a row

local function standing(domain, seen, demote_after)
  if seen == 'error' then
    return domain.errors_in_row, domain.lowered, 0
  end
  if seen == 'server_error' then
    local row = domain.errors_in_row + 1
    local drop = (row % demote_after == 0 and domain.lowered < 2) and 1 or 0
    return row, domain.lowered + drop, 0
  end
  if domain.lowered == 0 then
    return 0, 0, 0
  end
  if domain.successes + 1 < demote_after then
    return 0, domain.lowered, domain.successes + 1
  end
  return 0, domain.lowered - 1, 0
end

-- Changes the health of a domain; whether it is to be paused now.
function Policy.after_answer(domain, seen, rules)
  local good = seen == 'ok'
  if good and domain.window == '' and domain.errors_in_row == 0 and domain.lowered == 0 then
    return false
  end
  local size = rules.pause_window
  local window = (domain.window .. (good and '0' or '1')):sub(-size)
  window = window:gsub('^0+', '')
  local _, errors = window:gsub('1', '1')
  local pause = errors > rules.pause_share * size + 1e-9
  domain.window = pause and '' or window
  domain.errors_in_row, domain.lowered, domain.successes = standing(domain, seen, rules.demote_after)
  return pause
end
