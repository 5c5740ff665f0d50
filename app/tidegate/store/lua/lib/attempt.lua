-- attempt: the end of one. Its lease was taken from the store by the caller; here go units, pass, state and error.
-- needs: tries check
local CRASHES = {worker_lost = true, memory = true} -- ends that may have taken a process with them
local GUESS = 0.01 -- slot-seconds of an unknown tenant; a large guess would lift the virtual time and shut newcomers out
function lib.charged(j) return j.est == 0 and GUESS or j.est / 1000000 end -- slot-seconds at the claim; 0 = nothing was known

function lib.lease_of(j) return j.id .. ':' .. lib.int(j.fence) end

-- fair shares count slot-seconds: the estimate charged at the claim is corrected by what was really used, down as well as
-- up, but up at most 60 slot-seconds ahead of the others, because capacity that stood idle is not a debt
function lib.correct_pass(j)
  local used, est, w = math.max(0, NOW - j.started) / 1000, lib.charged(j), lib.limit('tenant:' .. j.t).weight
  local mean = j.est == 0 and used or 1.6 * est + 0.2 * used -- the estimate was half the mean
  if j.est == 0 or math.abs(mean - 2 * est) > 0.1 * est then
    local x = lib.tenant(j.q, j.t)
    x.mean, x.changed = tonumber(string.format('%.6f', mean)), true
  end
  local d = (used - est) / w
  local ready = call('ZADD', P .. 'ready:' .. j.q, 'XX', 'INCR', d, '~' .. j.t)
  local p = tonumber(ready or call('ZINCRBY', P .. 'pass:' .. j.q, d, j.t))
  if d > 0 and p > lib.vt(j.q) + 60 / w then
    local other = lib.least_other(j.q, j.t)
    local cap = other and math.max(lib.vt(j.q), other) + 60 / w
    if cap and p > cap then lib.set_pass(j.q, j.t, math.max(p - d, cap), ready) end
  end
end

function lib.free_units(j)
  local lease = lib.lease_of(j)
  for i = 2, #j.res do call('SREM', P .. 'use:' .. j.res[i], lease) end
  if not meta.blocked then return end
  local wanted = call('SMISMEMBER', P .. 'blocked', unpack(j.res))
  for i, r in ipairs(j.res) do
    if wanted[i] == 1 then lib.event(r) end
  end
end

function lib.back_to_line(j) -- to the front: the score it had; a queue timeout starts anew
  j.started = NOW
  lib.move(j, S.WAITING)
  lib.join(j)
end

function lib.fail(j, reason, detail)
  lib.move(j, S.FAILED)
  call('ZADD', P .. 'failed', NOW, j.id)
  lib.note_error(j, reason, detail)
end

function lib.end_attempt(j, kind, reason, detail, worker)
  lib.free_units(j)
  lib.correct_pass(j)
  if kind == 'ok' then lib.finish(j, S.SUCCEEDED)
  elseif kind == 'cancelled' then lib.finish(j, S.CANCELLED)
  elseif kind == 'undeliverable' then
    lib.note_try(j, reason, detail, worker)
    lib.bury(j, reason, detail)
  elseif kind == 'release' then
    for _, r in ipairs(j.res) do lib.bucket_refund(r) end
    lib.back_to_line(j)
  else -- failed: stays here until the authority decides
    j.charged = j.charged + 1
    if CRASHES[reason] then j.crashes = j.crashes + 1 end
    lib.note_try(j, reason, detail, worker)
    lib.fail(j, reason, detail)
  end
end

-- the report of a worker; a token that is not the lease of that job any more is refused and counted
function lib.settle(lease, kind, reason, detail, worker)
  local id, fence = lease:match('^(%d+):(%d+)$')
  local j = id and call('ZREM', P .. 'leases', lease) == 1 and lib.job_read(id)
  if not j or lib.int(j.fence) ~= fence then
    call('HINCRBY', META, 'stale', 1)
    return 'stale'
  end
  lib.end_attempt(j, kind, reason, detail, worker)
  return 'ok'
end
