#!lua flags=allow-oom
-- release: give attempts back that never started; each returns to its place in the line, not charged.
-- needs:   riders
-- keys:    prefix
-- args:    worker, lease*
-- edge:    RUNNING --release--> WAITING
-- replies: settled(words: ok | stale | held) | old | lost
local last = lib.replayed()
if last then return last end
local words, wait = {}, lib.must_reassert(ARGV[4])
for i = 5, #ARGV do words[#words + 1] = wait and 'held' or lib.settle(ARGV[i], 'release', '', '') end
return lib.answer({'settled', words})
