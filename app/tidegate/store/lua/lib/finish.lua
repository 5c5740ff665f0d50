-- finish: every terminal edge goes through here, so no counter, mark or key can be forgotten by one of them.
-- needs: line
-- what a finished job was: (operation, step) -> time and state, bounded by number here and by age in `promote`
local function remember(name, state)
  call('ZADD', P .. 'hist', int(NOW * 256 + state), name)
  local extra = call('ZCARD', P .. 'hist') - meta.history
  if extra > 0 then call('ZREMRANGEBYRANK', P .. 'hist', 0, extra - 1) end
end

local function remembered(name) -- the state, as its letter, or nil
  local s = rank(P .. 'hist', name)
  if s and math.floor(s / 256) > NOW - meta.history_ms then return string.char(s % 256) end
end

local function finish(j, to)
  local cnt = P .. 'cnt:' .. j.q
  call('HINCRBY', cnt, string.char(j.state), -1)
  call('HINCRBY', cnt, 'depth', -1)
  call('HINCRBY', cnt, 'finished', 1)
  if call('HINCRBY', P .. 'td:' .. j.q, j.t, -1) <= 0 then call('HDEL', P .. 'td:' .. j.q, j.t) end
  clear_due(j)
  if j.charged > 0 or j.crashes > 0 then call('DEL', P .. 'err:' .. j.id) end
  call('UNLINK', P .. 'job:' .. j.id)
  call('DEL', P .. 'ix:' .. step_name(j))
  remember(step_name(j), to)
  if j.key ~= '-' then
    if to == CANCELLED then call('DEL', P .. 'key:' .. j.key)
    else call('PEXPIRE', P .. 'key:' .. j.key, meta.key_ttl) end
  end
  forget_tenant(j.q, j.t)
end

-- dead letter: the record stays whole for a person, out of the way of bounds and overlap
local function bury(j, reason, detail)
  local cnt = P .. 'cnt:' .. j.q
  call('HINCRBY', cnt, 'depth', -1)
  call('HINCRBY', cnt, 'finished', 1)
  if call('HINCRBY', P .. 'td:' .. j.q, j.t, -1) <= 0 then call('HDEL', P .. 'td:' .. j.q, j.t) end
  clear_due(j)
  move(j, DEAD)
  call('ZADD', P .. 'dlq', int(NOW), j.id)
  call('SET', P .. 'err:' .. j.id, reason .. ' ' .. detail)
  if j.key ~= '-' then call('PEXPIRE', P .. 'key:' .. j.key, meta.key_ttl) end
  forget_tenant(j.q, j.t)
end

-- waiting too long is never run: the verdict of a job that is due, whoever meets it first
local function expired(j)
  if j.deadline > 0 and j.deadline <= NOW then return 'deadline' end
  if j.state == WAITING and j.qt > 0 and waiting_since(j) + j.qt <= NOW then return 'queue_timeout' end
end
