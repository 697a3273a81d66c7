-- What operators see, and what passes between them and the node.

-- numbers(KEYS = state, stats, changed, ARGV = version, channel ('': there is more to come), n, n times name and JSON,
--         n, n names that are gone, n, n names that were gone long ago): what operators see, as snapshot `version`.
local function numbers(keys, args)
  local version, at = args[1], 3
  local function list(step)
    local first, count = at + 1, tonumber(args[at])
    at = first + count * step
    return first, at - 1
  end
  local first, last = list(2)
  for from = first, last, AT_ONCE do
    local upto, changed = math.min(from + AT_ONCE - 1, last), {}
    redis.call('HSET', keys[2], unpack(args, from, upto))
    for i = from, upto, 2 do
      changed[#changed + 1] = version
      changed[#changed + 1] = args[i]
    end
    redis.call('ZADD', keys[3], unpack(changed))
  end
  first, last = list(1)
  for i = first, last do
    redis.call('HDEL', keys[2], args[i])
    redis.call('ZADD', keys[3], version, args[i])
  end
  first, last = list(1)
  for i = first, last do redis.call('ZREM', keys[3], args[i]) end
  if args[2] ~= '' then
    redis.call('HSET', keys[1], 'snapshot', version)
    redis.call('PUBLISH', args[2], 'stats ' .. version)
  end
  return 1
end
writes('numbers', numbers)

-- define(KEYS = definitions, ARGV = expected version, JSON, JSON about the change, channel, 1 if a file says so)
-- Returns the new version, or minus the current one (minus 1 when there is none) if it is not the expected one.
local function define(keys, args)
  local current = tonumber(redis.call('HGET', keys[1], 'current')) or 0
  if current ~= tonumber(args[1]) then return -math.max(current, 1) end
  local new = current + 1
  redis.call('HSET', keys[1], new, args[2], 'meta:' .. new, args[3], 'current', new)
  if args[5] == '1' then redis.call('HSET', keys[1], 'imported', args[2]) end
  redis.call('PUBLISH', args[4], 'definitions')
  return new
end
writes('define', define)

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
