#!lua
-- Replaces whatever there is by a new epoch that accepts nothing yet. Never by one that is not newer; the same
-- seed again finds itself done.
-- KEYS: cache, orders, accounts, stream. ARGV: epoch, base position, base available, group.
local cache = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'applied', 'available')
local there = tonumber(cache[1] or '0')
if there >= tonumber(ARGV[1]) then
  local is_same = cache[1] == ARGV[1] and cache[2] == 'seeded' and cache[3] == ARGV[2] and cache[4] == ARGV[3]
  return is_same and redis.call('EXISTS', KEYS[4]) or 0
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'state', 'seeded', 'applied', ARGV[2], 'available', ARGV[3],
  'base_seq', ARGV[2], 'base_available', ARGV[3],
  'accepted', '0', 'accepted_units', '0', 'settled', '0', 'last', '0-0')
redis.call('XGROUP', 'CREATE', KEYS[4], ARGV[4], '0', 'MKSTREAM')
return 1
