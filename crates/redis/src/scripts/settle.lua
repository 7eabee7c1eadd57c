#!lua flags=allow-oom
-- Removes entries, acknowledged or not, and counts them once.
-- KEYS: cache, orders, accounts, stream. ARGV: group, entries.
local entries = {unpack(ARGV, 2)}
redis.call('XACK', KEYS[4], ARGV[1], unpack(entries))
local removed = redis.call('XDEL', KEYS[4], unpack(entries))
if removed > 0 and redis.call('HEXISTS', KEYS[1], 'settled') == 1 then
  redis.call('HINCRBY', KEYS[1], 'settled', removed)
end
return removed
