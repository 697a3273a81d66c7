-- Logs in order of priority: those whose attributes say `prioritized`. The places of their entries are kept beside the stream, under
-- the log's name, while there are such logs (`prioritized` of the state counts them).

-- The digit of the highest priority, and what lies between two priorities in places: more numbers than there are.
local HIGHEST, SPAN = 57, 2 ^ 49

-- The place of a message among those of such a log, see engine/entries/message_order.py: exact up to 2^53.
local function priority_key(stored, seq)
  return string.format('%.0f', (HIGHEST - priority_digit(stored)) * SPAN + seq)
end

-- A log is kept in order of priority from now on.
local function add_priority_index(state, prioritized, name)
  redis.call('SADD', prioritized, name)
  redis.call('HSET', state, 'prioritized', redis.call('SCARD', prioritized))
end

-- A log is in order of priority no more, or is no more at all. Returns the bytes given up.
local function remove_priority_index(state, prioritized, urgent, name)
  if redis.call('SREM', prioritized, name) == 0 then return 0 end
  redis.call('HSET', state, 'prioritized', redis.call('SCARD', prioritized))
  local places = redis.call('ZCARD', urgent)
  redis.call('UNLINK', urgent)
  return places * PLACE_BYTES
end

-- prioritize(KEYS = state, prioritized, log, its urgent, ARGV = session, log's name, payload prefix, SEQ to go on after, count)
-- Gives a place to `count` entries of a prioritized log that had messages before. Returns the SEQ it came to; 0: all have one.
local function prioritize(keys, args)
  local state, prioritized, log, urgent = keys[1], keys[2], keys[3], keys[4]
  if is_fenced(state, args[1]) then return redis.error_reply(FENCED) end
  if redis.call('SISMEMBER', prioritized, args[2]) == 0 then return 0 end
  if redis.call('ZCARD', urgent) == redis.call('XLEN', log) then return 0 end
  local entries = redis.call('XRANGE', log, '(' .. args[4] .. '-0', '+', 'COUNT', args[5])
  local new = 0
  for _, entry in ipairs(entries) do
    local row = row_of(entry, args[3])
    if row[2] ~= '' then new = new + redis.call('ZADD', urgent, priority_key(row[2], tonumber(row[1])), entry[1]) end
  end
  redis.call('HINCRBY', state, 'bytes', new * PLACE_BYTES)
  return #entries < tonumber(args[5]) and 0 or tonumber(seq_of(entries[#entries][1]))
end
writes('prioritize', prioritize)

-- urgent(KEYS = log, its urgent, ARGV = payload prefix, place to read after, count, bytes)
-- Returns entries in order of priority, see row_of.
local function read_by_priority(keys, args)
  local ids = redis.call('ZRANGEBYSCORE', keys[2], '(' .. args[2], '+inf', 'LIMIT', 0, args[3])
  return rows_of(keys[1], ids, args[1], tonumber(args[4]))
end
reads('urgent', read_by_priority)
