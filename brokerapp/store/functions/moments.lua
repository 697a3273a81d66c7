-- What has its moment: messages that expire, and jobs that are due. Which entries of a log expire is kept beside the log, under its
-- name, while the broker has such entries (`expiring` of its state counts them).

-- late(KEYS = expiring, ARGV = prefix of expiring, now): the logs that hold messages past their time, in order of time.
local function late(keys, args)
  local names = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', keys[1], '-inf', args[2])) do
    local first = redis.call('ZRANGE', args[1] .. name, 0, 0, 'WITHSCORES')
    if not first[2] then
      redis.call('ZREM', keys[1], name)
    elseif tonumber(first[2]) > tonumber(args[2]) then
      redis.call('ZADD', keys[1], first[2], name)
    else
      names[#names + 1] = name
    end
  end
  return names
end
writes('late', late)

-- expired(KEYS = log, its expiring, ARGV = payload prefix, now, how many to pass over, count, bytes)
-- Returns entries past their time, the latest last, see row_of; bounded like `read`.
local function expired(keys, args)
  local ids = redis.call('ZRANGEBYSCORE', keys[2], '-inf', args[2], 'LIMIT', args[3], args[4])
  return rows_of(keys[1], ids, args[1], tonumber(args[5]))
end
reads('expired', expired)

-- waiting(KEYS = due, jobs, ARGV = from, until, how many to pass over, count, bytes)
-- Returns jobs {id, due, record} that are due from one moment to another, in that order; bounded like `read`.
local function waiting(keys, args)
  local found = redis.call('ZRANGEBYSCORE', keys[1], args[1], args[2], 'WITHSCORES', 'LIMIT', args[3], args[4])
  local result, bytes = {}, 0
  for i = 1, #found, 2 do
    local record = redis.call('HGET', keys[2], found[i])
    result[#result + 1] = { found[i], found[i + 1], record }
    bytes = bytes + #record
    if bytes >= tonumber(args[5]) then break end
  end
  return result
end
reads('waiting', waiting)
