-- Writes that wait for the end of the call: what goes into one sorted set, or one hash, is one command then.
--
-- What must stay true: whoever reads a sorted set that is written so asks for it by `Later.now` first, and whoever reads such a
-- hash knows by himself what he has changed.

local MOST = 1000 -- words of a command

-- A member comes into a sorted set; one that is there already is given that score.
function Later.add(key, score, member)
  local waiting = X.sorted[key]
  if waiting == nil then
    waiting = { add = {}, remove = {} }
    X.sorted[key] = waiting
  end
  waiting.add[member], waiting.remove[member] = score, nil
end

function Later.remove(key, member)
  local waiting = X.sorted[key]
  if waiting == nil then
    waiting = { add = {}, remove = {} }
    X.sorted[key] = waiting
  end
  waiting.add[member], waiting.remove[member] = nil, true
end

-- A field of a hash; false: it goes.
function Later.set(key, field, value)
  local waiting = X.fields[key]
  if waiting == nil then
    waiting = {}
    X.fields[key] = waiting
  end
  waiting[field] = value
end

local function tell(command, key, words, count)
  if count > 0 then
    redis.call(command, key, unpack(words, 1, count))
  end
end

local function write_sorted(name, waiting)
  local key, words, count = X.P .. name, {}, 0
  for member in pairs(waiting.remove) do
    count = count + 1
    words[count] = member
    if count == MOST then
      tell('ZREM', key, words, count)
      count = 0
    end
  end
  tell('ZREM', key, words, count)
  count = 0
  for member, score in pairs(waiting.add) do
    words[count + 1], words[count + 2] = score, member
    count = count + 2
    if count == MOST then
      tell('ZADD', key, words, count)
      count = 0
    end
  end
  tell('ZADD', key, words, count)
end

local function write_fields(name, waiting)
  local key, words, count, gone, many = X.P .. name, {}, 0, {}, 0
  for field, value in pairs(waiting) do
    if value then
      words[count + 1], words[count + 2] = field, value
      count = count + 2
      if count == MOST then
        tell('HSET', key, words, count)
        count = 0
      end
    else
      many = many + 1
      gone[many] = field
      if many == MOST then
        tell('HDEL', key, gone, many)
        many = 0
      end
    end
  end
  tell('HSET', key, words, count)
  tell('HDEL', key, gone, many)
end

-- The key of a sorted set, for whoever reads it: it is as it should be now.
function Later.now(name)
  local waiting = X.sorted[name]
  if waiting then
    X.sorted[name] = nil
    write_sorted(name, waiting)
  end
  return X.P .. name
end

-- The same for a hash.
function Later.all_now(name)
  local waiting = X.fields[name]
  if waiting then
    X.fields[name] = nil
    write_fields(name, waiting)
  end
  return X.P .. name
end

function Later.close()
  for name, waiting in pairs(X.sorted) do
    write_sorted(name, waiting)
  end
  for name, waiting in pairs(X.fields) do
    write_fields(name, waiting)
  end
end
