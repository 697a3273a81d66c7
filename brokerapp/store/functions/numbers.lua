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
