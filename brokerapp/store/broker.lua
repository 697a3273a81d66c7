#!lua name=sluice_v1

-- The broker's writes, one function a verb. `keys.py` says what each key holds; all keys share one hash tag.
-- A function checks first, then writes, so that a refusal leaves nothing behind (scripts are not rolled back).
--
-- A message takes the next number of the broker, SEQ. Its entry in every log has the id SEQ-0: ids grow in every
-- log, all copies of one message carry one number, and the node needs to be told only the first number of a batch.

-- Bytes an entry takes beside the message it holds or refers to (measured: 24 to 60, by how full its node is).
local ENTRY_BYTES = 64

local FENCED = 'FENCED another node took this broker over'

-- commit(KEYS = state, logs, used, marks, log..., ARGV = session, batch, limit, payload prefix, ...)
--
-- ARGV goes on with
--   n, then n times: log's name, its key, JSON         logs that exist, with these attributes; JSON '': to remove if empty
--   n, then n times: log's name, mark                  marks to set
--   limit in bytes of each log of KEYS (0: none)
--   n, then n units. A unit is done whole or not at all:
--     n (-n: whatever the limits say), then n messages: stored form,
--       n, then n copies: index of the log, original destination, shown destination
--     n, then n groups of settled entries: index of the log, bytes freed, n, then n SEQs
--     n, then n payloads: SEQ, references given up
--     bytes freed by entries that held their message themselves
-- Returns the SEQ before the batch's first message, and the numbers (from 1) of the units refused by a limit.
-- Safe to repeat: a batch already done is answered from memory.
local FIRST_LOG = 5

local function commit(keys, args)
  local state, logs, used, marks = keys[1], keys[2], keys[3], keys[4]
  local known = redis.call('HMGET', state, 'session', 'batch', 'reply', 'seq', 'bytes')
  if known[1] ~= args[1] then return redis.error_reply(FENCED) end
  if known[2] == args[2] then return cjson.decode(known[3]) end
  local seq, bytes = tonumber(known[4]) or 0, tonumber(known[5]) or 0
  local limit, payload_prefix = tonumber(args[3]), args[4]
  local at = 5
  local function next_number()
    at = at + 1
    return tonumber(args[at - 1])
  end

  for _ = 1, next_number() do
    local name, key, attributes = args[at], args[at + 1], args[at + 2]
    if attributes ~= '' then
      redis.call('HSET', logs, name, attributes)
    elseif redis.call('XLEN', key) == 0 then
      redis.call('DEL', key)
      redis.call('HDEL', logs, name)
      redis.call('HDEL', used, key)
      redis.call('HDEL', marks, name)
    end
    at = at + 3
  end
  for _ = 1, next_number() do
    redis.call('HSET', marks, args[at], args[at + 1])
    at = at + 2
  end
  local log_limits, grown = {}, {}
  for index = FIRST_LOG, #keys do log_limits[index] = next_number() end

  local function log_used(index)
    return (tonumber(redis.call('HGET', used, keys[index])) or 0) + (grown[index] or 0)
  end

  local reply = { seq, {} }
  for unit = 1, next_number() do
    local messages = {}
    local refused, added, wanted = false, 0, {}
    local count = next_number()
    local limited = count > 0
    for m = 1, math.abs(count) do
      local stored = args[at]
      local copies = tonumber(args[at + 1])
      at = at + 2
      local size = #stored
      added = added + size + copies * ENTRY_BYTES
      for c = 0, copies - 1 do
        local index = tonumber(args[at + 3 * c]) + FIRST_LOG
        local log_limit = log_limits[index]
        if limited and log_limit > 0 then
          wanted[index] = (wanted[index] or 0) + size
          if log_used(index) + wanted[index] > log_limit then refused = true end
        end
      end
      messages[m] = { stored, copies, at }
      at = at + 3 * copies
    end
    if limited and limit > 0 and bytes + added > limit then refused = true end

    if refused then
      table.insert(reply[2], unit)
      seq = seq + #messages
    else
      for _, message in ipairs(messages) do
        local stored, copies, first = message[1], message[2], message[3]
        seq = seq + 1
        local id = string.format('%d-0', seq)
        if copies > 1 then
          redis.call('HSET', payload_prefix .. string.format('%d', seq), 'm', stored, 'c', copies)
        end
        for c = 0, copies - 1 do
          local index = tonumber(args[first + 3 * c]) + FIRST_LOG
          local original, shown = args[first + 3 * c + 1], args[first + 3 * c + 2]
          local field, value = 'm', stored
          if copies > 1 then field, value = 'r', seq end
          if original == '' and shown == '' then
            redis.call('XADD', keys[index], id, field, value)
          else
            redis.call('XADD', keys[index], id, field, value, 'o', original, 'd', shown)
          end
          grown[index] = (grown[index] or 0) + #stored
        end
      end
      bytes = bytes + added
    end

    -- An entry is settled once. Should one be gone already, give up no references: better a payload too many than one too few.
    local asked, gone = 0, 0
    for _ = 1, next_number() do
      local index = tonumber(args[at]) + FIRST_LOG
      local freed, count = tonumber(args[at + 1]), tonumber(args[at + 2])
      at = at + 3
      if not refused then
        local ids = {}
        for i = 1, count do ids[i] = args[at + i - 1] .. '-0' end
        local deleted = redis.call('XDEL', keys[index], unpack(ids))
        asked, gone = asked + count, gone + deleted
        bytes = bytes - deleted * ENTRY_BYTES
        grown[index] = (grown[index] or 0) - math.floor(freed * deleted / count)
      end
      at = at + count
    end
    for _ = 1, next_number() do
      if not refused and gone == asked then
        local payload = payload_prefix .. args[at]
        if redis.call('HINCRBY', payload, 'c', -tonumber(args[at + 1])) <= 0 then
          bytes = bytes - redis.call('HSTRLEN', payload, 'm')
          redis.call('DEL', payload)
        end
      end
      at = at + 2
    end
    local freed = next_number()
    if not refused and asked > 0 then bytes = bytes - math.floor(freed * gone / asked) end
  end

  for index, growth in pairs(grown) do
    if growth ~= 0 then redis.call('HINCRBY', used, keys[index], growth) end
  end
  redis.call('HSET', state, 'batch', args[2], 'reply', cjson.encode(reply), 'seq', seq, 'bytes', bytes)
  return reply
