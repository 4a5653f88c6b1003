-- URLs that come back into a queue, and the scores by which they do.

function Queue.score(host, rank, depth, bonus, record)
  local policy = Shard.policy(host.domain)
  local doublings, heard = Grades.heard(host)
  if record or X.policies > 0 then
    local authority = Policy.authority(rank, X.mean, doublings)
    local freshness = record and Policy.freshness(record.history, X.wall_s) or 0
    return Policy.score(X.rules, authority, depth, bonus, freshness, policy.tier)
  end
  -- Within one act, URLs that are alike have the same score.
  local like = rank + 128 * depth + 32768 * (bonus + 1024) + 134217728 * heard
  local points = X.scores[like]
  if points == nil then
    points = Policy.score(X.rules, Policy.authority(rank, X.mean, doublings), depth, bonus, 0, 'normal')
    X.scores[like] = points
  end
  return points
end

-- Queue a URL by its present score (or class). Answers its place; the record is still to be saved.
function Queue.put_back(host, record, level)
  local points = Queue.score(host, record.rank, record.depth, 0, record)
  if level == nil and record.level ~= 0 then
    level = Policy.level_of(X.rules, points)
  end
  record.level = level or record.level
  if record.level == 0 then
    points = Policy.NOMINAL[0]
  end
  Urls.enter(host, record, Urls.QUEUED)
  return Queue.enqueue_alone(host, record, points)
end

-- Queue a URL that had ended, with a clean sheet, and save it.
function Queue.requeue(host, record, level)
  Urls.end_state(host, record)
  record.cycle, record.retries, record.hops, record.level = X.cycle, 0, 0, 3 -- its class is found anew
  record.trail, record.reason, record.detail = {}, '', ''
  local place = Queue.put_back(host, record, level)
  Urls.save(host, record)
  return place
end
