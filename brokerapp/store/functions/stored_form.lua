-- What the stored form of a message says of it: it begins `persistent priority expires `, the first two a digit each.
local VOLATILE = 48 -- a zero: it is not persistent
local PRIORITY_AT = 3
local EXPIRES_AT, NEVER = 5, 48

-- The moment in which it expires, milliseconds since the epoch; nil: never.
local function expiry(stored)
  if string.byte(stored, EXPIRES_AT) == NEVER then return nil end
  return tonumber(string.match(stored, '^%d %d (%d+) '))
end

-- Bytes of it that count as volatile: all, if it is not persistent.
local function volatile(stored)
  return string.byte(stored) == VOLATILE and #stored or 0
end

local function priority_digit(stored)
  return string.byte(stored, PRIORITY_AT)
end
