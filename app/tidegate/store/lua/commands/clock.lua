#!lua flags=allow-oom
-- clock: move the clock of a fleet that was created with a test clock; any other fleet refuses for ever.
-- needs:   base
-- keys:    prefix
-- args:    milliseconds forward (negative = back)
-- edge:    none
-- replies: clock(now_ms) | real | old | lost
local last = lib.replayed()
if last then return last end
if meta.clock == '-' then return {'real'} end
local now = lib.int(NOW + tonumber(ARGV[4]))
call('HSET', META, 'clock', now)
return lib.answer({'clock', now})
