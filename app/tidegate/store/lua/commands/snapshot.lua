#!lua flags=no-writes
-- snapshot: the fleet in numbers, from one instant.
-- needs:   base
-- keys:    prefix
-- args:    queue*
-- edge:    none
-- replies: snapshot(now, epoch, held_ms, resets, stale, expired, workers, failed, dead, (queue, eligible time of the oldest, its book)*) | lost
local m = call('HMGET', META, 'resets', 'stale', 'expired')
local workers = call('HGETALL', P .. 'winfo')
local queues = {}
for i = 4, #ARGV do
  local lane = lib.first(P .. 'old:' .. ARGV[i])
  local job = lib.first(P .. 'lane:' .. (lane or ''))
  local eligible = job and call('GETRANGE', P .. 'job:' .. job, 18, 25) or '' -- its score is moved by its priority
  queues[#queues + 1] = {ARGV[i], lib.int(#eligible == 8 and struct.unpack('>I8', eligible) or 0), call('HGET', P .. 'book:' .. ARGV[i], '')}
end
return {'snapshot', lib.int(NOW), lib.int(meta.epoch), lib.int(lib.held()), m[1] or '0', m[2] or '0', m[3] or '0', workers,
  call('ZCARD', P .. 'failed'), call('ZCARD', P .. 'dlq'), queues, call('SMEMBERS', P .. 'queues')}
