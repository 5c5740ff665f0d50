-- turn: tenants of a queue are served in turn (stride scheduling on slot-seconds); ready:q says whose lanes may be looked at.
-- needs: job
-- A tenant's pass stands in ready:q while it is there, else in pass:q.
local woken -- of this call: queues that got their token
function lib.begin_turn() woken = {} end

function lib.pass_of(q, t) return lib.rank(P .. 'ready:' .. q, '~' .. t) or lib.rank(P .. 'pass:' .. q, t) end

function lib.set_pass(q, t, p, is_ready)
  if is_ready or lib.rank(P .. 'ready:' .. q, '~' .. t) then call('ZADD', P .. 'ready:' .. q, p, '~' .. t)
  else call('ZADD', P .. 'pass:' .. q, p, t) end
end

function lib.least_of(z, but) -- of members and scores: the least tenant but that one, and its pass
  for i = 1, #z, 2 do
    if z[i] ~= but and z[i]:byte() ~= 33 then return z[i], tonumber(z[i + 1]) end -- 33: an open group
  end
end

function lib.least_other(q, t) -- pass of the tenant that is served before all others, t left aside; nil = there is none
  local _, p = lib.least_of(call('ZRANGE', P .. 'pass:' .. q, 0, 1, 'WITHSCORES'), t)
  for _, last in ipairs({3, 63}) do -- behind 60 open groups the order of tenants says little
    local z = call('ZRANGE', P .. 'ready:' .. q, 0, last, 'WITHSCORES')
    local m, least = lib.least_of(z, t and '~' .. t)
    if m then return math.min(p or least, least) end
    if #z <= 2 * last then return p end
  end
  return p
end

function lib.vt(q) return lib.book(q).vt end
function lib.raise_vt(q, p) -- it never falls
  local b = lib.book(q)
  if p > b.vt then b.vt, b.changed = p, true end
end
function lib.least_pass(q) return math.max(lib.vt(q), lib.least_other(q) or 0) end
function lib.tenant_parked(q, t) return call('SISMEMBER', P .. 'wq:tenant:' .. t, q) == 1 end

-- A token only shortens a wait; what is ready is a state, so no token can be lost. Waits end after a second at most: if no
-- claim was told to wait for longer than that, nobody is there to be woken.
function lib.wake(q)
  if woken[q] or NOW - meta.idle > 3000 then return end
  local key = P .. 'wake:' .. q
  if call('LLEN', key) < 32 then
    if call('EXISTS', P .. 'ready:' .. q) == 0 then return end
    call('LPUSH', key, '1')
  end
  woken[q] = true
end

function lib.note_idle() -- somebody is about to wait
  if NOW - meta.idle > 500 then call('HSET', META, 'idle', lib.int(NOW)) end
end

function lib.tenant_out(q, t) -- out of ready:q; true if it was there
  local p = lib.rank(P .. 'ready:' .. q, '~' .. t)
  if not p then return false end
  call('ZREM', P .. 'ready:' .. q, '~' .. t)
  call('ZADD', P .. 'pass:' .. q, p, t)
  return true
end

function lib.tenant_ready(q, t)
  if call('EXISTS', P .. 'rl:' .. q .. ':' .. t) == 0 or lib.tenant_parked(q, t) then return lib.tenant_out(q, t) end
  if not lib.rank(P .. 'ready:' .. q, '~' .. t) then
    local known = lib.rank(P .. 'pass:' .. q, t) -- one that was blocked keeps 5 slot-seconds of credit, no more
    if known then call('ZREM', P .. 'pass:' .. q, t) end
    call('ZADD', P .. 'ready:' .. q, math.max(known or lib.least_pass(q), lib.vt(q) - 5), '~' .. t)
  end
  lib.wake(q)
end

function lib.reweigh(t, old, new)
  if old == new then return end
  for _, q in ipairs(call('SMEMBERS', P .. 'queues')) do
    local p, v = lib.pass_of(q, t), lib.vt(q)
    if p and p > v then lib.set_pass(q, t, v + (p - v) * old / new) end
  end
end

function lib.lift(q) -- a queue without unfinished jobs: nobody is owed anything
  local z = call('ZREVRANGE', P .. 'pass:' .. q, 0, 0, 'WITHSCORES')
  if z[1] then lib.raise_vt(q, tonumber(z[2])) end
end

function lib.forget_tenant(q, t) -- a tenant with nothing here and no debt leaves no trace
  local p = lib.rank(P .. 'pass:' .. q, t)
  local x = lib.tenant(q, t)
  if p and p <= lib.vt(q) and x.n == 0 then
    call('ZREM', P .. 'pass:' .. q, t)
    x.mean, x.changed = 0, true
  end
end
