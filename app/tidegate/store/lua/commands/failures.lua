#!lua flags=no-writes
-- failures: failed attempts that wait for a decision, the oldest first.
-- needs:   base
-- keys:    prefix
-- args:    most
-- edge:    none
-- replies: failures(now, (job, header and words, error)*) | lost
local found = {}
for _, id in ipairs(call('ZRANGE', P .. 'failed', 0, tonumber(ARGV[4]) - 1)) do
  local s = call('GETRANGE', P .. 'job:' .. id, 0, 67)
  if #s == 68 then
    local size = struct.unpack('>H', s:sub(67))
    found[#found + 1] = {id, call('GETRANGE', P .. 'job:' .. id, 0, 67 + size), call('GET', P .. 'err:' .. id) or ''}
  end
end
return {'failures', lib.int(NOW), unpack(found)}
