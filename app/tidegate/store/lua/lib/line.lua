-- line: joining and leaving the waiting line of a lane, with the state that goes with it.
-- needs: lanes
-- the first job of every lane, for the age of a queue's oldest waiting job
function lib.note_head(lane, q)
  local _, s = lib.first(P .. 'lane:' .. lane)
  if s then call('ZADD', P .. 'old:' .. q, s, lane) else call('ZREM', P .. 'old:' .. q, lane) end
  return s
end

function lib.lane_rehead(lane, q, t, at) -- another job is first now: re-score in place, look at its resource once more
  local s = lib.note_head(lane, q)
  if at == 'rl' then
    call('ZADD', P .. 'rl:' .. q .. ':' .. t, s, lane)
    if lib.tenant_parked(q, t) then lib.event('tenant:' .. t) end
  else
    call('ZADD', P .. 'wl:' .. at .. ':' .. q .. ':' .. t, s, lane)
    lib.event(at)
  end
end

-- a job whose record says WAITING joins its lane; tenants are served from their pass, a newcomer from the least one
function lib.join(j)
  local key, pass = P .. 'lane:' .. j.lane, P .. 'pass:' .. j.q
  local head, least = lib.first(key)
  call('ZADD', key, lib.score(j), j.id)
  lib.set_due(j)
  if not head then
    if not lib.rank(pass, j.t) then call('ZADD', pass, lib.least_pass(j.q), j.t) end
    if not j.res then lib.job_words(j, j.record) end
    call('HSET', P .. 'lm:' .. j.lane, 'q', j.q, 't', j.t, 'res', table.concat(j.res, ' '))
    lib.note_head(j.lane, j.q)
    lib.lane_make_ready(j.lane, j.q, j.t)
  elseif lib.score(j) < least or (lib.score(j) == least and j.id < head) then
    lib.lane_rehead(j.lane, j.q, j.t, call('HGET', P .. 'lm:' .. j.lane, 'at'))
  end
  if not woken[j.q] and call('EXISTS', P .. 'ready:' .. j.q) == 1 then lib.wake(j.q) end
end

-- the first job goes out of its lane, which stands at `at`; `rest` = others wait behind it
function lib.leave_head(lane, q, t, id, at, rest)
  call('ZREM', P .. 'lane:' .. lane, id)
  if rest then return lib.lane_rehead(lane, q, t, at) end
  lib.lane_take_out(lane, q, t, at)
  call('DEL', P .. 'lm:' .. lane)
  call('ZREM', P .. 'old:' .. q, lane)
end

function lib.leave(lane, q, t, id) -- a waiting job goes out of its lane, wherever it stands
  local z = call('ZRANGE', P .. 'lane:' .. lane, 0, 1)
  if z[1] ~= id then return call('ZREM', P .. 'lane:' .. lane, id) end
  lib.leave_head(lane, q, t, id, call('HGET', P .. 'lm:' .. lane, 'at'), z[2])
end
