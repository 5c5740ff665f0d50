-- claim: who is served next (STORE.md §1, step 5).
-- needs: attempt
-- c: candidate = the place of a lane (lib/line.lua), its tenant's pass, its first job, that one's score, the next one's
function lib.admit(c, j, record)
  local q, t = c.q, c.t
  local est = math.min(4e9, math.floor(lib.tenant(q, t).mean * 5e5)) -- half the mean, in micro-seconds
  lib.clear_due(j)
  lib.leave_head(c, j.id, c.score, c.next)
  j.n, j.fence, j.started, j.est = j.n + 1, lib.take_ids('fence', 1), NOW, est
  lib.move(j, S.RUNNING)
  local lease = lib.lease_of(j)
  lib.charge(j.res, lease)
  call('ZADD', P .. 'leases', NOW + meta.lease, lease)
  local p, v = c.pass or lib.least_pass(q), lib.vt(q)
  if not c.served and not lib.rank(P .. 'ready:' .. q, '~' .. t) then p = math.max(p, v - 5) end
  lib.raise_vt(q, p)
  p = p + lib.charged(j) / lib.limit('tenant:' .. t).weight
  lib.set_pass(q, t, p, c.served and c.next)
  for i = 3, #j.res do -- an open group follows its first waiter
    local _, least = lib.first(P .. 'wt:' .. j.res[i] .. ':' .. q)
    if least then call('ZADD', P .. 'ready:' .. q, 'XX', least, '!' .. j.res[i]) end
  end
  j.record = lib.job_header(j) .. record:sub(HEADER + 1)
  return j
end

function lib.head(c)
  c.id, c.score, c.next = lib.two(c.lane)
  return c
end

-- of the ready lanes of a tenant the one whose first job comes first. A lane that was served keeps its score until it is met
-- here, so a score is never above the true one, and the first lane is right if its true score is below the second's.
function lib.first_lane(c)
  local rl = P .. 'rl:' .. c.q .. ':' .. c.t
  while true do
    local z = call('ZRANGE', rl, 0, 1, 'WITHSCORES')
    c.lane = z[1]
    lib.head(c)
    if not z[3] or c.score <= tonumber(z[2]) or c.score < tonumber(z[4]) then return c end
    call('ZADD', rl, c.score, c.lane)
  end
end

function lib.candidate(q, m, pass) -- the lane that a member of ready:q stands for; nil = look again
  local name = m:sub(2)
  if m:sub(1, 1) == '~' then
    return lib.first_lane({q = q, t = name, at = 'rl', pass = pass, served = true})
  end
  local wt = P .. 'wt:' .. name .. ':' .. q
  local t, noted = lib.first(wt)
  if not t then
    call('ZREM', P .. 'ready:' .. q, m)
    return nil
  end
  local p = lib.pass_of(q, t) or 0
  if p > noted then -- it was served elsewhere meanwhile: its turn comes later
    call('ZADD', wt, p, t)
    local _, least = lib.first(wt)
    call('ZADD', P .. 'ready:' .. q, least, m)
    return nil
  end
  return lib.head({q = q, t = t, lane = lib.first(P .. 'wl:' .. name .. ':' .. q .. ':' .. t), at = name, pass = p})
end

-- one examination: a job, or nil after something was put in its place; true as second value = leave this queue for now
function lib.examine(q, m, pass)
  local c = lib.candidate(q, m, pass)
  if not c then return nil end
  local record = call('GET', P .. 'job:' .. c.id)
  if not record then return lib.leave_head(c, c.id, c.score, c.next) end
  local j = lib.job_words(lib.job_parse(c.id, record), record)
  local why = lib.expired(j)
  if why then
    lib.leave_head(c, c.id, c.score, c.next)
    return lib.bury(j, why, '{}')
  end
  local r, _, till = lib.check(j.res)
  if not r then return lib.admit(c, j, record) end
  local where = lib.park(c.lane, q, c.t, r, till)
  if m == '!' .. r and where == 'same' then call('ZREM', P .. 'ready:' .. q, m) end -- only its own first waiter closes a group
  return nil, where == 'queue'
end
