#!lua flags=allow-oom
-- What the cache says of itself at one moment; false if a part of it is gone.
-- KEYS: cache, orders, accounts, stream. ARGV: group.
local cache = redis.call('HMGET', KEYS[1],
  'epoch', 'state', 'available', 'accepted', 'accepted_units', 'applied', 'last', 'settled')
for at = 1, 8 do
  if not cache[at] then
    return false
  end
end
if redis.call('EXISTS', KEYS[4]) == 0 or redis.call('HLEN', KEYS[2]) ~= tonumber(cache[4]) then
  return false
end
cache[9] = redis.call('XLEN', KEYS[4])
local pending = redis.pcall('XPENDING', KEYS[4], ARGV[1])
cache[10] = pending.err and 0 or pending[1]
return cache
