-- reap: leases that ended. A gap in the pulse (outage, frozen server, clock step, nobody there) means that heartbeats
-- could not arrive: then nothing is judged for one lease.
-- needs: attempt
function lib.pulse() -- true if leases may be judged
  meta.judge = lib.rarely('judge')
  if NOW - meta.pulse > 2000 then
    meta.judge = NOW + meta.lease
    call('HSET', META, 'judge', meta.judge)
  end
  call('HSET', META, 'pulse', NOW)
  return meta.judge <= NOW and lib.held() == 0
end

-- One lease: never heard of again after its claim = the reply was lost: not charged, at most twice. The first crash of a
-- job goes straight back, so that recovery needs nobody but a worker; later ones wait for the authority. A job that must not
-- run twice never goes back by itself: its worker may have died between the start of the body and the first heartbeat.
function lib.reap_one(lease, expiry, gone)
  local j = lib.job_read(lease:match('^(%d+):'))
  call('ZREM', P .. 'leases', lease)
  if not j or lib.lease_of(j) ~= lease then return end
  lib.free_units(j)
  lib.correct_pass(j)
  local again = j.flags % 2 ~= AT_MOST_ONCE
  if again and expiry == j.started + meta.lease and j.lost < 2 then
    j.lost = j.lost + 1
    lib.back_to_line(j)
    gone.requeued = gone.requeued + 1
    return
  end
  call('HINCRBY', META, 'expired', 1)
  j.crashes, j.charged = j.crashes + 1, j.charged + 1
  lib.note_try(j, 'worker_lost', '')
  if again and j.crashes == 1 then
    lib.note_error(j, 'worker_lost', '{}')
    lib.back_to_line(j)
    gone.requeued = gone.requeued + 1
  else
    lib.fail(j, 'worker_lost', '{}')
    gone.failed = gone.failed + 1
  end
end

function lib.reap(limit_n)
  local gone = {requeued = 0, failed = 0}
  if not lib.pulse() then return gone end
  local z = call('ZRANGE', P .. 'leases', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit_n, 'WITHSCORES')
  for i = 1, #z, 2 do lib.reap_one(z[i], tonumber(z[i + 1]), gone) end
  return gone
end

-- delayed jobs whose time has come, and waiting ones whose time is over; not during a hold, when some of them may be running
function lib.promote(limit_n)
  if lib.held() > 0 then return 0 end
  local due = call('ZRANGE', P .. 'due', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit_n)
  for _, id in ipairs(due) do
    call('ZREM', P .. 'due', id)
    local j = lib.job_read(id)
    if j and (j.state == S.WAITING or lib.sleeps(j)) then
      local why = lib.expired(j)
      if why then
        if j.state == S.WAITING then lib.leave(j.lane, j.q, j.t, id) end
        lib.bury(j, why, '{}')
      elseif lib.sleeps(j) and j.eligible <= NOW then
        lib.move(j, S.WAITING)
        lib.join(j)
      else
        lib.set_due(j)
      end
    end
  end
  return #due
end

function lib.ring(limit_n) -- instants that resources wait for; meta.ring = the earliest of them, or earlier
  if not meta.ring or meta.ring > NOW then return end
  for _, r in ipairs(call('ZRANGE', P .. 'timers', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit_n)) do
    call('ZREM', P .. 'timers', r)
    lib.event(r)
  end
  local _, t = lib.first(P .. 'timers')
  lib.set_ring(t)
end
