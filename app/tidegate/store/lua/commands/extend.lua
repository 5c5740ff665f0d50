#!lua flags=allow-oom
-- extend: keep a worker's leases alive, all of them in one call.
-- needs:   epoch
-- keys:    prefix
-- args:    worker, lease*
-- edge:    RUNNING --heartbeat--> RUNNING
-- replies: extended(lost leases, held_ms, known) | lost
-- A worker that lost a lease must learn it, so refusal is a reply and never silence. A lease that ended but was not reaped
-- yet revives. Before a worker has reasserted, the store does not judge what it holds.
local worker, gone = ARGV[4], {}
local known = call('ZADD', P .. 'workers', 'XX', 'CH', NOW, worker) == 1 or call('ZSCORE', P .. 'workers', worker)
if lib.must_reassert(worker) then return {'extended', gone, lib.int(lib.held()), 0} end
local expiry = NOW + meta.lease
for i = 5, #ARGV do
  if call('ZSCORE', P .. 'leases', ARGV[i]) then call('ZADD', P .. 'leases', expiry, ARGV[i])
  else gone[#gone + 1] = ARGV[i] end
end
return {'extended', gone, lib.int(lib.held()), known and 1 or 0}
