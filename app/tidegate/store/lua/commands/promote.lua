#!lua flags=allow-oom
-- promote: delayed jobs whose time has come, waiting ones whose time is over, timers, and traces that nobody needs.
-- needs:   reap
-- keys:    prefix
-- args:    most jobs, queue*
-- edge:    DELAYED --due--> WAITING
-- edge:    DELAYED --deadline--> DEAD
-- edge:    WAITING --queue_timeout--> DEAD
-- edge:    WAITING --deadline--> DEAD
-- replies: promoted(number) | lost
ring(16)
local n = promote(tonumber(ARGV[4]))
call('ZREMRANGEBYSCORE', P .. 'hist', '-inf', int((NOW - meta.history_ms) * 256))
for i = 5, #ARGV do
  local q = ARGV[i]
  for _, t in ipairs(call('ZRANGE', P .. 'pass:' .. q, '-inf', vt(q), 'BYSCORE', 'LIMIT', 0, 16)) do forget_tenant(q, t) end
end
return {'promoted', n}
