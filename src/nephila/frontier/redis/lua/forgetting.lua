-- What captures left behind that were taken out of the archive (K2). The URL itself stays known: that it is not asked
-- for again is the matter of its block.

-- ARGV: clock, `gone` or `emptied`, then host and fingerprint of each; or clock, `rules`, then origins
function Orders.forget(keys, args)
  Shard.open(keys[1], args[1])
  if args[2] == 'rules' then
    for at = 3, #args do
      redis.call('HDEL', X.P .. 'origins', args[at])
      redis.call('HDEL', X.P .. 'rules', args[at])
    end
    Shard.close()
    return 1
  end
  for at = 3, #args, 2 do
    local host = Shard.host(args[at])
    if host and Known.has_record(host, args[at + 1]) then
      local record = Urls.record(host, args[at + 1])
      if record.status ~= 0 and not Urls.is_pending(host, record) then
        record.digest, record.etag, record.last_modified = '', '', ''
        if args[2] == 'gone' then
          record.segment, record.offset, record.finish = '', -1, 0
          record.reason, record.detail, record.trail = 'taken_down', '', {}
        end
        Urls.save(host, record)
      end
    end
  end
  Shard.close()
  return 1
end
