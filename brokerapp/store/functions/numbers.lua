-- numbers(KEYS = state, stats, changed, ARGV = channel ('': there is more to come), n, n times name and JSON,
--         n, n names that are gone, n, n names that were gone long ago): what operators see, as the next snapshot. Several nodes tell
--         theirs. Returns its version.
local function numbers(keys, args)
  local version, at = (tonumber(redis.call('HGET', keys[1], 'snapshot')) or 0) + 1, 2
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
  if args[1] ~= '' then
    redis.call('HSET', keys[1], 'snapshot', version)
    redis.call('PUBLISH', args[1], 'stats ' .. version)
  end
  return version
end
writes('numbers', numbers)
