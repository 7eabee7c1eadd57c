#!lua flags=allow-oom
-- Where an order stands in an epoch.
-- KEYS: cache, orders, accounts, stream. ARGV: epoch, order number.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return false
end
return redis.call('HGET', KEYS[2], ARGV[2])
