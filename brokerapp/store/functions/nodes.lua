-- Who may write, and whether they live.

-- claim(KEYS = state, ARGV = session): this session alone may write from now on. Returns the last SEQ.
local function claim(keys, args)
  redis.call('HSET', keys[1], 'session', args[1], 'batch', '')
  return tonumber(redis.call('HGET', keys[1], 'seq')) or 0
end
writes('claim', claim)

-- beat(KEYS = state, node, ARGV = session, JSON, milliseconds): say that the session's node lives.
local function beat(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  redis.call('SET', keys[2], args[2], 'PX', args[3])
  return 1
end
writes('beat', beat)

-- leave(KEYS = state, node, ARGV = session): say that the session's node is gone; another's stays.
local function leave(keys, args)
  if not is_fenced(keys[1], args[1]) then redis.call('DEL', keys[2]) end
  return 1
end
writes('leave', leave)

-- lease(KEYS = lease, ARGV = holder, milliseconds): have it, or have it longer. Returns 1, or 0 while another has it.
local function lease(keys, args)
  local holder = redis.call('GET', keys[1])
  if holder and holder ~= args[1] then return 0 end
  redis.call('SET', keys[1], args[1], 'PX', args[2])
  return 1
end
writes('lease', lease)
