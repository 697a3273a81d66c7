-- Reading logs. Answers are bounded by a count and by bytes, and are empty only at the end of what is read.

-- An entry with what it refers to: {SEQ, stored form ('': it is gone), payload's SEQ or '', original or '', shown or ''}.
local function row_of(entry, payload_prefix)
  local fields = {}
  for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
  local stored = fields.m
  if fields.r then stored = redis.call('HGET', payload_prefix .. fields.r, 'm') end
  return { seq_of(entry[1]), stored or '', fields.r or '', fields.o or '', fields.d or '' }
end

-- The rows of the entries with these ids, as far as they are there, and no more once they have that many bytes.
local function rows_of(log, ids, payload_prefix, room)
  local result, bytes = {}, 0
  for _, id in ipairs(ids) do
    local entry = redis.call('XRANGE', log, id, id)[1]
    if entry then
      local row = row_of(entry, payload_prefix)
      result[#result + 1] = row
      bytes = bytes + #row[2]
      if bytes >= room then break end
    end
  end
  return result
end

-- Up to `left` rows, fewer once they have `room` bytes; `more(at, count)` gives entries behind the SEQ `at`.
local function rows_behind(more, at, left, payload_prefix, room)
  local result, bytes = {}, 0
  local step = 1 -- grows as far as what was seen so far allows: sizes are not known before
  repeat
    local entries = more(at, step)
    for _, entry in ipairs(entries) do
      local row = row_of(entry, payload_prefix)
      result[#result + 1] = row
      at, bytes = row[1], bytes + #row[2]
      if bytes >= room then return result end
    end
    local at_end = #entries < step
    left = left - #entries
    step = math.min(left, step * 4, math.ceil((room - bytes) * #result / math.max(bytes, 1)))
  until at_end or step < 1
  return result
end

-- read(KEYS = log, ARGV = payload prefix, SEQ to read after, count, bytes)
-- Returns entries, see row_of, in order.
local function read(keys, args)
  local function more(after, count)
    return redis.call('XRANGE', keys[1], '(' .. after .. '-0', '+', 'COUNT', count)
  end
  return rows_behind(more, args[2], tonumber(args[3]), args[1], tonumber(args[4]))
end
reads('read', read)

-- read_back(KEYS = log, ARGV = payload prefix, SEQ to read before, count, bytes)
-- Returns entries, see row_of, the newest first.
local function read_back(keys, args)
  local function more(before, count)
    return redis.call('XREVRANGE', keys[1], '(' .. before .. '-0', '-', 'COUNT', count)
  end
  return rows_behind(more, args[2], tonumber(args[3]), args[1], tonumber(args[4]))
end
reads('read_back', read_back)

-- read_these(KEYS = log, ARGV = payload prefix, bytes, id...)
-- Returns those of these entries that are there, see row_of; fewer once they have so many bytes.
local function read_these(keys, args)
  return rows_of(keys[1], { unpack(args, 3) }, args[1], tonumber(args[2]))
end
reads('read_these', read_these)

-- first(KEYS = log, ARGV = payload prefix): the broker's fields of the first message, or nothing.
local function first(keys, args)
  local entry = redis.call('XRANGE', keys[1], '-', '+', 'COUNT', 1)[1]
  local stored = entry and row_of(entry, args[1])[2]
  return stored and string.match(stored, '^[^\n]*') or false
end
reads('first', first)
