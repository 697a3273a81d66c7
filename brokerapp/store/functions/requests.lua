-- What passes between operators and the node.

-- ask(KEYS = request, requests, ARGV = id, JSON, milliseconds it is kept): let the node be asked.
local function ask(keys, args)
  redis.call('SET', keys[1], args[2], 'PX', args[3])
  return redis.call('RPUSH', keys[2], args[1])
end
writes('ask', ask)

-- answer(KEYS = reply, ARGV = JSON, seconds it is kept)
local function answer(keys, args)
  redis.call('RPUSH', keys[1], args[1])
  return redis.call('EXPIRE', keys[1], args[2])
end
writes('answer', answer)
