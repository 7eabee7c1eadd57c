#!lua
-- Makes a seeded epoch accept. One that drains never opens again.
-- KEYS: cache, orders, accounts, stream. ARGV: epoch.
local cache = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if cache[1] ~= ARGV[1] or (cache[2] ~= 'seeded' and cache[2] ~= 'open') then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'open')
return 1