end

-- read(KEYS = log, ARGV = payload prefix, SEQ to read after, count, bytes)
-- Returns entries {SEQ, stored form, payload's SEQ or '', original or '', shown or ''}, in order: at most `count`, and no more once
-- they have that many bytes; none only at the end of the log.
local function read(keys, args)
  local after, left, room = args[2], tonumber(args[3]), tonumber(args[4])
  local result, bytes = {}, 0
  local step = 1 -- grows as far as what was seen so far allows: sizes are not known before
  repeat
    local entries = redis.call('XRANGE', keys[1], '(' .. after .. '-0', '+', 'COUNT', step)
    for _, entry in ipairs(entries) do
      local fields = {}
      for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
      local stored = fields.m
      if fields.r then stored = redis.call('HGET', args[1] .. fields.r, 'm') end
      stored = stored or ''
      after = string.match(entry[1], '^%d+')
      result[#result + 1] = { after, stored, fields.r or '', fields.o or '', fields.d or '' }
      bytes = bytes + #stored
      if bytes >= room then return result end
    end
    local at_end = #entries < step
    left = left - #entries
    step = math.min(left, step * 4, math.ceil((room - bytes) * #result / math.max(bytes, 1)))
  until at_end or step < 1
  return result
end

-- claim(KEYS = state, ARGV = session): this session alone may write from now on. Returns the last SEQ.
local function claim(keys, args)
  redis.call('HSET', keys[1], 'session', args[1], 'batch', '')
  return tonumber(redis.call('HGET', keys[1], 'seq')) or 0
end

-- beat(KEYS = state, node, ARGV = session, JSON, milliseconds): say that the session's node lives.
local function beat(keys, args)
  if redis.call('HGET', keys[1], 'session') ~= args[1] then return redis.error_reply(FENCED) end
  redis.call('SET', keys[2], args[2], 'PX', args[3])
  return 1
end

-- leave(KEYS = state, node, ARGV = session): say that the session's node is gone; another's stays.
local function leave(keys, args)
  if redis.call('HGET', keys[1], 'session') == args[1] then redis.call('DEL', keys[2]) end
  return 1
end

-- drop(KEYS = state, logs, used, marks, log, node, ARGV = session ('': no node runs), payload prefix, log's name, limit, keep)
-- Removes a log with what it holds, at most `limit` entries a call; with keep=1 only what it holds.
-- Returns entries removed and those left.
local function drop(keys, args)
  local state, logs, used, marks, log = keys[1], keys[2], keys[3], keys[4], keys[5]
  if args[1] == '' then
    if redis.call('EXISTS', keys[6]) == 1 then return redis.error_reply('FENCED a node of this broker is running') end
  elseif redis.call('HGET', state, 'session') ~= args[1] then
    return redis.error_reply(FENCED)
  end
  local entries = redis.call('XRANGE', log, '-', '+', 'COUNT', args[4])
  local freed, held = 0, 0
  for _, entry in ipairs(entries) do
    local field, value = entry[2][1], entry[2][2]
    local size = #value
    if field == 'r' then
      local payload = args[2] .. value
      size = redis.call('HSTRLEN', payload, 'm')
      if redis.call('HINCRBY', payload, 'c', -1) <= 0 then
        redis.call('DEL', payload)
        freed = freed + size
      end
    else
      freed = freed + size
    end
    held = held + size
    redis.call('XDEL', log, entry[1])
  end
  redis.call('HINCRBY', state, 'bytes', -(freed + #entries * ENTRY_BYTES))
  local left = redis.call('XLEN', log)
  if left == 0 then
    redis.call('DEL', log)
    redis.call('HDEL', used, log)
    if args[5] ~= '1' then
      redis.call('HDEL', logs, args[3])
      redis.call('HDEL', marks, args[3])
    end
  else
    redis.call('HINCRBY', used, log, -held)
  end
  return { #entries, left }
end

-- define(KEYS = definitions, ARGV = expected version, JSON, JSON about the change, channel)
-- Returns the new version, or minus the current one (minus 1 when there is none) if it is not the expected one.
local function define(keys, args)
  local current = tonumber(redis.call('HGET', keys[1], 'current')) or 0
  if current ~= tonumber(args[1]) then return -math.max(current, 1) end
  local new = current + 1
  redis.call('HSET', keys[1], new, args[2], 'meta:' .. new, args[3], 'current', new)
  redis.call('PUBLISH', args[4], 'definitions')
  return new
end

-- Settling must work also when the server's memory is used up: it is what frees it. What appends is bounded by `limit`.
redis.register_function { function_name = 'sluice_v1_commit', callback = commit, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_beat', callback = beat, flags = { 'allow-oom' } }
redis.register_function('sluice_v1_leave', leave)
redis.register_function { function_name = 'sluice_v1_read', callback = read, flags = { 'no-writes' } }
redis.register_function('sluice_v1_claim', claim)
redis.register_function { function_name = 'sluice_v1_drop', callback = drop, flags = { 'allow-oom' } }
redis.register_function('sluice_v1_define', define)
