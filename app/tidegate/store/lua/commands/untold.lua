#!lua flags=allow-oom
-- untold: dead jobs whose results still have to be written by a worker, the oldest first; those named are told now.
-- needs:   record
-- keys:    prefix
-- args:    most, job*
-- edge:    none
-- replies: untold((job, header and words)*) | lost
for i = 5, #ARGV do call('ZREM', P .. 'untold', ARGV[i]) end
local found = {}
for _, id in ipairs(call('ZRANGE', P .. 'untold', 0, tonumber(ARGV[4]) - 1)) do
  local head = lib.job_head(id)
  if head then
    found[#found + 1] = {id, head}
  else
    call('ZREM', P .. 'untold', id) -- gone meanwhile
  end
end
return {'untold', unpack(found)}
