#!lua flags=allow-oom
-- configure: write the limits of the settings. A producer only fills an empty store; a worker or a tool replaces.
-- needs:   lanes limits
-- keys:    prefix
-- args:    replace (1 | 0), digest of the settings, lease_ms, key_ttl_ms, history_ms, history, (resource, limits)*
-- edge:    none
-- replies: configured(written) | lost
-- Whoever is parked somewhere is looked at again afterwards, since a limit may have been raised. What a tenant is ahead of the
-- others was measured by its old weight; tenants that only `default` serves keep theirs.
local m = call('HMGET', META, 'digest')
if m[1] == ARGV[5] or (m[1] and ARGV[4] == '0') then return {'configured', 0} end
for i = 10, #ARGV, 2 do
  local t = ARGV[i]:match('^tenant:([^*].*)$')
  if t then lib.reweigh(t, lib.limit(ARGV[i]).weight, lib.limit_parse(ARGV[i + 1]).weight) end
end
call('DEL', P .. 'lim')
for i = 10, #ARGV, 2 do call('HSET', P .. 'lim', ARGV[i], ARGV[i + 1]) end
call('HSET', META, 'digest', ARGV[5], 'lease', ARGV[6], 'key_ttl', ARGV[7], 'history_ms', ARGV[8], 'history',
  ARGV[9])
for _, r in ipairs(call('SMEMBERS', P .. 'blocked')) do lib.event(r) end
return {'configured', 1}
