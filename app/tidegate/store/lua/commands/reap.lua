#!lua flags=allow-oom
-- reap: turn leases that ended into waiting or failed jobs, and keep the pulse by which outages are noticed.
-- needs:   reap
-- keys:    prefix
-- args:    most leases, memory in use (permille of maxmemory, 0 = no limit)
-- edge:    RUNNING --lease_unseen--> WAITING
-- edge:    RUNNING --first_crash--> WAITING
-- edge:    RUNNING --lease_expired--> FAILED
-- replies: reaped(requeued, failed) | lost
-- Enqueue stops at 85 % of maxmemory, so that settle, extend and reap always have room.
call('HSET', META, 'full', tonumber(ARGV[5]) >= 850 and 1 or 0, 'beat', lib.int(NOW)) -- only beat asks, every second
if meta.hold > 0 and lib.held() == 0 then -- it ended by time: whoever has not come back is not waited for
  call('DEL', P .. 'held')
  call('HSET', META, 'hold', 0)
end
local gone = lib.reap(tonumber(ARGV[4]))
if lib.held() == 0 and meta.judge <= NOW then -- workers that have been silent for four leases are no more
  for _, w in ipairs(call('ZRANGE', P .. 'workers', '-inf', NOW - 4 * meta.lease, 'BYSCORE', 'LIMIT', 0, 16)) do
    call('ZREM', P .. 'workers', w)
    call('HDEL', P .. 'winfo', w)
    call('HINCRBY', META, 'left', 1)
  end
end
return {'reaped', gone.requeued, gone.failed}
