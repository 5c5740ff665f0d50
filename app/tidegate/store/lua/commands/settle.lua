#!lua flags=allow-oom
-- settle: report how attempts ended (up to 32). Works under full memory, or nothing could ever be freed.
-- needs:   riders
-- keys:    prefix
-- args:    worker, number of outcomes, (lease, kind, reason, detail)*
-- edge:    RUNNING --ok--> SUCCEEDED
-- edge:    RUNNING --failed--> FAILED
-- edge:    RUNNING --release--> WAITING
-- edge:    RUNNING --cancelled--> CANCELLED
-- edge:    RUNNING --undeliverable--> DEAD
-- replies: settled(words: ok | stale | held) | old | lost
local last = lib.replayed()
if last then return last end
return lib.answer({'settled', (lib.riders(ARGV[4], 5))})
