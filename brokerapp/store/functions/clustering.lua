-- The broker's copy of its cluster's record: what exists, see brokerapp/cluster/record.py.

-- keep_record(KEYS = state, cluster, ARGV = session, id, version, 1 to begin anew, then name, JSON ('': it is gone), ...)
local function keep_record(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  count_change(keys[1])
  if args[4] == '1' then redis.call('DEL', keys[2]) end
  redis.call('HSET', keys[2], 'id', args[2], 'version', args[3])
  for at = 5, #args, 2 do
    if args[at + 1] == '' then redis.call('HDEL', keys[2], '=' .. args[at])
    else redis.call('HSET', keys[2], '=' .. args[at], args[at + 1]) end
  end
  return 1
end
writes('keep_record', keep_record)
