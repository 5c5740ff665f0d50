#!lua flags=no-writes
-- answered: the earlier answer to an enqueue that is sent again and that full memory keeps from running.
-- needs:   base
-- keys:    prefix
-- args:    none
-- edge:    none
-- replies: none | old | lost
-- Or that answer itself. Without it a producer would be told "full" about jobs that are in.
local last = lib.replayed()
if last then return last end
return {'none'}
