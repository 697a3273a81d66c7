-- Moving logs between shards: the target takes entries as they are, under their numbers, while nobody writes to them. `moving` of the
-- target holds what the move is known by: who moved before, and stood still meanwhile, finds another there.

-- Refuses a call of another move than the one that is under way.
local OTHER_MOVE = 'GIVENUP this move of logs was given up'

local function is_given_up(moving, token)
  return redis.call('GET', moving) ~= token
end

-- Keep the number of a move that the shard takes part in.
local function note_move(state, number)
  if tonumber(number) > (tonumber(redis.call('HGET', state, 'moves')) or 0) then redis.call('HSET', state, 'moves', number) end
  count_change(state)
end

-- know_moves(KEYS = state, ARGV = session, number): logs leave by this move, or moves up to this number were made.
local function know_moves(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  note_move(keys[1], args[2])
  return 1
end
writes('know_moves', know_moves)

-- begin_move(KEYS = state, moving, ARGV = session, token, number): take logs by this move from now on, and by no other one.
local function begin_move(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  redis.call('SET', keys[2], args[2])
  note_move(keys[1], args[3])
  return 1
end
writes('begin_move', begin_move)

-- confirm_move(KEYS = state, moving, ARGV = session, token, SEQ): messages get numbers above this one; a change after all that the move has
-- brought, for replicas to confirm.
local function confirm_move(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  if is_given_up(keys[2], args[2]) then return redis.error_reply(OTHER_MOVE) end
  if tonumber(args[3]) > (tonumber(redis.call('HGET', keys[1], 'seq')) or 0) then redis.call('HSET', keys[1], 'seq', args[3]) end
  count_change(keys[1])
  return 1
end
writes('confirm_move', confirm_move)

-- open_copy(KEYS = state, moving, logs, ARGV = session, token, log's name, number, number of the source's copy): let a log be brought by this
-- move; what is there of it is to be removed. Returns 1, or 0 where a copy is there that is not older than the source's.
local function open_copy(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  if is_given_up(keys[2], args[2]) then return redis.error_reply(OTHER_MOVE) end
  local known = copy_number(keys[3], args[3])
  if redis.call('HEXISTS', keys[3], args[3]) == 1 and not string.find(known, '?', 1, true) and tonumber(known) >= tonumber(args[5]) then
    return 0
  end
  redis.call('HSET', copies_of(keys[3]), args[3], args[4] .. '?')
  count_change(keys[1])
  return 1
end
writes('open_copy', open_copy)

-- accept_copies(KEYS = state, logs, ARGV = session, number, log...): nodes write to what this move has brought.
local function accept_copies(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  for at = 3, #args do
    if copy_number(keys[2], args[at]) == args[2] .. '?' then redis.call('HSET', copies_of(keys[2]), args[at], args[2]) end
  end
  count_change(keys[1])
  return 1
end
writes('accept_copies', accept_copies)

-- take_log(KEYS = state, moving, logs, marks, log, expiring, returned, prioritized, urgent, used, ARGV = session, token, number, log's name,
--          JSON, mark, '1' if it is kept in order of priority, n times entry and deliveries that came back): take a log, without entries.
--          Expiring, returned and urgent are the log's.
local function take_log(keys, args)
  local state, name = keys[1], args[4]
  if is_fenced(state, args[1]) then return redis.error_reply(FENCED) end
  if is_given_up(keys[2], args[2]) then return redis.error_reply(OTHER_MOVE) end
  redis.call('HSET', keys[3], name, args[5])
  redis.call('HSET', copies_of(keys[3]), name, args[3] .. '?')
  if args[6] ~= '' then redis.call('HSET', keys[4], name, args[6]) end
  if args[7] == '1' then add_priority_index(state, keys[8], name) end
  local returned = 0
  for at = 8, #args, 2 do returned = returned + redis.call('HSET', keys[7], args[at], args[at + 1]) end
  redis.call('HINCRBY', state, 'returned', returned)
  count_change(state)
  return 1
end
writes('take_log', take_log)

-- take_entries(KEYS = state, moving, log, used, expiring logs, the log's expiring, prioritized, its urgent, its returned, ARGV = session,
--              token, log's name, payload prefix, n times SEQ, stored form ('': the payload is there), payload's number or '', original, shown).
local function take_entries(keys, args)
  local state, log, name = keys[1], keys[3], args[3]
  if is_fenced(state, args[1]) then return redis.error_reply(FENCED) end
  if is_given_up(keys[2], args[2]) then return redis.error_reply(OTHER_MOVE) end
  local bytes, temp, held, expiring = 0, 0, 0, 0
  local is_prioritized = redis.call('SISMEMBER', keys[7], name) == 1
  for at = 5, #args, 5 do
    local seq, stored, number, original, shown = args[at], args[at + 1], args[at + 2], args[at + 3], args[at + 4]
    local id, field, value = seq .. '-0', 'm', stored
    if number ~= '' then
      local payload = args[4] .. number
      field, value = 'r', number
      if redis.call('HINCRBY', payload, 'c', 1) == 1 then
        redis.call('HSET', payload, 'm', stored)
        bytes, temp = bytes + #stored, temp + volatile(stored)
      elseif stored == '' then
        stored = redis.call('HGET', payload, 'm')
      end
    else
      bytes, temp = bytes + #stored, temp + volatile(stored)
    end
    if shown ~= '' then
      redis.call('XADD', log, id, field, value, 'o', original, 'd', shown)
    elseif original ~= '' then
      redis.call('XADD', log, id, field, value, 'o', original)
    else
      redis.call('XADD', log, id, field, value)
    end
    bytes, held = bytes + ENTRY_BYTES, held + #stored
    local moment = expiry(stored)
    if moment then
      redis.call('ZADD', keys[6], moment, id)
      redis.call('ZADD', keys[5], 'LT', moment, name)
      expiring, bytes = expiring + 1, bytes + EXPIRING_BYTES
    end
    if is_prioritized then
      redis.call('ZADD', keys[8], priority_key(stored, tonumber(seq)), id)
      bytes = bytes + PLACE_BYTES
    end
  end
  redis.call('HINCRBY', keys[4], log, held)
  redis.call('HINCRBY', state, 'bytes', bytes)
  redis.call('HINCRBY', state, 'temp', temp)
  redis.call('HINCRBY', state, 'expiring', expiring)
  count_change(state)
  return 1
end
writes('take_entries', take_entries)

-- take_audit(KEYS = state, moving, audit, ARGV = session, token, n times what was kept of a hand-over): remember hand-overs to logs.
local function take_audit(keys, args)
  if is_fenced(keys[1], args[1]) then return redis.error_reply(FENCED) end
  if is_given_up(keys[2], args[2]) then return redis.error_reply(OTHER_MOVE) end
  local seq = redis.call('HGET', keys[1], 'seq') or 0
  for at = 3, #args do redis.call('ZADD', keys[3], seq, args[at]) end
  return 1
end
writes('take_audit', take_audit)

-- begin_family(KEYS = move, state, ARGV = token, JSON, milliseconds): move a family, unless another move is under way. Returns the number of
-- the move, which grows, or 0.
local function begin_family(keys, args)
  local known = redis.call('GET', keys[1])
  if known and cjson.decode(known).state == 'moving' then return 0 end
  redis.call('SET', keys[1], args[2], 'PX', args[3])
  count_change(keys[2])
  return redis.call('HINCRBY', keys[2], 'moves', 1)
end
writes('begin_family', begin_family)

-- extend_family(KEYS = move, ARGV = token, milliseconds): the move goes on. Returns 1, or 0 when it was given up.
local function extend_family(keys, args)
  local known = redis.call('GET', keys[1])
  local move = known and cjson.decode(known)
  if not move or move.token ~= args[1] or move.state ~= 'moving' then return 0 end
  return redis.call('PEXPIRE', keys[1], args[2])
end
writes('extend_family', extend_family)

-- interrupt_family(KEYS = move, ARGV = why, milliseconds): give up the move that is under way, if one is.
local function interrupt_family(keys, args)
  local known = redis.call('GET', keys[1])
  local move = known and cjson.decode(known)
  if not move or move.state ~= 'moving' then return 0 end
  move.state, move.error = 'failed', args[1]
  redis.call('SET', keys[1], cjson.encode(move), 'PX', args[2])
  return 1
end
writes('interrupt_family', interrupt_family)

-- switch_family(KEYS = move, state, shards:logs, shards:families, definitions, ARGV = token, JSON, milliseconds, epoch, family, shard,
--               version, log...): the logs of a family are in this shard from now on. Returns 1, or 0 when the move was given up, or the
-- members or the definitions are others: a node that routes by others holds other logs.
local function switch_family(keys, args)
  local known = redis.call('GET', keys[1])
  if not known then return 0 end
  local move = cjson.decode(known)
  if move.token ~= args[1] or move.state ~= 'moving' or redis.call('HGET', keys[2], 'epoch') ~= args[4] then return 0 end
  local version = redis.call('HGET', keys[5], 'current')
  if version and version ~= args[7] then return 0 end
  for at = 8, #args do redis.call('HSET', keys[3], args[at], args[6]) end
  redis.call('HSET', keys[4], args[5], args[6])
  redis.call('SET', keys[1], args[2], 'PX', args[3])
  count_change(keys[2])
  return 1
end
writes('switch_family', switch_family)

-- end_family(KEYS = move, ARGV = token, JSON, milliseconds): say how a move ended, unless it ended otherwise. Returns 1, or 0.
local function end_family(keys, args)
  local known = redis.call('GET', keys[1])
  if not known or cjson.decode(known).token ~= args[1] or cjson.decode(known).state ~= 'moving' then return 0 end
  redis.call('SET', keys[1], args[2], 'PX', args[3])
  return 1
end
writes('end_family', end_family)
