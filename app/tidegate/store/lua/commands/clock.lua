#!lua
-- clock: move the clock of a fleet that was created with a test clock; any other fleet refuses for ever.
-- needs:   base
-- keys:    prefix
-- args:    milliseconds forward (negative = back)
-- edge:    none
-- replies: clock(now_ms) | real | lost
if meta.clock == '-' then return {'real'} end
local now = lib.int(NOW + tonumber(ARGV[4]))
call('HSET', META, 'clock', now)
return {'clock', now}
