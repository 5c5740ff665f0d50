#!lua flags=allow-oom
-- register: a worker exists, and what its code says about its tasks. Made durable by the caller before the first claim, so that
-- a server that lost its last second still knows whom to wait for.
-- needs:   epoch
-- keys:    prefix
-- args:    worker, information (JSON), (task, what its decorator and its Celery options say (JSON), "" = nothing)*
-- edge:    none
-- replies: registered(epoch) | lost
-- Of two releases side by side the one that registered last is right.
local MOST = 10000 -- tasks of a fleet
call('ZADD', P .. 'workers', NOW, ARGV[4])
call('HSET', P .. 'winfo', ARGV[4], ARGV[5])
local changed = false
for i = 6, #ARGV, 2 do
  local task, said = ARGV[i], ARGV[i + 1]
  local known = call('HGET', P .. 'tasks', task) or ''
  if said == '' and known ~= '' then
    call('HDEL', P .. 'tasks', task)
    changed = true
  elseif said ~= known and (known ~= '' or call('HLEN', P .. 'tasks') < MOST) then
    call('HSET', P .. 'tasks', task, said)
    changed = true
  end
end
if changed then call('HINCRBY', META, 'tasks', 1) end
return {'registered', lib.int(meta.epoch)}
