-- What is counted as used: the bytes of messages, and of what surrounds them.

-- Bytes an entry takes beside the message it holds or refers to (measured: 24 to 60, by how full its node is).
local ENTRY_BYTES = 64
-- Bytes more for an entry that expires, and for one with a place by priority: a row of a sorted set each.
local EXPIRING_BYTES = 100
local PLACE_BYTES = 100
-- Bytes a job takes beside its record: such a row, and one of a hash; and about what a prepared branch takes, two of a hash.
local JOB_BYTES = 250

-- add_to_used(used, keys, grown): note by how many bytes the logs of these indices grew, many with one call.
local function add_to_used(used, keys, grown)
  local names, growths = {}, {}
  for index, growth in pairs(grown) do
    if growth ~= 0 then names[#names + 1], growths[#growths + 1] = keys[index], growth end
  end
  for first = 1, #names, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #names)
    local held, pairs_of = redis.call('HMGET', used, unpack(names, first, last)), {}
    for i = first, last do
      pairs_of[#pairs_of + 1] = names[i]
      pairs_of[#pairs_of + 1] = string.format('%d', (tonumber(held[i - first + 1]) or 0) + growths[i])
    end
    redis.call('HSET', used, unpack(pairs_of))
  end
end

-- Bytes the server uses, whatever takes them.
local function used_memory()
  return tonumber(string.match(redis.call('INFO', 'memory'), 'used_memory:(%d+)'))
end
