-- attempt: the end of one. Its lease was taken from the store by the caller; here go units, pass, state and error.
-- needs: finish
local function lease_of(j) return j.id .. ':' .. int(j.fence) end

-- fair shares count slot-seconds: the estimate charged at the claim is corrected by what was really used, down as well as
-- up, but up at most 60 slot-seconds ahead of the others, because capacity that stood idle is not a debt
local function correct_pass(j)
  local used, est, w = math.max(0, NOW - j.started) / 1000, j.est / 1000000, limit('tenant:' .. j.t).weight
  local mean = tonumber(call('HGET', P .. 'mean:' .. j.q, j.t) or used)
  call('HSET', P .. 'mean:' .. j.q, j.t, string.format('%.6f', 0.8 * mean + 0.2 * used))
  local old = rank(P .. 'pass:' .. j.q, j.t)
  if not old then return end
  local p = old + (used - est) / w
  if p > old then
    local z, cap = call('ZRANGE', P .. 'pass:' .. j.q, 0, 1, 'WITHSCORES'), math.huge
    local other = z[1] ~= j.t and z[2] or z[4]
    if other then cap = math.max(vt(j.q), tonumber(other)) + 60 / w end
    p = math.min(p, math.max(old, cap))
  end
  call('ZADD', P .. 'pass:' .. j.q, p, j.t)
  call('ZADD', P .. 'ready:' .. j.q, 'XX', p, '~' .. j.t)
end

local function free_units(j)
  for _, r in ipairs(j.res) do
    call('SREM', P .. 'use:' .. r, lease_of(j))
    event(r)
  end
end

local function back_to_line(j) -- to the front: the score it had; a queue timeout starts anew
  j.started = NOW
  move(j, WAITING)
  join(j)
end

local function end_attempt(j, kind, reason, detail)
  free_units(j)
  correct_pass(j)
  if kind == 'ok' then finish(j, SUCCEEDED)
  elseif kind == 'cancelled' then finish(j, CANCELLED)
  elseif kind == 'undeliverable' then bury(j, reason, detail)
  elseif kind == 'release' then
    for _, r in ipairs(j.res) do bucket_refund(r) end
    back_to_line(j)
  else -- failed: stays here until the authority decides
    j.charged = j.charged + 1
    move(j, FAILED)
    call('ZADD', P .. 'failed', int(NOW), j.id)
    call('SET', P .. 'err:' .. j.id, reason .. ' ' .. detail)
  end
end

-- the report of a worker; a token that is not the lease of that job any more is refused and counted
local function settle(lease, kind, reason, detail)
  local id, fence = lease:match('^(%d+):(%d+)$')
  local j = id and call('ZREM', P .. 'leases', lease) == 1 and job_read(id)
  if not j or int(j.fence) ~= fence then
    call('HINCRBY', META, 'stale', 1)
    return 'stale'
  end
  end_attempt(j, kind, reason, detail)
  return 'ok'
end
