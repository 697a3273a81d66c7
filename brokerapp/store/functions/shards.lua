-- The shards of a broker, as its first one knows them: where logs are, and where families of logs live; and sessions that may write to
-- one shard, beside those of members.

-- locate(KEYS = logs, shards:logs, shards:families, ARGV = n times log, family, shard): put logs where their families live, or else into
-- these shards; those that have a place keep it, and their families live there if they have none. Logs that were there before the broker had shards are in this one. A family ''
-- has no place. Returns the shards.
local function locate(keys, args)
  local found = {}
  for at = 1, #args, 3 do
    local log, family, shard = args[at], args[at + 1], args[at + 2]
    local known = redis.call('HGET', keys[2], log)
    if not known and redis.call('HEXISTS', keys[1], log) == 1 then known = '0' end
    if not known then
      known = family ~= '' and redis.call('HGET', keys[3], family) or shard
      redis.call('HSET', keys[2], log, known)
    end
    if family ~= '' then redis.call('HSETNX', keys[3], family, known) end
    found[#found + 1] = tonumber(known)
  end
  return found
end
writes('locate', locate)

-- add_shard(KEYS = shards, state, ARGV = URL, state of the shard, channel, '1' if several shards may have the URL, format): know one more
-- shard. Versions that know nothing of shards can use the store no more. Returns its number, or 0 when one with this URL is known.
local function add_shard(keys, args)
  local highest, known = 0, redis.call('HGETALL', keys[1])
  for i = 1, #known, 2 do
    highest = math.max(highest, tonumber(known[i]))
    if args[4] ~= '1' and cjson.decode(known[i + 1]).url == args[1] then return 0 end
  end
  redis.call('HSET', keys[2], 'format', args[5])
  redis.call('HSET', keys[1], highest + 1, cjson.encode({ url = args[1], state = args[2] }))
  redis.call('PUBLISH', args[3], 'shards')
  return highest + 1
end
writes('add_shard', add_shard)

-- set_shard(KEYS = shards, ARGV = number, JSON; '': forget it, channel): change what is known of a shard.
local function set_shard(keys, args)
  if args[2] == '' then redis.call('HDEL', keys[1], args[1]) else redis.call('HSET', keys[1], args[1], args[2]) end
  redis.call('PUBLISH', args[3], 'shards')
  return 1
end
writes('set_shard', set_shard)

-- revoke(KEYS = state, ARGV = own session, '' for one that is no member's, the other's): the other session may write no more.
local function revoke(keys, args)
  if args[1] ~= '' and is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  fence(keys[1], args[2])
  return 1
end
writes('revoke', revoke)

-- admit(KEYS = state, ARGV = session, name): let a session write that is no member's, to finish what a member left.
local function admit_session(keys, args)
  admit(keys[1], args[1], args[2])
  return 1
end
writes('admit', admit_session)
