#!lua flags=allow-oom
-- Removes an epoch, or an older one, or what is left of one that nobody can name any more.
-- KEYS: cache, orders, accounts, stream. ARGV: epoch.
local there = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0')
if there > tonumber(ARGV[1]) then
  return 0
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return 1
