-- Copies of logs. A log that moves between shards is in both for a while, and in both for longer where a move ends halfway. `logs:copies`
-- has, by log, the number of the move that brought it here, or of the last one that this shard knew of when the log was made: of two copies
-- the one with the higher number is the newer. `N?`: move N brings it; no node writes to it yet.

local function copies_of(logs)
  return logs .. ':copies'
end

-- The number of the copy of a log, as text; '0' where no move has been here.
local function copy_number(logs, name)
  return redis.call('HGET', copies_of(logs), name) or '0'
end

-- A log is made here.
local function note_new_log(state, logs, name)
  local moves = redis.call('HGET', state, 'moves')
  if moves then redis.call('HSET', copies_of(logs), name, moves) end
end

-- A log is not here any more.
local function forget_copy(logs, name)
  redis.call('HDEL', copies_of(logs), name)
end
