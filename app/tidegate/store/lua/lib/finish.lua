-- finish: every terminal edge goes through here, so no counter, mark or key can be forgotten by one of them.
-- needs: line
-- what a finished job was: (operation, step) -> time and state, bounded by number and age in `promote`
function lib.remember(name, state)
  call('ZADD', P .. 'hist', NOW * 256 + state, name)
end

function lib.remembered(name) -- the state, as its letter, or nil
  local s = lib.rank(P .. 'hist', name)
  if s and math.floor(s / 256) > NOW - lib.rarely('history_ms', 3600000) then return string.char(s % 256) end
end

function lib.take_in(j) -- one more unfinished job of its queue and tenant
  local b, x = lib.book(j.q, j.t), lib.tenant(j.q, j.t)
  if b.new then
    b.new = false
    call('SADD', P .. 'queues', j.q)
  end
  b.took, x.n, b.changed, x.changed = b.took + 1, x.n + 1, true, true
  lib.count(j, 1)
end

function lib.end_key(j) -- the end of its job begins the last stretch of a key's life
  if j.key ~= '-' then call('PEXPIRE', P .. 'key:' .. j.key, lib.int(lib.rarely('key_ttl', 86400000))) end
end

function lib.key_of(j) return j.op .. ' ' .. j.step .. ' ' .. j.hash end -- what its key is kept with

function lib.uncount(j) -- no longer among the unfinished jobs of its queue and tenant
  local b, x = lib.book(j.q, j.t), lib.tenant(j.q, j.t)
  b.out, x.n, b.changed, x.changed = b.out + 1, x.n - 1, true, true
  if x.n == 0 then lib.forget_tenant(j.q, j.t) end
end

function lib.finish(j, to)
  lib.count(j, -1)
  lib.clear_due(j)
  call('UNLINK', P .. 'job:' .. j.id, P .. 'ix:' .. lib.step_name(j))
  if j.charged > 0 or lib.generation(j) > 0 then call('UNLINK', P .. 'err:' .. j.id, P .. 'tries:' .. j.id) end
  lib.remember(lib.step_name(j), to)
  if to ~= S.CANCELLED then lib.end_key(j)
  elseif j.key ~= '-' then call('DEL', P .. 'key:' .. j.key) end
  lib.uncount(j)
end

-- why a job failed last, and when it failed first
function lib.note_error(j, reason, detail)
  local key = P .. 'err:' .. j.id
  local first = (call('GET', key) or ''):match('^%S+ (%d+) ') or lib.int(NOW)
  call('SET', key, reason .. ' ' .. first .. ' ' .. detail)
end

-- dead letter: the record stays whole for a person, out of the way of bounds and overlap
function lib.bury(j, reason, detail)
  lib.clear_due(j)
  lib.move(j, S.DEAD)
  call('ZADD', P .. 'dlq', NOW, j.id)
  if j.step:sub(1, 9) ~= 'finalize-' then call('ZADD', P .. 'untold', NOW, j.id) end -- its caller waits for a result
  lib.note_error(j, reason, detail)
  call('HINCRBY', P .. 'died', j.q .. ' ' .. reason, 1)
  lib.end_key(j)
  lib.uncount(j)
end

-- waiting too long is never run: the verdict of a job that is due, whoever meets it first
function lib.expired(j)
  if j.deadline > 0 and j.deadline <= NOW then return 'deadline' end
  if j.state == S.WAITING and j.qt > 0 and lib.waiting_since(j) + j.qt <= NOW then return 'queue_timeout' end
end
