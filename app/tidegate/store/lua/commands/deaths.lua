#!lua flags=no-writes
-- deaths: dead letters without their bodies, the oldest first, in pages: who looks for some of them looks here.
-- needs:   record
-- keys:    prefix
-- args:    died not before (ms), how many of that instant to pass over, died before (ms), most
-- edge:    none
-- replies: deaths(now, (job, when, header and words, reason)*) | lost
-- A row for each entry that was looked at, so that the caller can count on: words are "" for a job that is not there.
local z = call('ZRANGE', P .. 'dlq', ARGV[4], '(' .. ARGV[6], 'BYSCORE', 'LIMIT', ARGV[5], ARGV[7], 'WITHSCORES')
local found = {}
for i = 1, #z, 2 do
  local reason = call('GETRANGE', P .. 'err:' .. z[i], 0, 63):match('^%S*')
  found[#found + 1] = {z[i], z[i + 1], lib.job_head(z[i]) or '', reason}
end
return {'deaths', lib.int(NOW), unpack(found)}
