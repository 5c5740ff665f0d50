-- lanes: where waiting jobs stand (STORE.md §1). A lane is the waiting jobs of one (queue, tenant, resources).
-- Always true between scripts: a lane is in exactly one of rl (ready) and wl (parked); a tenant with a ready lane is in
-- ready:q or parked on its own limit, never both; a resource that admits its first waiter has an open group in ready:q.
-- needs: job
local virtual = {} -- pass of the last tenant served, per queue; never falls
function lib.vt(q)
  if not virtual[q] then virtual[q] = tonumber(call('GET', P .. 'vt:' .. q) or 0) end
  return virtual[q]
end
function lib.least_pass(q)
  local _, p = lib.first(P .. 'pass:' .. q)
  return math.max(lib.vt(q), p or 0)
end
function lib.tenant_parked(q, t) return call('SISMEMBER', P .. 'wq:tenant:' .. t, q) == 1 end

local woken = {}
function lib.wake(q) -- a token only shortens a wait; what is ready is a state, so no token can be lost
  if woken[q] then return end
  woken[q] = true
  local key = P .. 'wake:' .. q
  if call('LLEN', key) < 32 then call('LPUSH', key, '1') end
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

function lib.lane_take_out(lane, q, t, at) -- out of rl or wl, and whatever that empties
  if at == 'rl' then
    local key = P .. 'rl:' .. q .. ':' .. t
    call('ZREM', key, lane)
    if call('EXISTS', key) == 0 then call('ZREM', P .. 'ready:' .. q, '~' .. t) end
    return
  end
  local wl, wt = P .. 'wl:' .. at .. ':' .. q .. ':' .. t, P .. 'wt:' .. at .. ':' .. q
  call('ZREM', wl, lane)
  if call('EXISTS', wl) == 1 then return end
  call('ZREM', wt, t)
  if call('EXISTS', wt) == 0 then
    call('SREM', P .. 'wq:' .. at, q)
    call('ZREM', P .. 'ready:' .. q, '!' .. at)
  end
end

function lib.lane_make_ready(lane, q, t)
  local at = call('HGET', P .. 'lm:' .. lane, 'at')
  if at and at ~= 'rl' then lib.lane_take_out(lane, q, t, at) end
  local _, s = lib.first(P .. 'lane:' .. lane)
  call('HSET', P .. 'lm:' .. lane, 'at', 'rl')
  call('ZADD', P .. 'rl:' .. q .. ':' .. t, s, lane)
  lib.tenant_ready(q, t)
end

-- something changed about r: its group is open again in every queue where lanes wait for it. Moves no lane.
function lib.event(r)
  local queues = call('SMEMBERS', P .. 'wq:' .. r)
  for _, q in ipairs(queues) do
    local t = r:match('^tenant:(.*)$')
    if t then
      call('SREM', P .. 'wq:' .. r, q)
      lib.tenant_ready(q, t)
    elseif r == 'queue:' .. q then
      call('SREM', P .. 'wq:' .. r, q)
    else
      local who = call('ZRANGE', P .. 'wt:' .. r .. ':' .. q, 0, 0, 'WITHSCORES')
      if who[1] then call('ZADD', P .. 'ready:' .. q, who[2], '!' .. r) end
    end
    lib.wake(q)
  end
  if queues[1] and call('EXISTS', P .. 'wq:' .. r) == 0 then call('SREM', P .. 'blocked', r) end
end

-- the lane cannot start because of r: 'queue', 'tenant', 'moved', or 'same' if it was parked there already
function lib.park(lane, q, t, r, until_ms)
  if until_ms then call('ZADD', P .. 'timers', 'LT', until_ms, r) end
  call('SADD', P .. 'blocked', r)
  if r == 'queue:' .. q then
    call('SADD', P .. 'wq:' .. r, q)
    return 'queue'
  end
  local at = call('HGET', P .. 'lm:' .. lane, 'at')
  if r == 'tenant:' .. t then
    if at ~= 'rl' then lib.lane_make_ready(lane, q, t) end
    call('SADD', P .. 'wq:' .. r, q)
    call('ZREM', P .. 'ready:' .. q, '~' .. t)
    return 'tenant'
  end
  if at == r then return 'same' end
  lib.lane_take_out(lane, q, t, at)
  call('HSET', P .. 'lm:' .. lane, 'at', r)
  local _, s = lib.first(P .. 'lane:' .. lane)
  call('ZADD', P .. 'wl:' .. r .. ':' .. q .. ':' .. t, s, lane)
  call('ZADD', P .. 'wt:' .. r .. ':' .. q, 'NX', lib.rank(P .. 'pass:' .. q, t) or 0, t)
  call('SADD', P .. 'wq:' .. r, q)
  return 'moved'
end
