#!lua flags=no-writes
-- snapshot: the fleet in numbers, from one instant.
-- needs:   base
-- keys:    prefix
-- args:    queue*
-- edge:    none
-- replies: snapshot(now, epoch, held_ms, resets, stale, expired, workers, failed, dead, (queue, oldest score, its book)*) | lost
local m = call('HMGET', META, 'resets', 'stale', 'expired')
local workers = call('HGETALL', P .. 'winfo')
local queues = {}
for i = 4, #ARGV do
  local lane = lib.first(P .. 'old:' .. ARGV[i])
  local _, oldest = lib.first(P .. 'lane:' .. (lane or ''))
  queues[#queues + 1] = {ARGV[i], lib.int(oldest or 0), call('HGET', P .. 'book:' .. ARGV[i], '')}
end
return {'snapshot', lib.int(NOW), lib.int(meta.epoch), lib.int(lib.held()), m[1] or '0', m[2] or '0', m[3] or '0', workers,
  call('ZCARD', P .. 'failed'), call('ZCARD', P .. 'dlq'), queues, call('SMEMBERS', P .. 'queues')}
