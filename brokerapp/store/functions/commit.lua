-- commit: do a batch, see batch.lua for how it is called. Safe to repeat: a batch already done is answered from memory.
-- Returns the SEQ before the batch's first message; of each unit refused its number (from 1) and why: what is full, a
-- log's index, STORE, TEMP (what is volatile), or GONE for a job that is no more; of each copy not kept for want of room the numbers
-- of unit, message and copy; the bytes that all messages take now; of each log with a limit its index and the bytes it holds;
-- the bytes that are volatile; of each copy not kept because it was handed over before the numbers of unit, message and copy; and,
-- if asked, of each log appended to its index and the SEQ that stood last in it before (0: none). Last, how many changes were made.

-- Do a run, whose first argument is read. Returns the number of its last unit.
local function do_run(batch, unit)
  local args = batch.args
  local count, copies = next_number(batch), next_number(batch)
  local first, logs = batch.at, read_copies(batch, copies)
  local last = batch.at + count - 1
  for at = batch.at, last do
    unit = unit + 1
    append(batch, unit, { { stored = args[at], copies = copies, first = first, logs = logs } }, true)
  end
  batch.at = last + 1
  return unit
end

local function do_unit(batch, unit)
  local args = batch.args
  local limited, messages = string.byte(args[batch.at]) ~= MINUS, {}
  for m = 1, math.abs(next_number(batch)) do
    local stored = args[batch.at]
    batch.at = batch.at + 1
    local copies = next_number(batch)
    messages[m] = { stored = stored, copies = copies, first = batch.at, logs = read_copies(batch, copies) }
  end
  settle_entries(batch, append(batch, unit, messages, limited, batch.at))
end

local function commit(keys, args)
  local batch, answer = open_batch(keys, args)
  if not batch then return answer end
  declare_logs(batch)
  read_conditions(batch)
  local unit = 0
  for _ = 1, next_number(batch) do
    if args[batch.at] == RUN then
      batch.at = batch.at + 1
      unit = do_run(batch, unit)
    else
      unit = unit + 1
      do_unit(batch, unit)
    end
  end

  local temp = math.max(batch.temp, 0) -- what came before it was counted is not missed when it goes
  local held = {}
  for index = FIRST_LOG, batch.some_log_limited and #keys or 0 do
    if batch.log_limits[index] > 0 then table.insert(held, { index - FIRST_LOG, used_bytes_of(batch, index) }) end
  end
  local last = {}
  for index, seq in pairs(batch.last) do
    if seq ~= ASKED then table.insert(last, { index - FIRST_LOG, seq }) end
  end
  if batch.some_handed_over then forget_handovers(batch) end
  add_to_used(batch.used, keys, batch.grown)
  local reply = { batch.base, batch.refused, batch.dropped, batch.bytes, held, temp, batch.repeated, last, batch.changes }
  redis.call('HSET', batch.state, 'batch:' .. args[1], args[2], 'reply:' .. args[1], cjson.encode(reply), 'seq', batch.seq, 'bytes', batch.bytes,
    'expiring', batch.expiring, 'returned', batch.returned, 'temp', temp, 'changes', batch.changes)
  return reply
end
writes('commit', commit)
