-- line: joining and leaving the waiting line of a lane, with the state that goes with it.
-- needs: lanes
-- A place: where a lane stands = lane, q, t, at ('rl' or the resource it is parked on); served = its tenant's turn came.
function lib.place(lane, q, t)
  return {lane = lane, q = q, t = t, at = call('HGET', P .. 'lm:' .. lane, 'at')}
end

-- another job, of score s, is first now: re-score in place, look at its resource once more
function lib.lane_rehead(c, s)
  call('ZADD', P .. 'old:' .. c.q, s, c.lane) -- the first job of every lane, for the age of a queue's oldest waiting job
  if c.at == 'rl' then
    call('ZADD', P .. 'rl:' .. c.q .. ':' .. c.t, s, c.lane)
    if not c.served and lib.tenant_parked(c.q, c.t) then lib.event('tenant:' .. c.t) end
  else
    call('ZADD', P .. 'wl:' .. c.at .. ':' .. c.q .. ':' .. c.t, s, c.lane)
    lib.event(c.at)
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
    call('ZADD', P .. 'old:' .. j.q, lib.score(j), j.lane)
    lib.lane_make_ready(j.lane, j.q, j.t)
  elseif lib.score(j) < least or (lib.score(j) == least and j.id < head) then
    lib.lane_rehead(lib.place(j.lane, j.q, j.t), lib.score(j))
  end
  lib.wake(j.q)
end

function lib.two(lane) -- the first job of a lane, and the score of the one behind it
  local z = call('ZRANGE', P .. 'lane:' .. lane, 0, 1, 'WITHSCORES')
  return z[1], z[4]
end

function lib.leave_head(c, id, s) -- the first job goes out of its lane; s: score of the next one, or nil
  call('ZREM', P .. 'lane:' .. c.lane, id)
  if s then return lib.lane_rehead(c, s) end
  lib.lane_take_out(c.lane, c.q, c.t, c.at)
  call('DEL', P .. 'lm:' .. c.lane)
  call('ZREM', P .. 'old:' .. c.q, c.lane)
end

function lib.leave(lane, q, t, id) -- a waiting job goes out of its lane, wherever it stands
  local first, s = lib.two(lane)
  if first ~= id then return call('ZREM', P .. 'lane:' .. lane, id) end
  lib.leave_head(lib.place(lane, q, t), id, s)
end
