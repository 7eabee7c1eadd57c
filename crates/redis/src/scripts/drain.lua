#!lua flags=allow-oom
-- Makes an epoch accept no more, for good.
-- KEYS: cache, orders, accounts, stream. ARGV: epoch.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'draining')
return 1
