-- The store's history: whether what nodes were told is done is still there.
--
-- A store is rolled back when a replica that lags takes over, when a backup is restored, or when a crash cuts the append-only file. Each
-- *life* of the server (its process, and its time as primary in that) is noted with the changes made until then, by whoever connects
-- first in it and before anything is written in it. So a node that knew of more changes finds out, whatever was written since.

-- Lives that are kept. A node that has seen none of so many is taken for one that knew more.
local KEPT_LIVES = 64
-- Numbers left out after a rollback: more than any node can have given in the lost time.
local LEFT_OUT = 2 ^ 32
-- With what a life begins that is the one before it: more than can be counted.
local NO_BEGINNING = 2 ^ 53

-- Count a change that nodes rely on, beside those of commits.
local function count_change(state)
  redis.call('HINCRBY', state, 'changes', 1)
end

-- Changes made so far, and the last SEQ.
local function counters(state)
  local found = redis.call('HMGET', state, 'changes', 'seq')
  return tonumber(found[1]) or 0, tonumber(found[2]) or 0
end

-- What INFO says under this name; '' where it does not, or may not be asked.
local function info(section, name)
  local said = redis.pcall('INFO', section)
  return type(said) == 'string' and string.match(said, name .. ':(%x+)') or ''
end

-- What tells this life of the server from all others; '' where it does not say.
local function current_life()
  local run, history = info('server', 'run_id'), info('replication', 'master_replid')
  return string.sub(run, 1, 20) .. string.sub(history, 1, 20)
end

-- Whether a life goes on under another id: the server gives its history a new one, without a former one, when its first replica comes,
-- as which a backup reads it, and when none has been there for an hour. Nothing is lost then, whoever notes it whenever.
local function is_continued(last, life)
  return string.sub(last, 1, 20) == string.sub(life, 1, 20) and string.match(info('replication', 'master_replid2'), '^0+$') ~= nil
end

-- Note with which changes this life of the server begins, unless that is done; one that goes on has no beginning. Returns the life.
local function note_life(state, lives)
  local life = current_life()
  local last = redis.call('LINDEX', lives, -1)
  local noted = last and string.match(last, '^%x*')
  if noted ~= life then
    local changes, seq = counters(state)
    if noted and is_continued(noted, life) then changes, seq = NO_BEGINNING, NO_BEGINNING end
    redis.call('RPUSH', lives, string.format('%s %.0f %.0f', life, changes, seq))
    redis.call('LTRIM', lives, -KEPT_LIVES, -1)
  end
  return life
end

-- The changes, and the SEQ, that were there at all times since a life ended; 0 and 0 where that life is not known.
local function survived(state, lives, known)
  local changes, seq = counters(state)
  if known == '' then return changes, seq end
  local noted = redis.call('LRANGE', lives, 0, -1)
  for at = #noted, 1, -1 do
    local life, its_changes, its_seq = string.match(noted[at], '^(%x*) (%d+) (%d+)$')
    if life == known then return changes, seq end
    changes, seq = math.min(changes, tonumber(its_changes)), math.min(seq, tonumber(its_seq))
  end
  return 0, 0
end

-- greet(KEYS = state, lives, ARGV = life that the caller knows, or ''): what a connection begins with. Returns the format of the
-- store ('' when there is no broker yet), the life, and the changes and the SEQ that are left of those of the known one.
local function greet(keys, args)
  local state, lives = keys[1], keys[2]
  if redis.call('EXISTS', state) == 0 then return { '', '', 0, 0 } end
  local life = note_life(state, lives)
  local changes, seq = survived(state, lives, args[1])
  return { redis.call('HGET', state, 'format') or '1', life, changes, seq }
end
writes('greet', greet)

-- fence_after_rollback(KEYS = state, nodes, ARGV = session, changes and SEQ that it knew of, channel): the store was rolled back under this session.
-- No session may write any more, and numbers go on beyond those that may have been given. Done once, whichever node finds out first.
-- Returns how often the store was rolled back so far.
local function fence_after_rollback(keys, args)
  local state, life = keys[1], current_life()
  local before = tonumber(redis.call('HGET', state, 'rollbacks')) or 0
  if is_fenced(state, args[1]) and redis.call('HGET', state, 'rollback_life') == life then return before end
  for _, field in ipairs(redis.call('HKEYS', state)) do
    if string.match(field, '^session:') or string.match(field, '^batch:') or string.match(field, '^reply:') then
      redis.call('HDEL', state, field)
    end
  end
  redis.call('DEL', keys[2])
  local changes, seq = counters(state)
  local time = redis.call('TIME')
  redis.call('HSET', state, 'seq', string.format('%d', math.max(seq, tonumber(args[3])) + LEFT_OUT),
    'changes', string.format('%d', math.max(changes, tonumber(args[2])) + 1),
    'rollbacks', before + 1, 'rollback_life', life, 'rollback_ms', time[1] .. string.sub('000' .. math.floor(time[2] / 1000), -3),
    'rollback_changes', math.max(0, tonumber(args[2]) - changes))
  redis.call('HINCRBY', state, 'epoch', 1)
  redis.call('PUBLISH', args[4], 'nodes')
  return before + 1
end
writes('fence_after_rollback', fence_after_rollback)
