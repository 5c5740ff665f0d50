#!lua flags=allow-oom
-- reassert: after the server came back, a worker says what it holds and what it reported in the last seconds.
-- needs:   restore hold
-- keys:    prefix
-- args:    worker, last (1 | 0), number of leases, (lease, record)*, number of outcomes, (lease, kind, reason, detail, head)*
-- edge:    WAITING --reassert--> RUNNING
-- replies: reasserted(leases that are not ours any more, held_ms) | lost
local worker, final, n = ARGV[4], ARGV[5], tonumber(ARGV[6])
local gone, at = {}, 7
for i = 1, n do
  if not lib.restore_lease(ARGV[at], ARGV[at + 1]) then gone[#gone + 1] = ARGV[at] end
  at = at + 2
end
local number = tonumber(ARGV[at])
for i = 1, number do
  local a = at + 1 + (i - 1) * 5
  lib.restore_outcome(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], worker)
end
if final == '1' then lib.not_awaited(worker) end
return {'reasserted', gone, lib.int(lib.held())}
