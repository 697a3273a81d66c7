-- What operators say: the definitions, each change a version, and the network connectors.

-- define(KEYS = definitions, state, ARGV = expected version, JSON, JSON about the change, channel, 1 if a file says so)
-- Returns the new version, or minus the current one (minus 1 when there is none) if it is not the expected one.
local function define(keys, args)
  local current = tonumber(redis.call('HGET', keys[1], 'current')) or 0
  if current ~= tonumber(args[1]) then return -math.max(current, 1) end
  local new = current + 1
  redis.call('HSET', keys[1], new, args[2], 'meta:' .. new, args[3], 'current', new)
  if args[5] == '1' then redis.call('HSET', keys[1], 'imported', args[2]) end
  count_change(keys[2])
  redis.call('PUBLISH', args[4], 'definitions')
  return new
end
writes('define', define)

-- connectors(KEYS = connectors, state, ARGV = what they were ("" for nothing), what they are to be, channel)
-- Returns 1, or 0 when they are others by now.
local function connectors(keys, args)
  if (redis.call('GET', keys[1]) or '') ~= args[1] then return 0 end
  redis.call('SET', keys[1], args[2])
  count_change(keys[2])
  redis.call('PUBLISH', args[3], 'connectors')
  return 1
end
writes('connectors', connectors)
