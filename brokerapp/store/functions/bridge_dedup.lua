-- Hand-overs: messages that another broker of the network passes on, and passes on again when it could not hear that they were kept.
-- What is kept is remembered, by log, and not kept a second time.
-- So are messages of clients that send again what they do not know to be kept when their connection broke (failover:). They are
-- remembered by themselves, so that busy clients do not push out what bridges handed over.

-- Copies that are remembered: those that came last. A broker has no more under way, not heard of, than it may hold unacknowledged:
-- the prefetch (1000 if nobody says otherwise) for each destination. So this does for a hundred that are busy; it takes some 15 MB.
local REMEMBERED = 100000
-- How the keys of messages of clients begin (RESENDABLE in publisher.py).
local RESENDABLE = 'resent '

local function audit_for(batch, key)
  if string.sub(key, 1, #RESENDABLE) == RESENDABLE then return batch.resendable end
  return batch.audit
end

local function dedup_entry(batch, m, message, c, key)
  return table.concat({ name_of(batch, message.logs[c]), m, key }, ' ')
end

-- Mark the copies of a unit's messages that were kept before, to be left out.
local function find_duplicates(batch, unit, messages)
  local key, part = batch.handovers[unit], batch.part_of[unit]
  local is_done = part and redis.call('ZSCORE', batch.spread, part)
  if not (key or is_done) then return end
  local audit = key and audit_for(batch, key)
  for m, message in ipairs(messages) do
    local known, count = {}, 0
    for c = 1, message.copies do
      if is_done or redis.call('ZSCORE', audit, dedup_entry(batch, m, message, c, key)) then known[c], count = true, count + 1 end
    end
    if count > 0 then message.known, message.out, message.left_out = known, known, count end
  end
end

-- Remember that a copy is kept.
local function remember_forwarded(batch, unit, m, message, c)
  local key = batch.handovers[unit]
  if key then redis.call('ZADD', audit_for(batch, key), batch.seq, dedup_entry(batch, m, message, c, key)) end
end

-- Remember that a part of a write to several shards is done, until its intent ends. What is forgotten before that, as so many others are
-- kept, was left by nodes that died.
local function remember_part(batch, unit, messages)
  if batch.part_of[unit] and #messages > 0 then redis.call('ZADD', batch.spread, batch.seq, batch.part_of[unit]) end
end

-- Forget the oldest beyond what is remembered.
local function forget_handovers(batch)
  for _, audit in ipairs({ batch.audit, batch.resendable, batch.spread }) do redis.call('ZREMRANGEBYRANK', audit, 0, -REMEMBERED - 1) end
end
