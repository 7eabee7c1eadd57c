#!lua
-- Makes the consumer group again if the stream is there, from its beginning: what has landed is no longer in it.
-- KEYS: cache, orders, accounts, stream. ARGV: group.
if redis.call('EXISTS', KEYS[4]) == 0 then
  return 0
end
-- Somebody else may have been faster.
redis.pcall('XGROUP', 'CREATE', KEYS[4], ARGV[1], '0')
return 1
