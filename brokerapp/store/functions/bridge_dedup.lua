-- Hand-overs: messages that another broker of the network passes on, and passes on again when it could not hear that they were kept.
-- What is kept is remembered, by log, and not kept a second time.
-- So are messages of clients that send again what they do not know to be kept when their connection broke (failover:). They are
-- remembered by themselves, so that busy clients do not push out what bridges handed over.

-- Copies that are remembered: those that came last. A broker has no more under way, not heard of, than it may hold unacknowledged:
-- the prefetch (1000 if nobody says otherwise) for each destination. So this does for a hundred that are busy; it takes some 15 MB.
local REMEMBERED = 100000
-- How the keys of messages of clients begin (RESENDABLE in publisher.py).
local RESENDABLE = 'resent '
-- How the keys begin of parts of writes to several shards (INTENT_KEY in intent_codec.py). They are remembered by themselves, too, until
-- their intent has ended: what is forgotten beyond that was left by nodes that died.
local INTENT = 'intent '

local function is_part(key)
  return string.sub(key, 1, #INTENT) == INTENT
end

local function audit_for(batch, key)
  if string.sub(key, 1, #RESENDABLE) == RESENDABLE then return batch.resendable end
  if is_part(key) then return batch.spread end
  return batch.audit
end

-- A part of a write to several shards is one unit, which is kept whole: one entry stands for all its copies.
local function dedup_entry(batch, m, message, c, key)
  if is_part(key) then return key end
  return table.concat({ name_of(batch, message.logs[c]), m, key }, ' ')
end

-- Mark the copies of a unit's messages that were kept before, to be left out.
local function find_duplicates(batch, unit, messages)
  local key = batch.handovers[unit]
  if not key then return end
  local audit = audit_for(batch, key)
  for m, message in ipairs(messages) do
    local known, count = {}, 0
    for c = 1, message.copies do
      if redis.call('ZSCORE', audit, dedup_entry(batch, m, message, c, key)) then known[c], count = true, count + 1 end
    end
    if count > 0 then message.known, message.out, message.left_out = known, known, count end
  end
end

-- Remember that a copy is kept.
local function remember_forwarded(batch, unit, m, message, c)
  local key = batch.handovers[unit]
  redis.call('ZADD', audit_for(batch, key), batch.seq, dedup_entry(batch, m, message, c, key))
end

-- Forget the oldest beyond what is remembered.
local function forget_handovers(batch)
  for _, audit in ipairs({ batch.audit, batch.resendable, batch.spread }) do redis.call('ZREMRANGEBYRANK', audit, 0, -REMEMBERED - 1) end
end
