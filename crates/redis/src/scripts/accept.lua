#!lua
-- Takes the units of orders and appends their entries. Everything is read and judged before the first write, so each
-- order is taken whole or not at all, and none is taken if something is not what it must be.
-- KEYS: cache, orders, accounts, stream.
-- ARGV: epoch, seen, then seven of each order: number, units, backlog bound, account, its limit or '', what the order
-- is known by, payload.
local epoch, seen, each = ARGV[1], tonumber(ARGV[2]), 7
local count = (#ARGV - 2) / each

local order_nos, limited, accounts = {}, {}, {}
for i = 1, count do
  local at = 2 + (i - 1) * each
  order_nos[i] = ARGV[at + 1]
  if ARGV[at + 5] ~= '' then
    accounts[#accounts + 1] = ARGV[at + 4]
    limited[i] = #accounts
  end
end

local cache = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'available', 'accepted', 'settled', 'accepted_units')
local known = redis.call('HMGET', KEYS[2], unpack(order_nos))
local backlog = redis.call('XLEN', KEYS[4])
local had = {}
if #accounts > 0 then
  local found = redis.call('HMGET', KEYS[3], unpack(accounts))
  for i, account in ipairs(accounts) do
    had[account] = tonumber(found[i] or '0')
  end
end

local is_known = cache[1] and tonumber(cache[1]) >= tonumber(epoch)
local is_open = cache[1] == epoch and cache[2] == 'open'
local available, accepted, settled = tonumber(cache[3]), tonumber(cache[4]), tonumber(cache[5])
local accepted_units = tonumber(cache[6])
-- Every order of the epoch is known, and its entry was settled or waits. Anything else has lost something.
local went_back = not available or not accepted or not settled or not accepted_units or accepted < seen
    or settled + backlog ~= accepted or redis.call('HLEN', KEYS[2]) ~= accepted

local answers, taken, place_of, charged = {}, {}, {}, {}
for i = 1, count do
  local at = 2 + (i - 1) * each
  local order_no, units, account = ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 4]
  if known[i] and is_known then
    answers[i] = {'known', cache[1], known[i], backlog}
  elseif place_of[order_no] then
    answers[i] = {'known', epoch, place_of[order_no], backlog}
  elseif not is_open then
    answers[i] = {'not_ready'}
  elseif went_back then
    answers[i] = {'went_back'}
  elseif backlog >= tonumber(ARGV[at + 3]) then
    answers[i] = {'queue_full'}
  elseif limited[i] and had[account] + units > tonumber(ARGV[at + 5]) then
    answers[i] = {'account_limit'}
  elseif available < units then
    answers[i] = {'short', string.format('%.0f', available)}
  else
    -- Numbers of Lua are exact up to here.
    if available > 9007199254740991 or accepted_units + units > 9007199254740991 then
      return redis.error_reply('UNFIT a balance is out of bounds')
    end
    available, accepted, accepted_units = available - units, accepted + 1, accepted_units + units
    backlog = backlog + 1
    if limited[i] then
      had[account] = had[account] + units
      charged[account] = had[account]
    end
    taken[#taken + 1] = i
    place_of[order_no] = #taken
    answers[i] = {'accepted', '', string.format('%.0f', accepted), backlog}
  end
end
if #taken == 0 then
  return answers
end

local last
local orders = {}
for n, i in ipairs(taken) do
  local at = 2 + (i - 1) * each
  local number = answers[i][3]
  last = redis.call('XADD', KEYS[4], 'NOMKSTREAM', '*',
    'epoch', epoch, 'number', number, 'units', ARGV[at + 2], 'order', ARGV[at + 7])
  if not last then
    -- The stream is gone, and was before the first of them: nothing is written.
    for j, answer in ipairs(answers) do
      if answer[1] == 'accepted' or type(answer[3]) == 'number' then
        answers[j] = {'went_back'}
      end
    end
    return answers
  end
  answers[i][2] = last
  orders[2 * n - 1] = order_nos[i]
  orders[2 * n] = last .. ' ' .. number .. ' ' .. ARGV[at + 2] .. ' ' .. ARGV[at + 6]
end
redis.call('HSET', KEYS[1], 'available', string.format('%.0f', available), 'accepted', string.format('%.0f', accepted),
  'accepted_units', string.format('%.0f', accepted_units), 'last', last)
redis.call('HSET', KEYS[2], unpack(orders))
for account, units in pairs(charged) do
  redis.call('HSET', KEYS[3], account, string.format('%.0f', units))
end
-- The same number twice: the second is a repeat of the first.
for _, answer in ipairs(answers) do
  local first = answer[3]
  if type(first) == 'number' then
    answer[3] = orders[2 * first]
  end
end
return answers
