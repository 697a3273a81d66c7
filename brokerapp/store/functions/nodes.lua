-- The members of a broker: who may write, and whether they live.
--
-- `nodes` has a row for each: its name, and the JSON of what others need to know of it, its session among that. The state has
-- `session:S` for each session that may write, and the number and the answer of its last batch, and the epoch: how often the members
-- changed. A session that is gone from there is fenced for ever.

local function admit(state, session, name)
  redis.call('HSET', state, 'session:' .. session, name)
end

-- A session may write no more.
local function fence(state, session)
  redis.call('HDEL', state, 'session:' .. session, 'batch:' .. session, 'reply:' .. session)
end

-- The members are others: say so to all. Returns the epoch.
local function changed_members(state, channel)
  local epoch = redis.call('HINCRBY', state, 'epoch', 1)
  count_change(state)
  redis.call('PUBLISH', channel, 'nodes')
  return epoch
end

local function session_of(nodes, name)
  local record = redis.call('HGET', nodes, name)
  return record and cjson.decode(record).session
end

-- claim(KEYS = state, nodes, its beat, lives, ARGV = session, name, JSON with the session, channel, milliseconds, format): be the
-- member of this name, whose former session is fenced. It lives from now on, though it has no status yet. Returns the last SEQ.
local function claim(keys, args)
  local former = session_of(keys[2], args[2])
  if former then fence(keys[1], former) end
  redis.call('HDEL', keys[1], 'session', 'batch', 'reply') -- of a broker that had one node
  admit(keys[1], args[1], args[2])
  local joined = (tonumber(redis.call('HGET', keys[1], 'epoch')) or 0) + 1 -- by which others know who is there for longest
  redis.call('HSET', keys[2], args[2], string.sub(args[3], 1, -2) .. ',"joined":' .. joined .. '}')
  redis.call('SET', keys[3], '', 'PX', args[5])
  if not redis.call('HGET', keys[1], 'format') then redis.call('HSET', keys[1], 'format', args[6]) end
  changed_members(keys[1], args[4])
  note_life(keys[1], keys[4])
  return tonumber(redis.call('HGET', keys[1], 'seq')) or 0
end
writes('claim', claim)

-- expel(KEYS = state, nodes, beat of the other, ARGV = own session, the other's name and session, channel): fence a member that beats
-- no more. Returns 1, or 0 when it lives, or was gone before.
local function expel(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  if session_of(keys[2], args[2]) ~= args[3] or redis.call('EXISTS', keys[3]) == 1 then return 0 end
  fence(keys[1], args[3])
  redis.call('HDEL', keys[2], args[2])
  changed_members(keys[1], args[4])
  return 1
end
writes('expel', expel)

-- Whether none of the members beats. They are fenced then: one that only stood still must not go on when it wakes as if what it knows
-- of the store were true still.
local function fence_the_silent(state, nodes, beat_prefix, channel)
  local silent = redis.call('HGETALL', nodes)
  for i = 1, #silent, 2 do
    if redis.call('EXISTS', beat_prefix .. silent[i]) == 1 then return false end
  end
  for i = 1, #silent, 2 do
    fence(state, cjson.decode(silent[i + 1]).session)
    redis.call('HDEL', nodes, silent[i])
  end
  if #silent > 0 then changed_members(state, channel) end
  return true
end

-- describe(KEYS = state, nodes, ARGV = epoch, channel, name, JSON, name, JSON ...): let others read this of members, if they are the
-- members of this epoch still. Returns the new epoch, or 0.
local function describe(keys, args)
  if (tonumber(redis.call('HGET', keys[1], 'epoch')) or 0) ~= tonumber(args[1]) then return 0 end
  for i = 3, #args, 2 do redis.call('HSET', keys[2], args[i], args[i + 1]) end
  return changed_members(keys[1], args[2])
end
writes('describe', describe)

-- members(KEYS = state, nodes): the epoch, then names and JSON.
local function members(keys)
  local epoch = tonumber(redis.call('HGET', keys[1], 'epoch')) or 0
  return { epoch, redis.call('HGETALL', keys[2]) }
end
reads('members', members)

-- beat(KEYS = state, its beat, ARGV = session, JSON, milliseconds): say that the session's node lives.
-- Returns how many changes were made so far.
local function beat(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  redis.call('SET', keys[2], args[2], 'PX', args[3])
  return (counters(keys[1]))
end
writes('beat', beat)

-- leave(KEYS = state, nodes, its beat, ARGV = session, name, channel): the session's node is a member no more; another's stays. One
-- that may write no more, as what it left half done between shards was finished before, leaves too.
local function leave(keys, args)
  if session_of(keys[2], args[2]) ~= args[1] then return 0 end
  fence(keys[1], args[1])
  redis.call('HDEL', keys[2], args[2])
  redis.call('DEL', keys[3])
  changed_members(keys[1], args[3])
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
