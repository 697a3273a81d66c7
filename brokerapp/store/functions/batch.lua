-- The batch of a commit: what the call says, and what has become of the broker so far.
--
-- commit(KEYS = state, logs, used, marks, expiring, due, jobs, prioritized, audit, prepared, prepared:held, intents, log...,
--        ARGV = session, batch, limit, prefixes of payloads, logs, expiring, returned and urgent, full, limit of what is volatile, batch before,
--               payload base, ...)
--
-- `limit` and the limit of what is volatile: bytes that may be stored (0: no limit). `full` (0: nobody needs to look): how many bytes
-- the server may use, by whatever takes them, before nothing more is kept. `batch before` ('': not said): what the session was answered
-- last; a store that knows of another one was rolled back. `payload base`: what is added to a message's SEQ for the number of its payload. ARGV goes on with
--   n, then n times: log's name, its key, JSON         logs that exist, with these attributes; JSON '': to remove if empty
--   n, then n times: log's name, mark                  marks to set
--   n, then n times: log's name, SEQ, deliveries       entries that were returned
--   n, then n times: unit (from 1), job's id, 1 if it is a new one, due, record
--                                                      jobs to keep; record '': to end. One that is not new must be there.
--   n, then n times: unit (from 1), branch, 1 if it is prepared with it, summary, what it holds
--                                                      branches to keep; summary '': to end. A new one must not be there yet, another must.
--   n, then n times: unit (from 1), intent, content  what other shards are to do of it, to keep; content '': to end
--   limit in bytes of each log of KEYS (0: none)
--   n, then n times: unit, message in it, first and last copy of it that are not kept rather than refuse the unit (from 1)
--   n, then n times: unit, what its messages are known by: another broker hands them over, and each copy is kept once; or what the unit
--                    is known by as a part of a write to several shards, which is kept once
--   n, then n times: index of a log             of which the node wants to know what stood last in it before
--   n, then n units, or runs of units that are alike. A unit is done whole or not at all:
--     n (-n: whatever the limits say), then n messages: stored form,
--       n, then n copies: index of the log, original destination, shown destination
--     n, then n groups of settled entries: index of the log, bytes freed, n, then n SEQs; -n, then the first of n SEQs that
--       follow each other
--     n, then n payloads: SEQ, references given up
--     bytes freed by entries that held their message themselves, and those of them that are volatile
--   A run has RUN instead of the first number; then n, the copies that each of its messages makes as above, and n times
--   the stored form of a message. Each is a unit with a number of its own.
local FIRST_LOG = 13
local RUN = 'run'
local MINUS = 45
local ASKED = -1
-- How the keys begin of parts of writes to several shards (INTENT_KEY in part_write.py).
local INTENT = 'intent '
local ROLLED_BACK = 'ROLLEDBACK the store does not hold the last batch of this session'

-- The batch as it begins; nil with an answer when there is nothing to do: the session is fenced, or the batch was done before.
local function open_batch(keys, args)
  local state, session = keys[1], args[1]
  local known = redis.call('HMGET', state, 'session:' .. session, 'batch:' .. session, 'reply:' .. session, 'seq', 'bytes', 'expiring', 'returned', 'prioritized', 'temp', 'changes')
  if not known[1] then return nil, redis.error_reply(FENCED) end
  if known[2] == args[2] then
    redis.call('HSET', state, 'batch:' .. session, args[2]) -- a write: replicas are waited for up to the last one of a connection
    return nil, cjson.decode(known[3])
  end
  if args[11] ~= '' and (known[2] or '0') ~= args[11] then return nil, redis.error_reply(ROLLED_BACK) end
  local batch = {
    keys = keys, args = args, at = 13, -- where the next argument stands
    state = state, logs = keys[2], used = keys[3], marks = keys[4], expiring_logs = keys[5], due = keys[6], jobs = keys[7],
    prioritized = keys[8], audit = keys[9], resendable = keys[9] .. ':clients', spread = keys[9] .. ':intents', prepared = keys[10], prepared_held = keys[11], intents = keys[12],
    payload_prefix = args[4], log_prefix = args[5], expiring_prefix = args[6], returned_prefix = args[7], urgent_prefix = args[8],
    limit = tonumber(args[3]), temp_limit = tonumber(args[10]), payload_base = tonumber(args[12]),
    -- the broker's counters: the last number, bytes of all messages and of the volatile ones, entries that expire and that were returned
    base = tonumber(known[4]) or 0, seq = tonumber(known[4]) or 0, bytes = tonumber(known[5]) or 0, temp = tonumber(known[9]) or 0, changes = (tonumber(known[10]) or 0) + 1,
    expiring = tonumber(known[6]) or 0, returned = tonumber(known[7]) or 0,
    some_prioritized = (tonumber(known[8]) or 0) > 0,
    jobs_of = {}, -- by unit: what becomes of jobs
    branch_of = {}, -- by unit: what becomes of a prepared branch
    intent_of = {}, -- by unit: what other shards are to do of it
    droppable = {}, -- by unit and message: ranges of copies
    log_limits = {}, some_log_limited = false, -- by index
    grown = {}, -- by index: bytes
    last = {}, some_asked = false, -- by index, of logs that are asked about: what stood last before this batch; ASKED: it appended nothing yet
    urgent = {}, -- by index: the key of the places of a prioritized log, or false
    shut = {}, any_shut = false, -- by index: what refused those who appended to this log
    handovers = {}, some_handed_over = false, -- by unit: what its messages are known by
    part_of = {}, -- by unit: what it is known by as a part of a write to several shards
    refused = {}, dropped = {}, repeated = {}, -- what is answered: {unit, why}, {unit, message, copy} twice
  }
  local full = tonumber(args[9])
  if full > 0 and used_memory() >= full then batch.limit = 1 end
  return batch
