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

-- Remove `count` entries of a log, whose SEQs begin at `at`, with messages of so many bytes. Returns how many were there.
local function remove(batch, index, at, count, freed)
  local removed = redis.call('XDEL', batch.keys[index], unpack(batch.args, at, at + count - 1)) -- N means N-0
  local has_places = batch.some_prioritized and priority_index_of(batch, index)
  if has_places or batch.expiring + batch.returned > 0 then
    local ids = {}
    for i = 1, count do ids[i] = batch.args[at + i - 1] .. '-0' end
    if batch.expiring + batch.returned > 0 then clear_side_keys(batch, index, ids) end
    if has_places then
      batch.bytes = batch.bytes - redis.call('ZREM', priority_index_of(batch, index), unpack(ids)) * PLACE_BYTES
    end
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
    local index, freed, count = next_number(batch) + FIRST_LOG, next_number(batch), next_number(batch)
    if not refused then asked, gone = asked + count, gone + remove(batch, index, batch.at, count, freed) end
    batch.at = batch.at + count
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
