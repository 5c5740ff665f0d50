-- lanes: where waiting jobs stand (STORE.md §1). A lane is the waiting jobs of one (queue, tenant, resources).
-- Always true between scripts: a lane is in exactly one of rl (ready) and wl (parked); a tenant with a ready lane is in
-- ready:q or parked on its own limit, never both; a resource that admits its first waiter has an open group in ready:q.
-- needs: turn
function lib.waits_no_more(r, q) -- nothing of q is parked on r now
  call('SREM', P .. 'wq:' .. r, q)
  if call('EXISTS', P .. 'wq:' .. r) == 0 and call('SREM', P .. 'blocked', r) == 1 then lib.note_blocked() end
end

function lib.note_blocked() -- whether anything is parked anywhere stands in meta, which every call reads
  local any = call('EXISTS', P .. 'blocked') == 1
  if any ~= meta.blocked then
    meta.blocked = any
    call('HSET', META, 'blocked', any and 1 or 0)
  end
end

function lib.set_ring(t)
  meta.ring = t
  if t then call('HSET', META, 'ring', lib.int(t)) else call('HDEL', META, 'ring') end
end

function lib.lane_take_out(lane, q, t, at) -- out of rl or wl, and whatever that empties
  if at == 'rl' then
    local key = P .. 'rl:' .. q .. ':' .. t
    call('ZREM', key, lane)
    if call('EXISTS', key) == 0 then
      if not lib.tenant_out(q, t) and lib.tenant_parked(q, t) then lib.waits_no_more('tenant:' .. t, q) end
    end
    return
  end
  local wl, wt = P .. 'wl:' .. at .. ':' .. q .. ':' .. t, P .. 'wt:' .. at .. ':' .. q
  call('ZREM', wl, lane)
  if call('EXISTS', wl) == 1 then return end
  call('ZREM', wt, t)
  if call('EXISTS', wt) == 0 then
    lib.waits_no_more(at, q)
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
  for _, q in ipairs(call('SMEMBERS', P .. 'wq:' .. r)) do
    local t = r:match('^tenant:(.*)$')
    if t then
      lib.waits_no_more(r, q)
      lib.tenant_ready(q, t)
    elseif r == 'queue:' .. q then
      lib.waits_no_more(r, q)
    else
      local who = call('ZRANGE', P .. 'wt:' .. r .. ':' .. q, 0, 0, 'WITHSCORES')
      if who[1] then call('ZADD', P .. 'ready:' .. q, who[2], '!' .. r) end
    end
    lib.wake(q)
  end
end

-- the lane cannot start because of r: 'queue', 'tenant', 'moved', or 'same' if it was parked there already
function lib.park(lane, q, t, r, until_ms)
  if until_ms then
    call('ZADD', P .. 'timers', 'LT', until_ms, r)
    if not meta.ring or until_ms < meta.ring then lib.set_ring(until_ms) end
  end
  if call('SADD', P .. 'blocked', r) == 1 then lib.note_blocked() end
  if r == 'queue:' .. q then
    call('SADD', P .. 'wq:' .. r, q)
    return 'queue'
  end
  local at = call('HGET', P .. 'lm:' .. lane, 'at')
  if r == 'tenant:' .. t then
    if at ~= 'rl' then lib.lane_make_ready(lane, q, t) end
    call('SADD', P .. 'wq:' .. r, q)
    lib.tenant_out(q, t)
    return 'tenant'
  end
  if at == r then return 'same' end
  lib.lane_take_out(lane, q, t, at)
  call('HSET', P .. 'lm:' .. lane, 'at', r)
  local _, s = lib.first(P .. 'lane:' .. lane)
  call('ZADD', P .. 'wl:' .. r .. ':' .. q .. ':' .. t, s, lane)
  call('ZADD', P .. 'wt:' .. r .. ':' .. q, 'NX', lib.pass_of(q, t) or 0, t)
  call('SADD', P .. 'wq:' .. r, q)
  return 'moved'
end
