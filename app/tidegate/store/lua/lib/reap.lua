-- reap: leases that ended. A gap in the pulse (outage, frozen server, clock step, nobody there) means that heartbeats
-- could not arrive: then nothing is judged for one lease.
-- needs: attempt
local function pulse() -- true if leases may be judged
  local m = call('HMGET', META, 'pulse', 'judge')
  local judge = tonumber(m[2])
  if NOW - tonumber(m[1]) > 2000 then
    judge = NOW + meta.lease
    call('HSET', META, 'judge', int(judge))
  end
  call('HSET', META, 'pulse', int(NOW))
  return judge <= NOW and held() == 0
end

-- One lease: never heard of again after its claim = the reply was lost: not charged, at most twice. The first crash of a
-- job goes straight back, so that recovery needs nobody but a worker; later ones wait for the authority.
local function reap_one(lease, expiry, gone)
  local j = job_read(lease:match('^(%d+):'))
  call('ZREM', P .. 'leases', lease)
  if not j or lease_of(j) ~= lease then return end
  free_units(j)
  correct_pass(j)
  if expiry == j.started + meta.lease and j.lost < 2 then
    j.lost = j.lost + 1
    back_to_line(j)
    gone.requeued = gone.requeued + 1
    return
  end
  call('HINCRBY', META, 'expired', 1)
  j.crashes, j.charged = j.crashes + 1, j.charged + 1
  call('SET', P .. 'err:' .. j.id, 'worker_lost {}')
  if j.crashes == 1 and j.flags % 2 ~= AT_MOST_ONCE then
    back_to_line(j)
    gone.requeued = gone.requeued + 1
  else
    move(j, FAILED)
    call('ZADD', P .. 'failed', int(NOW), j.id)
    gone.failed = gone.failed + 1
  end
end

local function reap(limit_n)
  local gone = {requeued = 0, failed = 0}
  if not pulse() then return gone end
  local z = call('ZRANGE', P .. 'leases', '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, limit_n, 'WITHSCORES')
  for i = 1, #z, 2 do reap_one(z[i], tonumber(z[i + 1]), gone) end
  return gone
end

-- delayed jobs whose time has come, and waiting ones whose time is over
local function promote(limit_n)
  local due = call('ZRANGE', P .. 'due', '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, limit_n)
  for _, id in ipairs(due) do
    call('ZREM', P .. 'due', id)
    local j = job_read(id)
    if j and (j.state == WAITING or j.state == DELAYED) then
      local why = expired(j)
      if why then
        if j.state == WAITING then leave(j.lane, j.q, j.t, id) end
        bury(j, why, '{}')
      elseif j.state == DELAYED and j.eligible <= NOW then
        move(j, WAITING)
        join(j)
      else
        set_due(j)
      end
    end
  end
  return #due
end

local function ring(limit_n) -- instants that resources wait for
  for _, r in ipairs(call('ZRANGE', P .. 'timers', '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, limit_n)) do
    call('ZREM', P .. 'timers', r)
    event(r)
  end
end
