-- Emptying a log at once, whatever it holds.

-- Give up what an entry holds or refers to. Returns its message's bytes, those freed, and those of them that are volatile.
local function release_entry(entry, payload_prefix)
  local field, value = entry[2][1], entry[2][2]
  if field ~= 'r' then return #value, #value, volatile(value) end
  local payload = payload_prefix .. value
  return redis.call('HSTRLEN', payload, 'm'), release_payload(payload, 1, true)
end

-- Whether a log exists, and is not discarded.
local function is_there(logs, name)
  local attributes = redis.call('HGET', logs, name)
  return attributes and cjson.decode(attributes).kind ~= 'discarded'
end

-- drop(KEYS = state, logs, used, marks, log, nodes, expiring, returned, prioritized, urgent, ARGV = session ('': no node runs),
--      payload prefix, log's name, limit, keep, prefix of beats, channel, discarded). Expiring, returned and urgent are the log's.
-- Removes a log with what it holds, at most `limit` entries a call; with keep=1 only what it holds.
-- With discarded=1 nothing of one that is there again since it was discarded.
-- Returns entries removed and those left.
local function drop(keys, args)
  local state, logs, used, marks, log = keys[1], keys[2], keys[3], keys[4], keys[5]
  if args[1] == '' then
    if not fence_the_silent(state, keys[6], args[6], args[7]) then return redis.error_reply('FENCED a node of this broker is running') end
  elseif is_fenced(state, args[1]) then
    return redis.error_reply(FENCED)
  end
  if args[8] == '1' and is_there(logs, args[3]) then return { 0, 0 } end
  count_change(state)
  local entries = redis.call('XRANGE', log, '-', '+', 'COUNT', args[4])
  local freed, temp_freed, held, ids = 0, 0, 0, {}
  for position, entry in ipairs(entries) do
    ids[position] = entry[1]
    local size, size_freed, its_temp = release_entry(entry, args[2])
    held, freed, temp_freed = held + size, freed + size_freed, temp_freed + its_temp
    redis.call('XDEL', log, entry[1])
  end
  if #ids > 0 then
    local unindexed = redis.call('ZREM', keys[7], unpack(ids))
    freed = freed + unindexed * EXPIRING_BYTES + redis.call('ZREM', keys[10], unpack(ids)) * PLACE_BYTES
    redis.call('HINCRBY', state, 'expiring', -unindexed)
    redis.call('HINCRBY', state, 'returned', -redis.call('HDEL', keys[8], unpack(ids)))
  end
  redis.call('HINCRBY', state, 'bytes', -(freed + #entries * ENTRY_BYTES))
  redis.call('HSET', state, 'temp', math.max(0, (tonumber(redis.call('HGET', state, 'temp')) or 0) - temp_freed))
  local left = redis.call('XLEN', log)
  if left == 0 then
    redis.call('DEL', log)
    redis.call('HDEL', used, log)
    if args[5] ~= '1' then
      remove_priority_index(state, keys[9], keys[10], args[3])
      redis.call('HDEL', logs, args[3])
      redis.call('HDEL', marks, args[3])
    end
  else
    redis.call('HINCRBY', used, log, -held)
  end
  return { #entries, left }
end
writes('drop', drop)
