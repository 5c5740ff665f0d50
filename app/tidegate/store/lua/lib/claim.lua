-- claim: who is served next (STORE.md §1, step 5).
-- needs: attempt
-- c: candidate = the place of a lane (lib/line.lua) and its tenant's pass; s: score of the job behind this one, or nil
function lib.admit(c, j, s, record)
  local q, t = c.q, c.t
  local est = math.min(4e9, math.floor((call('HGET', P .. 'mean:' .. q, t) or 0) * 5e5)) -- half the mean, in micro-seconds
  lib.clear_due(j)
  lib.leave_head(c, j.id, s)
  j.n, j.fence, j.started, j.est = j.n + 1, lib.take_ids('fence', 1), NOW, est
  lib.move(j, S.RUNNING)
  local lease = lib.lease_of(j)
  lib.charge(j.res, lease)
  call('ZADD', P .. 'leases', NOW + meta.lease, lease)
  local p, v = c.pass or lib.least_pass(q), lib.vt(q)
  if not c.served and not lib.rank(P .. 'ready:' .. q, '~' .. t) then p = math.max(p, v - 5) end
  if p > v then
    virtual[q] = p
    call('SET', P .. 'vt:' .. q, p)
  end
  p = p + lib.charged(j) / lib.limit('tenant:' .. t).weight
  call('ZADD', P .. 'pass:' .. q, p, t)
  call('ZADD', P .. 'ready:' .. q, 'XX', p, '~' .. t)
  for i = 3, #j.res do -- an open group follows its first waiter
    local _, least = lib.first(P .. 'wt:' .. j.res[i] .. ':' .. q)
    if least then call('ZADD', P .. 'ready:' .. q, 'XX', least, '!' .. j.res[i]) end
  end
  j.record = lib.job_header(j) .. record:sub(HEADER + 1)
  return j
end

function lib.candidate(q, m, pass) -- the lane that a member of ready:q stands for; nil = look again
  local name = m:sub(2)
  if m:sub(1, 1) == '~' then
    return {q = q, t = name, lane = lib.first(P .. 'rl:' .. q .. ':' .. name), at = 'rl', pass = pass, served = true}
  end
  local wt = P .. 'wt:' .. name .. ':' .. q
  local t, noted = lib.first(wt)
  if not t then
    call('ZREM', P .. 'ready:' .. q, m)
    return nil
  end
  local p = lib.rank(P .. 'pass:' .. q, t) or 0
  if p > noted then -- it was served elsewhere meanwhile: its turn comes later
    call('ZADD', wt, p, t)
    local _, least = lib.first(wt)
    call('ZADD', P .. 'ready:' .. q, least, m)
    return nil
  end
  return {q = q, t = t, lane = lib.first(P .. 'wl:' .. name .. ':' .. q .. ':' .. t), at = name, pass = p}
end

-- one examination: a job, or nil after something was put in its place; true as second value = leave this queue for now
function lib.examine(q, m, pass)
  local c = lib.candidate(q, m, pass)
  if not c then return nil end
  local id, s = lib.two(c.lane)
  local record = call('GET', P .. 'job:' .. id)
  if not record then return lib.leave_head(c, id, s) end
  local j = lib.job_words(lib.job_parse(id, record), record)
  local why = lib.expired(j)
  if why then
    lib.leave_head(c, id, s)
    return lib.bury(j, why, '{}')
  end
  local r, _, till = lib.check(j.res)
  if not r then return lib.admit(c, j, s, record) end
  local where = lib.park(c.lane, q, c.t, r, till)
  if m == '!' .. r and where == 'same' then call('ZREM', P .. 'ready:' .. q, m) end -- only its own first waiter closes a group
  return nil, where == 'queue'
end
