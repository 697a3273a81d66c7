-- The shards of a broker, as its first one knows them: where logs are, and where families of logs live; and sessions that may write to
-- one shard, beside those of members.

-- locate(KEYS = logs, shards:logs, shards:families, state, shards:vanished, ARGV = n times log, family, shard): put logs where their families
-- live, or else into these shards; those that have a place keep it, and their families live there if they have none. Logs that were there
-- before the broker had shards are in this one. A family '' has no place. Returns the shards.
local function locate(keys, args)
  local found, is_new, some_vanished = {}, false, redis.call('EXISTS', keys[5]) == 1
  for at = 1, #args, 3 do
    local log, family, shard = args[at], args[at + 1], args[at + 2]
    if some_vanished then redis.call('SREM', keys[5], 'log ' .. log, 'family ' .. family) end
    local known = redis.call('HGET', keys[2], log)
    if not known and redis.call('HEXISTS', keys[1], log) == 1 then known = '0' end
    if not known then
      known = family ~= '' and redis.call('HGET', keys[3], family) or shard
      redis.call('HSET', keys[2], log, known)
      is_new = true
    end
    if family ~= '' then is_new = redis.call('HSETNX', keys[3], family, known) == 1 or is_new end
    found[#found + 1] = tonumber(known)
  end
  if is_new then count_change(keys[4]) end
  return found
end
writes('locate', locate)

-- forget_places(KEYS = shards:logs, shards:families, state, shards:vanished, ARGV = channel, n times `log NAME` or `family NAME`): forget where
-- these are that nobody has asked for since they were said to have vanished. Returns how many.
local function forget_places(keys, args)
  local count = 0
  for at = 2, #args do
    if redis.call('SREM', keys[4], args[at]) == 1 then
      local kind, name = string.match(args[at], '^(%l+) (.*)$')
      count = count + redis.call('HDEL', kind == 'log' and keys[1] or keys[2], name)
    end
  end
  if count > 0 then
    count_change(keys[3])
    redis.call('PUBLISH', args[1], 'shards')
  end
  return count
end
writes('forget_places', forget_places)

-- add_shard(KEYS = shards, state, ARGV = URL, state of the shard, channel, '1' if several shards may have the URL, format, how many may be
-- added): know one more shard. Versions that know nothing of shards can use the store no more. Its number is none that another shard had
-- before: payloads that came from there tell where they are from. Returns it; 0 when one with this URL is known, -1 when no more may be
-- added.
local function add_shard(keys, args)
  local last, known = tonumber(redis.call('HGET', keys[2], 'shards')) or 0, redis.call('HGETALL', keys[1])
  for i = 1, #known, 2 do
    last = math.max(last, tonumber(known[i]))
    if args[4] ~= '1' and cjson.decode(known[i + 1]).url == args[1] then return 0 end
  end
  if last >= tonumber(args[6]) then return -1 end
  redis.call('HSET', keys[1], last + 1, cjson.encode({ url = args[1], state = args[2] }))
  redis.call('HSET', keys[2], 'shards', last + 1, 'format', args[5])
  count_change(keys[2])
  redis.call('PUBLISH', args[3], 'shards')
  return last + 1
end
writes('add_shard', add_shard)

-- set_shard(KEYS = shards, state, ARGV = number, JSON, channel): change what is known of a shard. Returns 1, or 0 when it was removed.
local function set_shard(keys, args)
  if redis.call('HEXISTS', keys[1], args[1]) == 0 then return 0 end
  redis.call('HSET', keys[1], args[1], args[2])
  count_change(keys[2])
  redis.call('PUBLISH', args[3], 'shards')
  return 1
end
writes('set_shard', set_shard)

-- Forget which fields of a hash have this value.
local function forget_value(key, value)
  local found = redis.call('HGETALL', key)
  for i = 1, #found, 2 do
    if found[i + 1] == value then redis.call('HDEL', key, found[i]) end
  end
end

-- remove_shard(KEYS = shards, state, shards:logs, shards:families, ARGV = number, channel): forget a shard, and what was put there. Returns 1;
-- 0 when logs may still be put there, -1 when there is no such shard.
local function remove_shard(keys, args)
  local known = redis.call('HGET', keys[1], args[1])
  if not known then return -1 end
  if cjson.decode(known).state == 'serving' then return 0 end
  redis.call('HDEL', keys[1], args[1])
  forget_value(keys[3], args[1])
  forget_value(keys[4], args[1])
  count_change(keys[2])
  redis.call('PUBLISH', args[2], 'shards')
  return 1
end
writes('remove_shard', remove_shard)

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
