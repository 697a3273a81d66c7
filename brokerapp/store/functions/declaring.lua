-- What a batch says of logs, before its units: which exist, how far they were delivered, what was returned.

local function declare(batch, name, key, attributes)
  if attributes ~= '' then
    if redis.call('HSET', batch.logs, name, attributes) == 1 then note_new_log(batch.state, batch.logs, name) end
    if cjson.decode(attributes).prioritized then
      add_priority_index(batch.state, batch.prioritized, name)
      batch.some_prioritized = true
    elseif batch.some_prioritized then
      batch.bytes = batch.bytes - remove_priority_index(batch.state, batch.prioritized, batch.urgent_prefix .. name, name)
    end
  elseif redis.call('XLEN', key) == 0 then
    if batch.some_prioritized then remove_priority_index(batch.state, batch.prioritized, batch.urgent_prefix .. name, name) end
    redis.call('DEL', key)
    redis.call('HDEL', batch.logs, name)
    forget_copy(batch.logs, name)
    redis.call('HDEL', batch.used, key)
    redis.call('HDEL', batch.marks, name)
  end
end

local function declare_logs(batch)
  local args = batch.args
  for at in rows(batch, 3) do declare(batch, args[at], args[at + 1], args[at + 2]) end
  for at in rows(batch, 2) do redis.call('HSET', batch.marks, args[at], args[at + 1]) end
  for at in rows(batch, 3) do
    local id = args[at + 1] .. '-0'
    if #redis.call('XRANGE', batch.log_prefix .. args[at], id, id) > 0 then  -- nothing is kept beside what is gone
      batch.returned = batch.returned + redis.call('HSET', batch.returned_prefix .. args[at], id, args[at + 2])
    end
  end
end
