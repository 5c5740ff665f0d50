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
lib.ring(16)
local n = lib.promote(tonumber(ARGV[4]))
call('ZREMRANGEBYSCORE', P .. 'hist', '-inf', (NOW - meta.history_ms) * 256)
local extra = call('ZCARD', P .. 'hist') - meta.history
if extra > 0 then call('ZREMRANGEBYRANK', P .. 'hist', 0, extra - 1) end
for i = 5, #ARGV do
  local q = ARGV[i]
  for _, t in ipairs(call('ZRANGE', P .. 'pass:' .. q, '-inf', lib.vt(q), 'BYSCORE', 'LIMIT', 0, 16)) do lib.forget_tenant(q, t) end
end
return {'promoted', n}
