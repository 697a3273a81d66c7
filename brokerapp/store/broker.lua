#!lua name=sluice_v1

-- The broker's writes, one function a verb. `keys.py` says what each key holds; all keys share one hash tag.
-- A function checks first, then writes, so that a refusal leaves nothing behind (scripts are not rolled back).
--
-- A message takes the next number of the broker, SEQ. Its entry in every log has the id SEQ-0: ids grow in every
-- log, all copies of one message carry one number, and the node needs to be told only the first number of a batch.

-- Bytes an entry takes beside the message it holds or refers to (measured: 24 to 60, by how full its node is).
local ENTRY_BYTES = 64
-- Bytes more for an entry that expires, and for one with a place by priority (a row of a sorted set each), and bytes a job takes beside its record (that, and one of a hash).
local EXPIRING_BYTES = 100
local PLACE_BYTES = 100
local JOB_BYTES = 250
-- A message that never expires has a zero here: its stored form begins `persistent priority expires `, the first two a digit each.
local EXPIRES_AT, NEVER = 5, 48
-- One that is not persistent has a zero first.
local VOLATILE = 48
-- Where its priority stands, the digit of the highest, and what lies between two priorities in places: more numbers than there are.
local PRIORITY_AT, HIGHEST, SPAN = 3, 57, 2 ^ 49
local MINUS = 45
-- Fields in one call: Lua hands a command at most some thousand arguments.
local AT_ONCE = 500

local FENCED = 'FENCED another node took this broker over'

-- Which entries of a log expire, and how often some were returned, is kept beside the log, under its name. Only while the broker
-- has such entries (`expiring` and `returned` of its state count them) does settling look there. So are the places of the entries
-- of a log whose attributes say `prioritized`, while there are such logs (`prioritized` of the state counts them).

-- The moment in which a message expires, milliseconds since the epoch; nil: never.
local function expiry(stored)
  if string.byte(stored, EXPIRES_AT) == NEVER then return nil end
  return tonumber(string.match(stored, '^%d %d (%d+) '))
end

-- Bytes of a message that count as volatile: all of one that is not persistent.
local function volatile(stored)
  return string.byte(stored) == VOLATILE and #stored or 0
end

-- The place of a message among those of a log in order of priority, see engine/places.py: exact up to 2^53.
local function place_of(stored, seq)
  return (HIGHEST - string.byte(stored, PRIORITY_AT)) * SPAN + seq
end

-- Bytes given up, of a log that is in order of priority no more, or is no more at all.
local function unprioritize(state, prioritized, urgent, name)
  if redis.call('SREM', prioritized, name) == 0 then return 0 end
  redis.call('HSET', state, 'prioritized', redis.call('SCARD', prioritized))
  local places = redis.call('ZCARD', urgent)
  redis.call('UNLINK', urgent)
  return places * PLACE_BYTES
end

-- commit(KEYS = state, logs, used, marks, expiring, due, jobs, prioritized, log...,
--        ARGV = session, batch, limit, prefixes of payloads, logs, expiring, returned and urgent, full, limit of what is volatile, ...)
--
-- ARGV goes on with
--   n, then n times: log's name, its key, JSON         logs that exist, with these attributes; JSON '': to remove if empty
--   n, then n times: log's name, mark                  marks to set
--   n, then n times: log's name, SEQ, deliveries       entries that were returned
--   n, then n times: unit (from 1), job's id, 1 if it is a new one, due, record
--                                                      jobs to keep; record '': to end. One that is not new must be there.
--   limit in bytes of each log of KEYS (0: none)
--   n, then n times: unit, message in it, first and last copy of it that are not kept rather than refuse the unit (from 1)
--   n, then n units, or runs of units that are alike. A unit is done whole or not at all:
--     n (-n: whatever the limits say), then n messages: stored form,
--       n, then n copies: index of the log, original destination, shown destination
--     n, then n groups of settled entries: index of the log, bytes freed, n, then n SEQs
--     n, then n payloads: SEQ, references given up
--     bytes freed by entries that held their message themselves, and those of them that are volatile
--   A run has RUN instead of the first number; then n, the copies that each of its messages makes as above, and n times
--   the stored form of a message. Each is a unit with a number of its own.
-- Returns the SEQ before the batch's first message; of each unit refused its number (from 1) and why: what is full, a
-- log's index, STORE, TEMP (what is volatile), or GONE for a job that is no more; of each copy not kept for want of room the numbers of unit, message and copy;
-- the bytes that all messages take now; of each log with a limit its index and the bytes it holds; and the bytes that are volatile.
-- Safe to repeat: a batch already done is answered from memory.
--
-- `full` (0: nobody needs to look) is how many bytes the server may use, by whatever takes them, before nothing more is kept.
--
-- A unit finds room when the logs it appends to stay within their limits, what the unit settles itself taken off; and,
-- however large it is, in a log that is empty: else it could never be done. What follows a refused unit to the same log in
-- one batch is refused too, lest it overtake it, unless it makes room there itself.
local FIRST_LOG = 9
local STORE, GONE, TEMP = -1, -2, -3
local RUN = 'run'