end

local function next_number(batch)
  local at = batch.at
  batch.at = at + 1
  return tonumber(batch.args[at])
end

-- Each of the next n rows of so many arguments, as where it begins.
local function rows(batch, step)
  local count = next_number(batch)
  local at = batch.at
  batch.at = at + count * step
  local row = 0
  return function()
    row = row + 1
    if row <= count then return at + (row - 1) * step end
  end
end

local function name_of(batch, index)
  return string.sub(batch.keys[index], #batch.log_prefix + 1)
end

-- The indices of the logs that the next so many copies of a message go to, in their order.
local function read_copies(batch, copies)
  local args, first, found = batch.args, batch.at, {}
  for c = 1, copies do found[c] = tonumber(args[first + 3 * (c - 1)]) + FIRST_LOG end
  batch.at = first + 3 * copies
  return found
end

-- A group of settled entries: where its SEQs stand, the log's index, bytes, how many entries, whether their SEQs follow each other, and
-- where the next group begins.
local function settled_group(args, at)
  local index, freed, count = tonumber(args[at]) + FIRST_LOG, tonumber(args[at + 1]), tonumber(args[at + 2])
  if count < 0 then return at + 3, index, freed, -count, true, at + 4 end
  return at + 3, index, freed, count, false, at + 3 + count
end

local function used_bytes_of(batch, index)
  return (tonumber(redis.call('HGET', batch.used, batch.keys[index])) or 0) + (batch.grown[index] or 0)
end

-- Note what stands last in a log that the batch is about to append to, if that is asked; 0: nothing.
local function note_previous_seq(batch, index)
  if batch.last[index] ~= ASKED then return end
  local found = redis.call('XREVRANGE', batch.keys[index], '+', '-', 'COUNT', 1)[1]
  batch.last[index] = found and tonumber(string.match(found[1], '^%d+')) or 0
end

-- The key of the places of a prioritized log, or false.
local function priority_index_of(batch, index)
  if batch.urgent[index] == nil then
    local name = name_of(batch, index)
    batch.urgent[index] = redis.call('SISMEMBER', batch.prioritized, name) == 1 and batch.urgent_prefix .. name
  end
  return batch.urgent[index]
end

-- Read what is said of the units before they come: what becomes of jobs and branches, the limits of logs, the copies that may be left out.
local function read_conditions(batch)
  local args, jobs_of = batch.args, batch.jobs_of
  for at in rows(batch, 5) do
    local unit = tonumber(args[at])
    jobs_of[unit] = jobs_of[unit] or {}
    table.insert(jobs_of[unit], { id = args[at + 1], new = args[at + 2] == '1', due = args[at + 3], record = args[at + 4] })
  end
  for at in rows(batch, 5) do
    batch.branch_of[tonumber(args[at])] = { id = args[at + 1], new = args[at + 2] == '1', summary = args[at + 3], held = args[at + 4] }
  end
  for at in rows(batch, 3) do
    batch.intent_of[tonumber(args[at])] = { id = args[at + 1], content = args[at + 2] }
  end
  for index = FIRST_LOG, #batch.keys do
    batch.log_limits[index] = next_number(batch)
    batch.some_log_limited = batch.some_log_limited or batch.log_limits[index] > 0
  end
  local droppable = batch.droppable
  for at in rows(batch, 4) do
    local unit, message = tonumber(args[at]), tonumber(args[at + 1])
    droppable[unit] = droppable[unit] or {}
    droppable[unit][message] = droppable[unit][message] or {}
    table.insert(droppable[unit][message], { tonumber(args[at + 2]), tonumber(args[at + 3]) })
  end
  for at in rows(batch, 2) do
    local known_by = string.sub(args[at + 1], 1, #INTENT) == INTENT and batch.part_of or batch.handovers
    known_by[tonumber(args[at])], batch.some_handed_over = args[at + 1], true
  end
  for at in rows(batch, 1) do
    batch.last[tonumber(args[at]) + FIRST_LOG], batch.some_asked = ASKED, true
  end
end
