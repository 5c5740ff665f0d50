#!lua flags=no-writes
-- dead: dead letters, the latest first.
-- needs:   base
-- keys:    prefix
-- args:    most, how many to pass over
-- edge:    none
-- replies: dead(total, (job, when, record, error)*) | lost
local most, over = tonumber(ARGV[4]), tonumber(ARGV[5])
local z, found = call('ZREVRANGE', P .. 'dlq', over, over + most - 1, 'WITHSCORES'), {}
for i = 1, #z, 2 do
  local record = call('GET', P .. 'job:' .. z[i])
  if record then found[#found + 1] = {z[i], z[i + 1], record, call('GET', P .. 'err:' .. z[i]) or ''} end
end
return {'dead', call('ZCARD', P .. 'dlq'), unpack(found)}
