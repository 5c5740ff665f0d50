#!lua flags=no-writes
-- failures: failed attempts that wait for a decision, the oldest first.
-- needs:   record
-- keys:    prefix
-- args:    most
-- edge:    none
-- replies: failures(now, (job, header and words, error)*) | lost
local found = {}
for _, id in ipairs(call('ZRANGE', P .. 'failed', 0, tonumber(ARGV[4]) - 1)) do
  local head = lib.job_head(id)
  if head then found[#found + 1] = {id, head, call('GET', P .. 'err:' .. id) or ''} end
end
return {'failures', lib.int(NOW), unpack(found)}
