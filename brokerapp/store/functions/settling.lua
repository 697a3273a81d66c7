-- What a unit settles: entries that go, and with its last reference a payload. How often some were returned is kept beside the log,
-- under its name; only while the broker has such entries, or ones that expire (its state counts them), does settling look there.

-- Forget what is kept beside these entries.
local function clear_side_keys(batch, index, ids)
  local name = name_of(batch, index)
  if batch.expiring > 0 then
    local gone = redis.call('ZREM', batch.expiring_prefix .. name, unpack(ids))
    batch.expiring, batch.bytes = batch.expiring - gone, batch.bytes - gone * EXPIRING_BYTES
  end
  if batch.returned > 0 then
    batch.returned = batch.returned - redis.call('HDEL', batch.returned_prefix .. name, unpack(ids))
  end
end

-- The ids of entries whose SEQs are the `count` arguments from `at`, or follow each other from the one there on.
local function ids_of(args, at, count, is_sequence)
  local ids, first = {}, is_sequence and tonumber(args[at])
  for i = 1, count do ids[i] = first and string.format('%d-0', first + i - 1) or args[at + i - 1] .. '-0' end
  return ids
end

-- Remove entries of a log, see ids_of, with messages of so many bytes. Returns how many were there.
local function remove(batch, index, at, count, is_sequence, freed)
  local key, args, ids, removed = batch.keys[index], batch.args
  local has_places = batch.some_prioritized and priority_index_of(batch, index)
  local has_side_keys = batch.expiring + batch.returned > 0
  if is_sequence or has_places or has_side_keys then ids = ids_of(args, at, count, is_sequence) end
  if is_sequence and #redis.call('XRANGE', key, '-', '(' .. ids[1], 'COUNT', 1) == 0 then -- nothing is before them: cut the log behind them
    removed = redis.call('XTRIM', key, 'MINID', '=', string.format('%d', tonumber(args[at]) + count))
  elseif ids then
    removed = redis.call('XDEL', key, unpack(ids))
  else
    removed = redis.call('XDEL', key, unpack(args, at, at + count - 1)) -- N means N-0
  end
  if has_side_keys then clear_side_keys(batch, index, ids) end
  if has_places then
    batch.bytes = batch.bytes - redis.call('ZREM', priority_index_of(batch, index), unpack(ids)) * PLACE_BYTES
  end
  batch.bytes = batch.bytes - removed * ENTRY_BYTES
  batch.grown[index] = (batch.grown[index] or 0) - math.floor(freed * removed / count)
  return removed
end

-- Give up references to a payload. Returns the bytes freed with the last one, and those of them that are volatile; the message itself
-- is looked at only while some are.
local function release_payload(payload, references, some_volatile)
  if redis.call('HINCRBY', payload, 'c', -references) > 0 then return 0, 0 end
  local freed = redis.call('HSTRLEN', payload, 'm')
  local temp_freed = some_volatile and volatile(redis.call('HGET', payload, 'm') or '') or 0
  redis.call('DEL', payload)
  return freed, temp_freed
end

-- Settle what the unit says next, unless it was refused.
local function settle_entries(batch, refused)
  -- An entry is settled once. Should one be gone already, give up no references: better a payload too many than one too few.
  local asked, gone = 0, 0
  for _ = 1, next_number(batch) do
    local at, index, freed, count, is_sequence, next_at = settled_group(batch.args, batch.at)
    if not refused then asked, gone = asked + count, gone + remove(batch, index, at, count, is_sequence, freed) end
    batch.at = next_at
  end
  for _ = 1, next_number(batch) do
    local payload, references = batch.payload_prefix .. batch.args[batch.at], tonumber(batch.args[batch.at + 1])
    batch.at = batch.at + 2
    if not refused and gone == asked then
      local freed, temp_freed = release_payload(payload, references, batch.temp > 0)
      batch.bytes, batch.temp = batch.bytes - freed, batch.temp - temp_freed
    end
  end
  local freed, temp_freed = next_number(batch), next_number(batch)
  if not refused and asked > 0 then
    batch.bytes = batch.bytes - math.floor(freed * gone / asked)
    batch.temp = batch.temp - math.floor(temp_freed * gone / asked)
  end
end
