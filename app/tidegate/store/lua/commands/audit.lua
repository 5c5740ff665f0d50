#!lua flags=no-writes
-- audit: what was changed by people, the latest first.
-- needs:   base
-- keys:    prefix
-- args:    most
-- edge:    none
-- replies: audit(line*) | lost
local found = {}
for _, line in ipairs(call('XREVRANGE', P .. 'audit', '+', '-', 'COUNT', ARGV[4])) do found[#found + 1] = line[2] end
return {'audit', unpack(found)}
