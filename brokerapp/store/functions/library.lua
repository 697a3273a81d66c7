#!lua name=@LIBRARY@

-- The broker's writes, and reads that take more than one command: one function a verb. `keys.py` says what each key holds; all
-- keys share one hash tag. A function checks first, then writes, so that a refusal leaves nothing behind (scripts are not rolled
-- back). The files of this folder are one text, in the order of `library.py`: each uses what those before it name.
--
-- A message takes the next number of the broker, SEQ. Its entry in every log has the id SEQ-0: ids grow in every
-- log, all copies of one message carry one number, and the node needs to be told only the first number of a batch.

-- Fields in one call: Lua hands a command at most some thousand arguments.
local AT_ONCE = 500

local FENCED = 'FENCED this node was taken for dead or replaced, or the store was rolled back: it may write no more'

-- Whether this session may not write any more.
local function is_fenced(state, session)
  return redis.call('HEXISTS', state, 'session:' .. session) == 0
end

-- The SEQ of an entry's id, as text.
local function seq_of(id)
  return string.match(id, '^%d+')
end

local PREFIX = '@LIBRARY@_'

-- What only reads: a function of this name for those who call the server.
local function reads(name, callback)
  redis.register_function { function_name = PREFIX .. name, callback = callback, flags = { 'no-writes' } }
end

-- What writes, also when the server's memory is used up. Settling must: it is what frees it. So must all that operators and nodes do
-- to get there: being asked to purge, starting anew, saying what there is, other limits. What appends is bounded by a commit's limits.
local function writes(name, callback)
  redis.register_function { function_name = PREFIX .. name, callback = callback, flags = { 'allow-oom' } }
end
