#!lua flags=allow-oom
-- promote: delayed jobs whose time has come, waiting ones whose time is over, timers, and traces that nobody needs.
-- needs:   reap
-- keys:    prefix
-- args:    most jobs
-- edge:    DELAYED --due--> WAITING
-- edge:    DELAYED --deadline--> DEAD
-- edge:    RETRY_WAITING --due--> WAITING
-- edge:    RETRY_WAITING --deadline--> DEAD
-- edge:    WAITING --queue_timeout--> DEAD
-- edge:    WAITING --deadline--> DEAD
-- replies: promoted(number) | lost
lib.ring(16)
local n = lib.promote(tonumber(ARGV[4]))
local old = call('ZCOUNT', P .. 'hist', '-inf', (NOW - lib.rarely('history_ms', 3600000)) * 256)
local extra = math.max(old, call('ZCARD', P .. 'hist') - lib.rarely('history', 100000))
if extra > 0 then call('ZREMRANGEBYRANK', P .. 'hist', 0, math.min(extra, 2000) - 1) end
for _, q in ipairs(call('SRANDMEMBER', P .. 'queues', 16)) do -- by chance, so that nobody stands in the way of the others
  if lib.depth(q) == 0 then lib.lift(q) end
  for _, t in ipairs(call('ZRANDMEMBER', P .. 'pass:' .. q, 16)) do lib.forget_tenant(q, t) end
end
return {'promoted', n}
