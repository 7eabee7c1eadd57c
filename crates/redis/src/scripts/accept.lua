#!lua
-- Takes an order's units and appends its entry, or does neither: everything is judged before the first write.
-- KEYS: cache, orders, accounts, stream.
-- ARGV: order number, epoch, seen, units, backlog bound, account, its limit or '', what the order is known by, payload.
local order_no, epoch, units = ARGV[1], ARGV[2], tonumber(ARGV[4])

local cache = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'available', 'accepted', 'settled', 'accepted_units')
local known = redis.call('HGET', KEYS[2], order_no)
if known and cache[1] and tonumber(cache[1]) >= tonumber(epoch) then
  return {'known', cache[1], known, redis.call('XLEN', KEYS[4])}
end
if cache[1] ~= epoch or cache[2] ~= 'open' then
  return {'not_ready'}
end

-- Every order of the epoch is known, and its entry was settled or waits. Anything else has lost something.
local available, accepted, settled = tonumber(cache[3]), tonumber(cache[4]), tonumber(cache[5])
local accepted_units = tonumber(cache[6])
local backlog = redis.call('XLEN', KEYS[4])
if not available or not accepted or not settled or not accepted_units or accepted < tonumber(ARGV[3])
    or settled + backlog ~= accepted or redis.call('HLEN', KEYS[2]) ~= accepted then
  return {'went_back'}
end
if backlog >= tonumber(ARGV[5]) then
  return {'queue_full'}
end
local had
if ARGV[7] ~= '' then
  had = tonumber(redis.call('HGET', KEYS[3], ARGV[6]) or '0')
  if had + units > tonumber(ARGV[7]) then
    return {'account_limit'}
  end
end
if available < units then
  return {'short', string.format('%.0f', available)}
end
-- Numbers of Lua are exact up to here.
if available > 9007199254740991 or accepted_units + units > 9007199254740991 then
  return redis.error_reply('UNFIT a balance is out of bounds')
end

-- First, since it refuses by itself when the stream is gone.
local number = string.format('%.0f', accepted + 1)
local entry = redis.call('XADD', KEYS[4], 'NOMKSTREAM', '*',
  'epoch', epoch, 'number', number, 'units', ARGV[4], 'order', ARGV[9])
if not entry then
  return {'went_back'}
end
redis.call('HSET', KEYS[1], 'available', string.format('%.0f', available - units), 'accepted', number,
  'accepted_units', string.format('%.0f', accepted_units + units), 'last', entry)
redis.call('HSET', KEYS[2], order_no, entry .. ' ' .. number .. ' ' .. ARGV[4] .. ' ' .. ARGV[8])
if had then
  redis.call('HSET', KEYS[3], ARGV[6], string.format('%.0f', had + units))
end
return {'accepted', entry, number, backlog + 1}
