-- turn: tenants of a queue are served in turn (stride scheduling on slot-seconds); ready:q says whose lanes may be looked at.
-- needs: job
local virtual -- of this call: pass of the last tenant served, per queue; never falls
local woken -- of this call: queues that got their token
function lib.begin_turn() virtual, woken = {}, {} end

function lib.vt(q)
  if not virtual[q] then virtual[q] = tonumber(call('GET', P .. 'vt:' .. q) or 0) end
  return virtual[q]
end
function lib.least_pass(q)
  local _, p = lib.first(P .. 'pass:' .. q)
  return math.max(lib.vt(q), p or 0)
end
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

function lib.tenant_ready(q, t)
  local m = '~' .. t
  if call('EXISTS', P .. 'rl:' .. q .. ':' .. t) == 1 and not lib.tenant_parked(q, t) then
    if not lib.rank(P .. 'ready:' .. q, m) then -- a tenant that was blocked keeps 5 slot-seconds of credit, no more
      local p = math.max(lib.rank(P .. 'pass:' .. q, t) or lib.least_pass(q), lib.vt(q) - 5)
      call('ZADD', P .. 'pass:' .. q, p, t)
      call('ZADD', P .. 'ready:' .. q, p, m)
    end
    lib.wake(q)
  else
    call('ZREM', P .. 'ready:' .. q, m)
  end
end

function lib.reweigh(t, old, new)
  if old == new then return end
  for _, q in ipairs(call('SMEMBERS', P .. 'queues')) do
    local p, v = lib.rank(P .. 'pass:' .. q, t), lib.vt(q)
    if p and p > v then
      p = v + (p - v) * old / new
      call('ZADD', P .. 'pass:' .. q, p, t)
      call('ZADD', P .. 'ready:' .. q, 'XX', p, '~' .. t)
    end
  end
end

function lib.lift(q) -- a queue without unfinished jobs: nobody is owed anything
  local z = call('ZREVRANGE', P .. 'pass:' .. q, 0, 0, 'WITHSCORES')
  if z[1] and tonumber(z[2]) > lib.vt(q) then
    virtual[q] = tonumber(z[2])
    call('SET', P .. 'vt:' .. q, virtual[q])
  end
end

function lib.forget_tenant(q, t) -- a tenant with nothing here and no debt leaves no trace
  local p = lib.rank(P .. 'pass:' .. q, t)
  if p and p <= lib.vt(q) and call('HEXISTS', P .. 'td:' .. q, t) == 0 then
    call('ZREM', P .. 'pass:' .. q, t)
    call('HDEL', P .. 'mean:' .. q, t)
  end
end
