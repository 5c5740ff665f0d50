#!lua flags=allow-oom
-- untold: dead jobs whose results still have to be written by a worker, the oldest first; those named are told now.
-- needs:   base
-- keys:    prefix
-- args:    most, job*
-- edge:    none
-- replies: untold((job, words)*) | lost
for i = 5, #ARGV do call('ZREM', P .. 'untold', ARGV[i]) end
local found = {}
for _, id in ipairs(call('ZRANGE', P .. 'untold', 0, tonumber(ARGV[4]) - 1)) do
  local s = call('GETRANGE', P .. 'job:' .. id, 0, 67)
  if #s == 68 then
    found[#found + 1] = {id, call('GETRANGE', P .. 'job:' .. id, 68, 67 + struct.unpack('>H', s:sub(67)))}
  else
    call('ZREM', P .. 'untold', id) -- gone meanwhile
  end
end
return {'untold', unpack(found)}
