-- Emptying a log at once, whatever it holds.

-- Give up what an entry holds or refers to. Returns its message's bytes, those freed, and those of them that are volatile.
local function release_entry(entry, payload_prefix)
  local field, value = entry[2][1], entry[2][2]
  if field ~= 'r' then return #value, #value, volatile(value) end
  local payload = payload_prefix .. value
  return redis.call('HSTRLEN', payload, 'm'), release_payload(payload, 1, true)
end

-- Whether a log exists, and is not discarded.
local function is_there(logs, name)
  local attributes = redis.call('HGET', logs, name)
  return attributes and cjson.decode(attributes).kind ~= 'discarded'
end

-- Remove these entries of a log, some thousands. Expiring, returned and urgent are the log's. Returns their messages' bytes.
local function remove_these(at, payload_prefix, entries)
  local state, log = at.state, at.log
  local freed, temp_freed, held, ids = 0, 0, 0, {}
  for position, entry in ipairs(entries) do
    ids[position] = entry[1]
    local size, size_freed, its_temp = release_entry(entry, payload_prefix)
    held, freed, temp_freed = held + size, freed + size_freed, temp_freed + its_temp
    redis.call('XDEL', log, entry[1])
  end
  if #ids > 0 then
    local unindexed = redis.call('ZREM', at.expiring, unpack(ids))
    freed = freed + unindexed * EXPIRING_BYTES + redis.call('ZREM', at.urgent, unpack(ids)) * PLACE_BYTES
    redis.call('HINCRBY', state, 'expiring', -unindexed)
    redis.call('HINCRBY', state, 'returned', -redis.call('HDEL', at.returned, unpack(ids)))
  end
  redis.call('HINCRBY', state, 'bytes', -(freed + #entries * ENTRY_BYTES))
  redis.call('HSET', state, 'temp', math.max(0, (tonumber(redis.call('HGET', state, 'temp')) or 0) - temp_freed))
  return held
end

-- Remove what a log holds, at most so many entries, and with `is_all` the log, too. Returns entries removed and those left.
local function remove_entries(at, payload_prefix, name, limit, is_all)
  count_change(at.state)
  local entries = redis.call('XRANGE', at.log, '-', '+', 'COUNT', limit)
  local held = remove_these(at, payload_prefix, entries)
  local left = redis.call('XLEN', at.log)
  if left == 0 then
    redis.call('DEL', at.log)
    redis.call('HDEL', at.used, at.log)
    if is_all then
      remove_priority_index(at.state, at.prioritized, at.urgent, name)
      redis.call('HDEL', at.logs, name)
      redis.call('HDEL', at.marks, name)
      forget_copy(at.logs, name)
    end
  else
    redis.call('HINCRBY', at.used, at.log, -held)
  end
  return { #entries, left }
end

-- drop(KEYS = state, logs, used, marks, log, nodes, expiring, returned, prioritized, urgent, ARGV = session ('': no node runs),
--      payload prefix, log's name, limit, keep, prefix of beats, channel, discarded). Expiring, returned and urgent are the log's.
-- Removes a log with what it holds, at most `limit` entries a call; with keep=1 only what it holds.
-- With discarded=1 nothing of one that is there again since it was discarded.
-- Returns entries removed and those left.
local function drop(keys, args)
  local at = {
    state = keys[1], logs = keys[2], used = keys[3], marks = keys[4], log = keys[5], expiring = keys[7], returned = keys[8],
    prioritized = keys[9], urgent = keys[10],
  }
  if args[1] == '' then
    if not fence_the_silent(at.state, keys[6], args[6], args[7]) then return redis.error_reply('FENCED a node of this broker is running') end
  elseif is_fenced(at.state, args[1]) then
    return redis.error_reply(FENCED)
  end
  if args[8] == '1' and is_there(at.logs, args[3]) then return { 0, 0 } end
  return remove_entries(at, args[2], args[3], args[4], args[5] ~= '1')
end
writes('drop', drop)

-- drop_copy(KEYS = state, logs, used, marks, log, moving, expiring, returned, prioritized, urgent, ARGV = session, payload prefix, log's name,
--           limit, number of the copy, token or '').
-- Removes the copy of a log that has this number, at most `limit` entries a call; with a token only as long as no other move brings logs
-- here. Returns entries removed and those left, or false when the copy is another one by now, or another move does.
local function drop_copy(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  if copy_number(keys[2], args[3]) ~= args[5] then return false end
  if args[6] ~= '' and redis.call('GET', keys[6]) ~= args[6] then return false end
  local at = {
    state = keys[1], logs = keys[2], used = keys[3], marks = keys[4], log = keys[5], expiring = keys[7], returned = keys[8],
    prioritized = keys[9], urgent = keys[10],
  }
  return remove_entries(at, args[2], args[3], args[4], true)
end
writes('drop_copy', drop_copy)

-- entry_numbers(KEYS = log, ARGV = SEQ to read after, count): the SEQs of entries, in order.
local function entry_numbers(keys, args)
  local found = {}
  for position, entry in ipairs(redis.call('XRANGE', keys[1], '(' .. args[1] .. '-0', '+', 'COUNT', args[2])) do found[position] = seq_of(entry[1]) end
  return found
end
reads('entry_numbers', entry_numbers)

-- keep_only(KEYS = state, moving, log, used, expiring logs, the log's expiring, prioritized, its urgent, its returned, ARGV = session, token,
--           log's name, payload prefix, first and last SEQ, count, SEQ...): keep of the entries between these two, or the first so many of them,
-- only those named, in a log that a move brings. Returns the SEQ it came to.
local function keep_only(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  if is_given_up(keys[2], args[2]) then return redis.error_reply(OTHER_MOVE) end
  local at = { state = keys[1], log = keys[3], expiring = keys[6], urgent = keys[8], returned = keys[9] }
  local kept, gone = {}, {}
  for i = 8, #args do kept[args[i]] = true end
  local entries = redis.call('XRANGE', at.log, args[5] .. '-0', args[6] .. '-0', 'COUNT', args[7])
  for _, entry in ipairs(entries) do
    if not kept[seq_of(entry[1])] then gone[#gone + 1] = entry end
  end
  if #gone > 0 then redis.call('HINCRBY', keys[4], at.log, -remove_these(at, args[4], gone)) end
  count_change(keys[1])
  if #entries < tonumber(args[7]) then return args[6] end
  return seq_of(entries[#entries][1])
end
writes('keep_only', keep_only)
