-- finish: every terminal edge goes through here, so no counter, mark or key can be forgotten by one of them.
-- needs: line
-- what a finished job was: (operation, step) -> time and state, bounded by number and age in `promote`
function lib.remember(name, state)
  call('ZADD', P .. 'hist', NOW * 256 + state, name)
end

function lib.remembered(name) -- the state, as its letter, or nil
  local s = lib.rank(P .. 'hist', name)
  if s and math.floor(s / 256) > NOW - meta.history_ms then return string.char(s % 256) end
end

function lib.uncount(j) -- no longer among the unfinished jobs of its queue and tenant
  call('HINCRBY', P .. 'cnt:' .. j.q, 'out', 1)
  if call('HINCRBY', P .. 'td:' .. j.q, j.t, -1) > 0 then return end
  call('HDEL', P .. 'td:' .. j.q, j.t)
  lib.forget_tenant(j.q, j.t)
end

function lib.finish(j, to)
  lib.count(j, -1)
  lib.clear_due(j)
  call('UNLINK', P .. 'job:' .. j.id, P .. 'ix:' .. lib.step_name(j))
  if j.charged > 0 then call('UNLINK', P .. 'err:' .. j.id) end
  lib.remember(lib.step_name(j), to)
  if j.key ~= '-' then
    if to == S.CANCELLED then call('DEL', P .. 'key:' .. j.key)
    else call('PEXPIRE', P .. 'key:' .. j.key, meta.key_ttl) end
  end
  lib.uncount(j)
end

-- dead letter: the record stays whole for a person, out of the way of bounds and overlap
function lib.bury(j, reason, detail)
  lib.clear_due(j)
  lib.move(j, S.DEAD)
  call('ZADD', P .. 'dlq', NOW, j.id)
  call('SET', P .. 'err:' .. j.id, reason .. ' ' .. detail)
  if j.key ~= '-' then call('PEXPIRE', P .. 'key:' .. j.key, meta.key_ttl) end
  lib.uncount(j)
end

-- waiting too long is never run: the verdict of a job that is due, whoever meets it first
function lib.expired(j)
  if j.deadline > 0 and j.deadline <= NOW then return 'deadline' end
  if j.state == S.WAITING and j.qt > 0 and lib.waiting_since(j) + j.qt <= NOW then return 'queue_timeout' end
end