-- room(args, at): bytes a unit's own settles, which begin at `at` (nil: it has none), free: in all, by index of the log, and volatile ones.
local function room(args, at)
  if not at then return 0, {}, 0 end
  local freed, by_log, groups = 0, {}, tonumber(args[at])
  at = at + 1
  for _ = 1, groups do
    local index, bytes, count = tonumber(args[at]) + FIRST_LOG, tonumber(args[at + 1]), tonumber(args[at + 2])
    by_log[index] = (by_log[index] or 0) + bytes
    freed = freed + count * ENTRY_BYTES
    at = at + 3 + count
  end
  at = at + 1 + 2 * tonumber(args[at])
  return freed + tonumber(args[at]), by_log, tonumber(args[at + 1])
end

local function is_droppable(ranges, copy)
  for _, range in ipairs(ranges or {}) do
    if range[1] <= copy and copy <= range[2] then return true end
  end
  return false
end

-- add_to_used(used, keys, grown): note by how many bytes the logs of these indices grew, many with one call.
local function add_to_used(used, keys, grown)
  local names, growths = {}, {}
  for index, growth in pairs(grown) do
    if growth ~= 0 then names[#names + 1], growths[#growths + 1] = keys[index], growth end
  end
  for first = 1, #names, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #names)
    local held, pairs_of = redis.call('HMGET', used, unpack(names, first, last)), {}
    for i = first, last do
      pairs_of[#pairs_of + 1] = names[i]
      pairs_of[#pairs_of + 1] = string.format('%d', (tonumber(held[i - first + 1]) or 0) + growths[i])
    end
    redis.call('HSET', used, unpack(pairs_of))
  end
end

local function used_memory()
  return tonumber(string.match(redis.call('INFO', 'memory'), 'used_memory:(%d+)'))
end

local function commit(keys, args)
  local state, logs, used, marks = keys[1], keys[2], keys[3], keys[4]
  local due, jobs, prioritized = keys[6], keys[7], keys[8]
  local known = redis.call('HMGET', state, 'session', 'batch', 'reply', 'seq', 'bytes', 'expiring', 'returned', 'prioritized', 'temp')
  if known[1] ~= args[1] then return redis.error_reply(FENCED) end
  if known[2] == args[2] then return cjson.decode(known[3]) end
  local seq, bytes = tonumber(known[4]) or 0, tonumber(known[5]) or 0
  local expiring, returned = tonumber(known[6]) or 0, tonumber(known[7]) or 0
  local limit, payload_prefix, log_prefix, expiring_prefix, returned_prefix = tonumber(args[3]), args[4], args[5], args[6], args[7]
  local urgent_prefix, some_prioritized = args[8], (tonumber(known[8]) or 0) > 0
  local full, temp_limit, temp = tonumber(args[9]), tonumber(args[10]), tonumber(known[9]) or 0
  if full > 0 and used_memory() >= full then limit = 1 end
  local at = 11
  local function next_number()
    at = at + 1
    return tonumber(args[at - 1])
  end

  for _ = 1, next_number() do
    local name, key, attributes = args[at], args[at + 1], args[at + 2]
    if attributes ~= '' then
      redis.call('HSET', logs, name, attributes)
      if cjson.decode(attributes).prioritized then
        redis.call('SADD', prioritized, name)
        redis.call('HSET', state, 'prioritized', redis.call('SCARD', prioritized))
        some_prioritized = true
      elseif some_prioritized then
        bytes = bytes - unprioritize(state, prioritized, urgent_prefix .. name, name)
      end
    elseif redis.call('XLEN', key) == 0 then
      if some_prioritized then unprioritize(state, prioritized, urgent_prefix .. name, name) end
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
  for _ = 1, next_number() do
    returned = returned + redis.call('HSET', returned_prefix .. args[at], args[at + 1] .. '-0', args[at + 2])
    at = at + 3
  end
  local jobs_of = {}
  for _ = 1, next_number() do
    local unit = tonumber(args[at])
    jobs_of[unit] = jobs_of[unit] or {}
    table.insert(jobs_of[unit], { id = args[at + 1], new = args[at + 2] == '1', due = args[at + 3], record = args[at + 4] })
    at = at + 5
  end
  local log_limits, grown = {}, {}
  local some_log_limited = false
  for index = FIRST_LOG, #keys do
    log_limits[index] = next_number()
    some_log_limited = some_log_limited or log_limits[index] > 0
  end

  local droppable = {}
  for _ = 1, next_number() do
    local unit, message = next_number(), next_number()
    droppable[unit] = droppable[unit] or {}
    droppable[unit][message] = droppable[unit][message] or {}
    table.insert(droppable[unit][message], { next_number(), next_number() })
  end

  local function name_of(index)
    return string.sub(keys[index], #log_prefix + 1)
  end
  local urgent = {} -- by index: the key of the places of a prioritized log, or false
  local function urgent_of(index)
    if urgent[index] == nil then
      local name = name_of(index)
      urgent[index] = redis.call('SISMEMBER', prioritized, name) == 1 and urgent_prefix .. name
    end
    return urgent[index]
  end
  local function expires(index, id, moment)
    local name = name_of(index)
    redis.call('ZADD', expiring_prefix .. name, moment, id)
    redis.call('ZADD', keys[5], 'LT', moment, name)
    expiring, bytes = expiring + 1, bytes + EXPIRING_BYTES
  end
  local function forget(index, ids)
    if expiring > 0 then
      local gone = redis.call('ZREM', expiring_prefix .. name_of(index), unpack(ids))
      expiring, bytes = expiring - gone, bytes - gone * EXPIRING_BYTES
    end
    if returned > 0 then returned = returned - redis.call('HDEL', returned_prefix .. name_of(index), unpack(ids)) end
  end
  local function change(job)
    local before = redis.call('HSTRLEN', jobs, job.id)
    if before > 0 then bytes = bytes - before - JOB_BYTES end
    if job.record == '' then
      redis.call('HDEL', jobs, job.id)
      redis.call('ZREM', due, job.id)
    else
      redis.call('HSET', jobs, job.id, job.record)
      redis.call('ZADD', due, job.due, job.id)
      bytes = bytes + #job.record + JOB_BYTES
    end
  end
  local function log_used(index)
    return (tonumber(redis.call('HGET', used, keys[index])) or 0) + (grown[index] or 0)
  end

  local shut, any_shut = {}, false -- logs, and what refused those who appended to them

  -- For a unit that met a limit: what refuses it, if anything; its messages then know the copies to leave out.
  local function judge(unit, messages, growth, settles_at)
    local freed, freed_of, temp_freed = room(args, settles_at)
    local temp_added = -temp_freed
    local ranges, wanted, added = droppable[unit] or {}, {}, growth - freed
    if growth > 0 and limit > 0 and bytes + added > limit then return STORE end
    for m, message in ipairs(messages) do
      local stored, copies, first = message[1], message[2], message[3]
      local out, left_out, all = {}, 0, copies > 0
      for c = 1, copies do
        local index = tonumber(args[first + 3 * (c - 1)]) + FIRST_LOG
        local may_drop = is_droppable(ranges[m], c)
        all = all and may_drop
        local room_made = freed_of[index] or 0
        if shut[index] and room_made == 0 then
          if not may_drop then return shut[index] end
          out[c], left_out = true, left_out + 1
        elseif log_limits[index] > 0 then
          local held, size = log_used(index) - room_made, (wanted[index] or 0) + #stored
          if held + size > log_limits[index] and (held > 0 or may_drop and size > #stored) then
            if not may_drop then return index - FIRST_LOG end
            out[c], left_out = true, left_out + 1
          else
            wanted[index] = size
          end
        end
      end
      local size = left_out < copies and #stored + (copies - left_out) * ENTRY_BYTES or 0
      local temp_size = left_out < copies and volatile(stored) or 0
      local store_full = limit > 0 and bytes + added + size > limit
      if store_full or temp_limit > 0 and temp_size > 0 and temp + temp_added + temp_size > temp_limit then
        if not all then return store_full and STORE or TEMP end
        for c = 1, copies do out[c] = true end
        left_out, size, temp_size = copies, 0, 0
      end
      added, temp_added = added + size, temp_added + temp_size
      if left_out > 0 then message[4], message[5] = out, left_out end
    end
  end

  local reply = { seq, {}, {}, 0, {}, 0 }
  -- Append what a unit brings, unless something refuses it: then say what. `messages` are
  -- {stored form, copies, where they begin, copies to leave out, how many those are}.
  local function append(unit, messages, limited, settles_at)
    local met, added, temp_added, wanted = false, 0, 0, {}
    for _, message in ipairs(messages) do
      local size, copies, first = #message[1], message[2], message[3]
      added = added + size + copies * ENTRY_BYTES
      if temp_limit > 0 and copies > 0 then temp_added = temp_added + volatile(message[1]) end
      if limited and (some_log_limited or any_shut) then
        for c = 0, copies - 1 do
          local index = tonumber(args[first + 3 * c]) + FIRST_LOG
          local log_limit = log_limits[index]
          if log_limit > 0 then
            wanted[index] = (wanted[index] or 0) + size
            if log_used(index) + wanted[index] > log_limit then met = true end
          end
          if shut[index] then met = true end
        end
      end
    end
    local its_jobs, growth, refused = jobs_of[unit], 0, nil
    for _, job in ipairs(its_jobs or {}) do
      if job.new then growth = growth + #job.record + JOB_BYTES
      elseif redis.call('HEXISTS', jobs, job.id) == 0 then refused = GONE end
    end
    added = added + growth
    met = met or temp_added > 0 and temp + temp_added > temp_limit
    if limited and not refused and (met or limit > 0 and added > 0 and bytes + added > limit) then
      refused = judge(unit, messages, growth, settles_at)
    end

    if refused then
      table.insert(reply[2], { unit, refused })
      -- What follows into the same logs must not overtake what found no room. A job that is gone stands in nobody's way.
      any_shut = any_shut or refused ~= GONE
      for _, message in ipairs(refused ~= GONE and messages or {}) do
        for c = 0, message[2] - 1 do
          local index = tonumber(args[message[3] + 3 * c]) + FIRST_LOG
          shut[index] = shut[index] or refused
        end
      end
      seq = seq + #messages
    else
      for m, message in ipairs(messages) do
        local stored, copies, first, out = message[1], message[2], message[3], message[4]
        local kept = copies - (message[5] or 0)
        seq = seq + 1
        local id = string.format('%d-0', seq)
        local moment = expiry(stored)
        if copies > 1 and kept > 0 then
          redis.call('HSET', payload_prefix .. string.format('%d', seq), 'm', stored, 'c', kept)
        end
        if kept > 0 then bytes, temp = bytes + #stored + kept * ENTRY_BYTES, temp + volatile(stored) end
        for c = 0, copies - 1 do
          local index = tonumber(args[first + 3 * c]) + FIRST_LOG
          local original, shown = args[first + 3 * c + 1], args[first + 3 * c + 2]
          local field, value = 'm', stored
          if copies > 1 then field, value = 'r', seq end
          if out and out[c + 1] then
            table.insert(reply[3], { unit, m, c + 1 })
          else
            if original == '' and shown == '' then
              redis.call('XADD', keys[index], id, field, value)
            else
              redis.call('XADD', keys[index], id, field, value, 'o', original, 'd', shown)
            end
            grown[index] = (grown[index] or 0) + #stored
            if moment then expires(index, id, moment) end
            if some_prioritized and urgent_of(index) then
              redis.call('ZADD', urgent_of(index), string.format('%.0f', place_of(stored, seq)), id)
              bytes = bytes + PLACE_BYTES
            end
          end
        end
      end
      for _, job in ipairs(its_jobs or {}) do change(job) end
    end
    return refused
  end

  local function settle(refused)
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
        if expiring + returned > 0 then forget(index, ids) end
        if some_prioritized and urgent_of(index) then
          bytes = bytes - redis.call('ZREM', urgent_of(index), unpack(ids)) * PLACE_BYTES
        end
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
          if temp > 0 then temp = temp - volatile(redis.call('HGET', payload, 'm') or '') end
          redis.call('DEL', payload)
        end
      end
      at = at + 2
    end
    local freed, temp_freed = next_number(), next_number()
    if not refused and asked > 0 then
      bytes = bytes - math.floor(freed * gone / asked)
      temp = temp - math.floor(temp_freed * gone / asked)
    end
  end

  local unit = 0
  for _ = 1, next_number() do
    if args[at] == RUN then
      local count, copies = tonumber(args[at + 1]), tonumber(args[at + 2])
      local first = at + 3
      at = first + 3 * copies + count
      for message = at - count, at - 1 do
        unit = unit + 1
        append(unit, { { args[message], copies, first } }, true)
      end
    else
      local limited, count, messages = string.byte(args[at]) ~= MINUS, next_number(), {}
      for m = 1, math.abs(count) do
        local copies = tonumber(args[at + 1])
        messages[m] = { args[at], copies, at + 2 }
        at = at + 2 + 3 * copies
      end
      unit = unit + 1
      settle(append(unit, messages, limited, at))
    end
  end

  temp = math.max(temp, 0) -- what came before it was counted is not missed when it goes
  reply[4], reply[6] = bytes, temp
  for index = FIRST_LOG, some_log_limited and #keys or 0 do
    if log_limits[index] > 0 then table.insert(reply[5], { index - FIRST_LOG, log_used(index) }) end
  end
  add_to_used(used, keys, grown)
  redis.call('HSET', state, 'batch', args[2], 'reply', cjson.encode(reply), 'seq', seq, 'bytes', bytes,
    'expiring', expiring, 'returned', returned, 'temp', temp)
  return reply
end

-- An entry with what it refers to: {SEQ, stored form ('': it is gone), payload's SEQ or '', original or '', shown or ''}.
local function row_of(entry, payload_prefix)
  local fields = {}
  for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
  local stored = fields.m
  if fields.r then stored = redis.call('HGET', payload_prefix .. fields.r, 'm') end
  return { string.match(entry[1], '^%d+'), stored or '', fields.r or '', fields.o or '', fields.d or '' }
end

-- read(KEYS = log, ARGV = payload prefix, SEQ to read after, count, bytes)
-- Returns entries, see row_of, in order: at most `count`, and no more once they have that many bytes; none only at the end of the log.
local function read(keys, args)
  local after, left, room = args[2], tonumber(args[3]), tonumber(args[4])
  local result, bytes = {}, 0
  local step = 1 -- grows as far as what was seen so far allows: sizes are not known before
  repeat
    local entries = redis.call('XRANGE', keys[1], '(' .. after .. '-0', '+', 'COUNT', step)
    for _, entry in ipairs(entries) do
      local row = row_of(entry, args[1])
      result[#result + 1] = row
      after, bytes = row[1], bytes + #row[2]
      if bytes >= room then return result end
    end
    local at_end = #entries < step
    left = left - #entries
    step = math.min(left, step * 4, math.ceil((room - bytes) * #result / math.max(bytes, 1)))
  until at_end or step < 1
  return result
end

-- first(KEYS = log, ARGV = payload prefix): the broker's fields of the first message, or nothing.
local function first(keys, args)
  local entry = redis.call('XRANGE', keys[1], '-', '+', 'COUNT', 1)[1]
  local stored = entry and row_of(entry, args[1])[2]
  return stored and string.match(stored, '^[^\n]*') or false
end

-- urgent(KEYS = log, its urgent, ARGV = payload prefix, place to read after, count, bytes)
-- Returns entries in order of priority, see row_of: at most `count`, and no more once they have that many bytes; none only at the end.
local function urgent(keys, args)
  local result, bytes = {}, 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '(' .. args[2], '+inf', 'LIMIT', 0, args[3])) do
    local entry = redis.call('XRANGE', keys[1], id, id)[1]
    if entry then
      local row = row_of(entry, args[1])
      result[#result + 1] = row
      bytes = bytes + #row[2]
      if bytes >= tonumber(args[4]) then break end
    end
  end
  return result
end

-- prioritize(KEYS = state, prioritized, log, its urgent, ARGV = session, log's name, payload prefix, SEQ to go on after, count)
-- Gives a place to `count` entries of a prioritized log that had messages before. Returns the SEQ it came to; 0: all have one.
local function prioritize(keys, args)
  if redis.call('HGET', keys[1], 'session') ~= args[1] then return redis.error_reply(FENCED) end
  if redis.call('SISMEMBER', keys[2], args[2]) == 0 then return 0 end
  if redis.call('ZCARD', keys[4]) == redis.call('XLEN', keys[3]) then return 0 end
  local entries = redis.call('XRANGE', keys[3], '(' .. args[4] .. '-0', '+', 'COUNT', args[5])
  local new = 0
  for _, entry in ipairs(entries) do
    local row = row_of(entry, args[3])
    if row[2] ~= '' then
      new = new + redis.call('ZADD', keys[4], string.format('%.0f', place_of(row[2], tonumber(row[1]))), entry[1])
    end
  end
  redis.call('HINCRBY', keys[1], 'bytes', new * PLACE_BYTES)
  return #entries < tonumber(args[5]) and 0 or tonumber(string.match(entries[#entries][1], '^%d+'))
end

-- late(KEYS = expiring, ARGV = prefix of expiring, now): the logs that hold messages past their time, in order of time.
local function late(keys, args)
  local names = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', keys[1], '-inf', args[2])) do
    local first = redis.call('ZRANGE', args[1] .. name, 0, 0, 'WITHSCORES')
    if not first[2] then
      redis.call('ZREM', keys[1], name)
    elseif tonumber(first[2]) > tonumber(args[2]) then
      redis.call('ZADD', keys[1], first[2], name)
    else
      names[#names + 1] = name
    end
  end
  return names
end

-- expired(KEYS = log, its expiring, ARGV = payload prefix, now, how many to pass over, count, bytes)
-- Returns entries past their time, the latest last, see row_of: at most `count`, and no more once they have that many bytes.
local function expired(keys, args)
  local result, bytes = {}, 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '-inf', args[2], 'LIMIT', args[3], args[4])) do
    local entry = redis.call('XRANGE', keys[1], id, id)[1]
    if entry then
      local row = row_of(entry, args[1])
      result[#result + 1] = row
      bytes = bytes + #row[2]
      if bytes >= tonumber(args[5]) then break end
    end
  end
  return result
end

-- waiting(KEYS = due, jobs, ARGV = from, until, how many to pass over, count, bytes)
-- Returns jobs {id, due, record} that are due from one moment to another, in that order; bounded like `read`.
local function waiting(keys, args)
  local found = redis.call('ZRANGEBYSCORE', keys[1], args[1], args[2], 'WITHSCORES', 'LIMIT', args[3], args[4])
  local result, bytes = {}, 0
  for i = 1, #found, 2 do
    local record = redis.call('HGET', keys[2], found[i])
    result[#result + 1] = { found[i], found[i + 1], record }
    bytes = bytes + #record
    if bytes >= tonumber(args[5]) then break end
  end
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

-- drop(KEYS = state, logs, used, marks, log, node, expiring, returned, prioritized, urgent, ARGV = session ('': no node runs), payload prefix, log's name,
--      limit, keep). Expiring, returned and urgent are the log's.
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
  local freed, temp_freed, held, ids = 0, 0, 0, {}
  for position, entry in ipairs(entries) do
    ids[position] = entry[1]
    local field, value = entry[2][1], entry[2][2]
    local size = #value
    if field == 'r' then
      local payload = args[2] .. value
      size = redis.call('HSTRLEN', payload, 'm')
      if redis.call('HINCRBY', payload, 'c', -1) <= 0 then
        temp_freed = temp_freed + volatile(redis.call('HGET', payload, 'm') or '')
        redis.call('DEL', payload)
        freed = freed + size
      end
    else
      freed, temp_freed = freed + size, temp_freed + volatile(value)
    end
    held = held + size
    redis.call('XDEL', log, entry[1])
  end
  if #ids > 0 then
    local unindexed = redis.call('ZREM', keys[7], unpack(ids))
    freed = freed + unindexed * EXPIRING_BYTES + redis.call('ZREM', keys[10], unpack(ids)) * PLACE_BYTES
    redis.call('HINCRBY', state, 'expiring', -unindexed)
    redis.call('HINCRBY', state, 'returned', -redis.call('HDEL', keys[8], unpack(ids)))
  end
  redis.call('HINCRBY', state, 'bytes', -(freed + #entries * ENTRY_BYTES))
  redis.call('HSET', state, 'temp', math.max(0, (tonumber(redis.call('HGET', state, 'temp')) or 0) - temp_freed))
  local left = redis.call('XLEN', log)
  if left == 0 then
    redis.call('DEL', log)
    redis.call('HDEL', used, log)
    if args[5] ~= '1' then
      unprioritize(state, keys[9], keys[10], args[3])
      redis.call('HDEL', logs, args[3])
      redis.call('HDEL', marks, args[3])
    end
  else
    redis.call('HINCRBY', used, log, -held)
  end
  return { #entries, left }
end

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

-- ask(KEYS = request, requests, ARGV = id, JSON, milliseconds it is kept): let the node be asked.
local function ask(keys, args)
  redis.call('SET', keys[1], args[2], 'PX', args[3])
  return redis.call('RPUSH', keys[2], args[1])
end

-- answer(KEYS = reply, ARGV = JSON, seconds it is kept)
local function answer(keys, args)
  redis.call('RPUSH', keys[1], args[1])
  return redis.call('EXPIRE', keys[1], args[2])
end

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

-- lease(KEYS = lease, ARGV = holder, milliseconds): have it, or have it longer. Returns 1, or 0 while another has it.
local function lease(keys, args)
  local holder = redis.call('GET', keys[1])
  if holder and holder ~= args[1] then return 0 end
  redis.call('SET', keys[1], args[1], 'PX', args[2])
  return 1
end

-- Settling must work also when the server's memory is used up: it is what frees it. So must all that operators and nodes do to
-- get there: being asked to purge, starting anew, saying what there is, other limits. What appends is bounded by `limit` and `full`.
redis.register_function { function_name = 'sluice_v1_commit', callback = commit, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_beat', callback = beat, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_leave', callback = leave, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_read', callback = read, flags = { 'no-writes' } }
redis.register_function { function_name = 'sluice_v1_urgent', callback = urgent, flags = { 'no-writes' } }
redis.register_function { function_name = 'sluice_v1_prioritize', callback = prioritize, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_late', callback = late, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_expired', callback = expired, flags = { 'no-writes' } }
redis.register_function { function_name = 'sluice_v1_waiting', callback = waiting, flags = { 'no-writes' } }
redis.register_function { function_name = 'sluice_v1_claim', callback = claim, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_drop', callback = drop, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_define', callback = define, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_numbers', callback = numbers, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_ask', callback = ask, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_answer', callback = answer, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_lease', callback = lease, flags = { 'allow-oom' } }
redis.register_function { function_name = 'sluice_v1_first', callback = first, flags = { 'no-writes' } }
