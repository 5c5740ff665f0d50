#!lua flags=no-writes
-- policies: what the code of workers says about their tasks, if that has changed since.
-- needs:   base
-- keys:    prefix
-- args:    version that the caller knows, "-" = none
-- edge:    none
-- replies: policies(version, (task, what is said of it)*) | lost
local version = call('HGET', META, 'tasks') or '0'
if version == ARGV[4] then return {'policies', version} end
return {'policies', version, unpack(call('HGETALL', P .. 'tasks'))}
