#!lua flags=allow-oom
-- Applies the sum of credits from one ledger position to another, if the cache is at the first.
-- KEYS: cache, orders, accounts, stream. ARGV: epoch, from, to, units.
local cache = redis.call('HMGET', KEYS[1], 'epoch', 'applied', 'available')
if cache[1] ~= ARGV[1] or cache[2] ~= ARGV[2] or not cache[3] then
  return 0
end
local available = tonumber(cache[3]) + tonumber(ARGV[4])
if available > 9007199254740991 or available < -9007199254740991 then
  return redis.error_reply('UNFIT a balance is out of bounds')
end
redis.call('HINCRBY', KEYS[1], 'available', ARGV[4])
redis.call('HSET', KEYS[1], 'applied', ARGV[3])
return 1
