-- What stands in the way of a unit: a limit that it would pass, or a job or branch that is no more (or a new one that is there).
--
-- A unit finds room when the logs it appends to stay within their limits, what the unit settles itself taken off; and,
-- however large it is, in a log that is empty: else it could never be done. What follows a refused unit to the same log in
-- one batch is refused too, lest it overtake it, unless it makes room there itself.

-- What refuses, when it is not a log: what is full, in all and of what is volatile, and a job or branch that is gone.
local STORE, GONE, TEMP = -1, -2, -3

-- Bytes a unit's own settles, which begin at `at` (nil: it has none), free: in all, by index of the log, and volatile ones.
local function freed_bytes(args, at)
  if not at then return 0, {}, 0 end
  local freed, by_log, groups = 0, {}, tonumber(args[at])
  at = at + 1
  for _ = 1, groups do
    local _, index, bytes, count, _, next_at = settled_group(args, at)
    by_log[index] = (by_log[index] or 0) + bytes
    freed, at = freed + count * ENTRY_BYTES, next_at
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

-- Which copies of a message their logs have no room for: {copy: true}, how many, and whether all might be left out; or nil and what
-- refuses the message. Copies kept before are left out, too. `wanted`: bytes the unit appends to logs with a limit, by index.
local function copies_without_room(batch, message, ranges, freed_of, wanted)
  local out, left_out, all, known = {}, 0, message.copies > 0, message.known or {}
  for c = 1, message.copies do
    local index, may_drop = message.logs[c], is_droppable(ranges, c)
    all = all and (may_drop or known[c] == true)
    local freed, log_limit = freed_of[index] or 0, batch.log_limits[index]
    if known[c] then
      out[c], left_out = true, left_out + 1
    elseif batch.shut[index] and freed == 0 then
      if not may_drop then return nil, batch.shut[index] end
      out[c], left_out = true, left_out + 1
    elseif log_limit > 0 then
      local size = #message.stored
      local held, added = used_bytes_of(batch, index) - freed, (wanted[index] or 0) + size
      if held + added > log_limit and (held > 0 or may_drop and added > size) then
        if not may_drop then return nil, index - FIRST_LOG end
        out[c], left_out = true, left_out + 1
      else
        wanted[index] = added
      end
    end
  end
  return out, left_out, all
end

-- For a unit that met a limit: what refuses it, if anything; its messages then know the copies to leave out.
local function check_limits(batch, unit, messages, growth, settles_at)
  local freed, freed_of, temp_freed = freed_bytes(batch.args, settles_at)
  local ranges, wanted = batch.droppable[unit] or {}, {}
  local bytes, temp, limit, temp_limit = batch.bytes + growth - freed, batch.temp - temp_freed, batch.limit, batch.temp_limit
  if growth > 0 and limit > 0 and bytes > limit then return STORE end
  for m, message in ipairs(messages) do
    local stored, copies = message.stored, message.copies
    local out, left_out, all = copies_without_room(batch, message, ranges[m], freed_of, wanted)
    if not out then return left_out end
    local size = left_out < copies and #stored + (copies - left_out) * ENTRY_BYTES or 0
    local temp_size = left_out < copies and volatile(stored) or 0
    local store_full = limit > 0 and bytes + size > limit
    if store_full or temp_limit > 0 and temp_size > 0 and temp + temp_size > temp_limit then
      if not all then return store_full and STORE or TEMP end
      for c = 1, copies do out[c] = true end
      left_out, size, temp_size = copies, 0, 0
    end
    bytes, temp = bytes + size, temp + temp_size
    if left_out > 0 then message.out, message.left_out = out, left_out end
  end
end

-- Whether a unit might pass the limit of a log, its own settles not looked at, or appends to one that is shut.
local function is_rejected_by_log(batch, messages)
  if not (batch.some_log_limited or batch.any_shut) then return false end
  local wanted = {}
  for _, message in ipairs(messages) do
    for c = 1, message.copies do
      local index = message.logs[c]
      local log_limit = batch.log_limits[index]
      if batch.shut[index] then return true end
      if log_limit > 0 then
        wanted[index] = (wanted[index] or 0) + #message.stored
        if used_bytes_of(batch, index) + wanted[index] > log_limit then return true end
      end
    end
  end
  return false
end

-- Bytes that a prepared branch takes.
local function branch_bytes(branch)
  return #branch.summary + #branch.held + JOB_BYTES
end

-- What refuses a unit, if anything. Most are far from every limit: only one that might meet one is judged.
local function refusal_reason(batch, unit, messages, limited, settles_at)
  local growth = 0 -- of jobs and branches
  for _, job in ipairs(batch.jobs_of[unit] or {}) do
    if job.new then growth = growth + #job.record + JOB_BYTES
    elseif redis.call('HEXISTS', batch.jobs, job.id) == 0 then return GONE end
  end
  local branch = batch.branch_of[unit]
  if branch then
    if branch.new == (redis.call('HEXISTS', batch.prepared, branch.id) == 1) then return GONE end
    if branch.new then growth = growth + branch_bytes(branch) end
  end
  if not limited then return nil end
  local added, temp_added, temp_limit = growth, 0, batch.temp_limit
  for _, message in ipairs(messages) do
    added = added + #message.stored + message.copies * ENTRY_BYTES
    if temp_limit > 0 and message.copies > 0 then temp_added = temp_added + volatile(message.stored) end
  end
  local store_met = batch.limit > 0 and added > 0 and batch.bytes + added > batch.limit
  local temp_met = temp_added > 0 and batch.temp + temp_added > temp_limit
  if store_met or temp_met or is_rejected_by_log(batch, messages) then return check_limits(batch, unit, messages, growth, settles_at) end
end

-- Leave a unit out. What follows into the same logs must not overtake what found no room; a job that is gone stands in nobody's way.
local function refuse(batch, unit, messages, why)
  table.insert(batch.refused, { unit, why })
  batch.seq = batch.seq + #messages
  if why == GONE then return end
  batch.any_shut = true
  for _, message in ipairs(messages) do
    for c = 1, message.copies do
      local index = message.logs[c]
      batch.shut[index] = batch.shut[index] or why
    end
  end
end
