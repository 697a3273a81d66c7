-- What a unit brings: messages, each with its copies, jobs, and branches of transactions.

-- Note when an entry expires.
local function note_expiration(batch, index, id, moment)
  local name = name_of(batch, index)
  redis.call('ZADD', batch.expiring_prefix .. name, moment, id)
  redis.call('ZADD', batch.expiring_logs, 'LT', moment, name)
  batch.expiring, batch.bytes = batch.expiring + 1, batch.bytes + EXPIRING_BYTES
end

-- Keep a message under the next number: in its log, or, when it has several, once as a payload and a reference in each.
local function append_message(batch, unit, m, message)
  local stored, copies, logs, at, out = message.stored, message.copies, message.logs, message.first - 3, message.out
  local args, keys, grown, call = batch.args, batch.keys, batch.grown, redis.call
  local kept, size, seq = copies - (message.left_out or 0), #stored, batch.seq + 1
  batch.seq = seq
  local number, moment = string.format('%d', seq), expiry(stored)
  local id, field, value = number .. '-0', 'm', stored
  if copies > 1 then field, value = 'r', string.format('%d', seq + batch.payload_base) end
  if copies > 1 and kept > 0 then call('HSET', batch.payload_prefix .. value, 'm', stored, 'c', kept) end
  if kept > 0 then batch.bytes, batch.temp = batch.bytes + size + kept * ENTRY_BYTES, batch.temp + volatile(stored) end
  for c = 1, copies do
    at = at + 3
    if out and out[c] then
      table.insert(message.known and message.known[c] and batch.repeated or batch.dropped, { unit, m, c })
    else
      local index, original, shown = logs[c], args[at + 1], args[at + 2]
      if batch.some_asked then note_previous_seq(batch, index) end
      if shown ~= '' then
        call('XADD', keys[index], id, field, value, 'o', original, 'd', shown)
      elseif original ~= '' then
        call('XADD', keys[index], id, field, value, 'o', original)
      else
        call('XADD', keys[index], id, field, value)
      end
      grown[index] = (grown[index] or 0) + size
      if batch.some_handed_over then remember_forwarded(batch, unit, m, message, c) end
      if moment then note_expiration(batch, index, id, moment) end
      if batch.some_prioritized and priority_index_of(batch, index) then
        redis.call('ZADD', priority_index_of(batch, index), priority_key(stored, seq), id)
        batch.bytes = batch.bytes + PLACE_BYTES
      end
    end
  end
end

-- Keep a job, change it, or end it.
local function apply_job_change(batch, job)
  local before = redis.call('HSTRLEN', batch.jobs, job.id)
  if before > 0 then batch.bytes = batch.bytes - before - JOB_BYTES end
  if job.record == '' then
    redis.call('HDEL', batch.jobs, job.id)
    redis.call('ZREM', batch.due, job.id)
  else
    redis.call('HSET', batch.jobs, job.id, job.record)
    redis.call('ZADD', batch.due, job.due, job.id)
    batch.bytes = batch.bytes + #job.record + JOB_BYTES
  end
end

-- Keep a branch that is prepared, or end it.
local function apply_branch_change(batch, branch)
  if branch.new then
    redis.call('HSET', batch.prepared, branch.id, branch.summary)
    redis.call('HSET', batch.prepared_held, branch.id, branch.held)
    batch.bytes = batch.bytes + branch_bytes(branch)
  else
    batch.bytes = batch.bytes - redis.call('HSTRLEN', batch.prepared, branch.id) - redis.call('HSTRLEN', batch.prepared_held, branch.id) - JOB_BYTES
    redis.call('HDEL', batch.prepared, branch.id)
    redis.call('HDEL', batch.prepared_held, branch.id)
  end
end

-- Keep what other shards are to do of a unit. It takes space for a moment only: it is not counted. Or end intents, whose ids have spaces
-- between them: nobody asks for their parts again.
local function apply_intent_change(batch, intent)
  if intent.content ~= '' then
    redis.call('HSET', batch.intents, intent.id, intent.content)
    return
  end
  for id in string.gmatch(intent.id, '%S+') do
    redis.call('HDEL', batch.intents, id)
    redis.call('ZREM', batch.spread, INTENT .. id)
  end
end

-- Append what a unit brings, unless something refuses it: then say what. `messages` are {stored form, how many copies, where they
-- begin}, and know the copies to leave out, and how many those are, once they were judged.
local function append(batch, unit, messages, limited, settles_at)
  if batch.some_handed_over then find_duplicates(batch, unit, messages) end
  local refused = refusal_reason(batch, unit, messages, limited, settles_at)
  if refused then
    refuse(batch, unit, messages, refused)
  else
    for m, message in ipairs(messages) do append_message(batch, unit, m, message) end
    remember_part(batch, unit, messages)
    for _, job in ipairs(batch.jobs_of[unit] or {}) do apply_job_change(batch, job) end
    if batch.intent_of[unit] then apply_intent_change(batch, batch.intent_of[unit]) end
    if batch.branch_of[unit] then apply_branch_change(batch, batch.branch_of[unit]) end
  end
  return refused
end
