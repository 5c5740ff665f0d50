-- line: joining and leaving the waiting line of a lane, with the state that goes with it.
-- needs: lanes
-- the first job of every lane, for the age of a queue's oldest waiting job
local function note_head(lane, q)
  local _, s = first(P .. 'lane:' .. lane)
  if s then call('ZADD', P .. 'old:' .. q, s, lane) else call('ZREM', P .. 'old:' .. q, lane) end
  return s
end

local function lane_rehead(lane, q, t) -- another job is first now: re-score in place, and look at its resource once more
  local at = call('HGET', P .. 'lm:' .. lane, 'at')
  local s = note_head(lane, q)
  if at == 'rl' then
    call('ZADD', P .. 'rl:' .. q .. ':' .. t, s, lane)
    if tenant_parked(q, t) then event('tenant:' .. t) end
  else
    call('ZADD', P .. 'wl:' .. at .. ':' .. q .. ':' .. t, s, lane)
    event(at)
  end
end

-- a job whose record says WAITING joins its lane; tenants are served from their pass, a newcomer from the least one
local function join(j)
  local key, pass = P .. 'lane:' .. j.lane, P .. 'pass:' .. j.q
  if not rank(pass, j.t) then call('ZADD', pass, least_pass(j.q), j.t) end
  local head = first(key)
  call('ZADD', key, int(score(j)), j.id)
  set_due(j)
  if not head then
    call('HSET', P .. 'lm:' .. j.lane, 'q', j.q, 't', j.t, 'res', table.concat(j.res, ' '))
    note_head(j.lane, j.q)
    lane_make_ready(j.lane, j.q, j.t)
  elseif first(key) ~= head then
    lane_rehead(j.lane, j.q, j.t)
  end
  if call('ZCARD', P .. 'ready:' .. j.q) > 0 then wake(j.q) end
end

local function leave(lane, q, t, id) -- a waiting job goes out of its lane
  local key = P .. 'lane:' .. lane
  local head = first(key)
  call('ZREM', key, id)
  local next_head = first(key)
  if not next_head then
    lane_take_out(lane, q, t, call('HGET', P .. 'lm:' .. lane, 'at'))
    call('DEL', P .. 'lm:' .. lane)
    note_head(lane, q)
  elseif head == id then
    lane_rehead(lane, q, t)
  end
end

local function forget_tenant(q, t) -- a tenant with nothing here and no debt leaves no trace
  local p = rank(P .. 'pass:' .. q, t)
  if p and p <= vt(q) and not call('HGET', P .. 'td:' .. q, t) then
    call('ZREM', P .. 'pass:' .. q, t)
    call('HDEL', P .. 'mean:' .. q, t)
  end
end
