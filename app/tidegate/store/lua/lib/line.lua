-- line: joining and leaving the waiting line of a lane, with the state that goes with it.
-- needs: lanes
-- A place: where a lane stands = lane, q, t, at ('rl' or the resource it is parked on); served = its tenant's turn came.
function lib.place(lane, q, t)
  return {lane = lane, q = q, t = t, at = call('HGET', P .. 'lm:' .. lane, 'at')}
end

-- old:q is for the age of the oldest waiting job: the first job of each lane, right to half a second
function lib.note_age(q, lane, s, was)
  if not was or math.floor(s / 500) ~= math.floor(was / 500) then call('ZADD', P .. 'old:' .. q, s, lane) end
end

-- another job, of score s, is first now (before: was): re-score in place, look at its resource once more. A lane whose turn it
-- is stays where it is, at the very front: its place is looked at when its next turn comes.
function lib.lane_rehead(c, s, was)
  lib.note_age(c.q, c.lane, s, was)
  if c.served then return end
  if c.at == 'rl' then
    call('ZADD', P .. 'rl:' .. c.q .. ':' .. c.t, s, c.lane)
    if lib.tenant_parked(c.q, c.t) then lib.event('tenant:' .. c.t) end
  else
    call('ZADD', P .. 'wl:' .. c.at .. ':' .. c.q .. ':' .. c.t, s, c.lane)
    lib.event(c.at)
  end
end

-- a job whose record says WAITING joins its lane; tenants are served from their pass, a newcomer from the least one
function lib.join(j)
  local key = P .. 'lane:' .. j.lane
  local head, least = lib.first(key)
  call('ZADD', key, lib.score(j), j.id)
  lib.set_due(j)
  if not head then
    if not j.res then lib.job_words(j, j.record) end
    call('HSET', P .. 'lm:' .. j.lane, 'q', j.q, 't', j.t, 'res', table.concat(j.res, ' '))
    lib.note_age(j.q, j.lane, lib.score(j))
    lib.lane_make_ready(j.lane, j.q, j.t)
  elseif lib.score(j) < least or (lib.score(j) == least and j.id < head) then
    lib.lane_rehead(lib.place(j.lane, j.q, j.t), lib.score(j), least)
  end
  lib.wake(j.q)
end

function lib.two(lane) -- the first job of a lane, its score, and the score of the one behind it
  local z = call('ZRANGE', P .. 'lane:' .. lane, 0, 1, 'WITHSCORES')
  return z[1], tonumber(z[2] or nil), tonumber(z[4] or nil)
end

function lib.leave_head(c, id, was, s) -- the first job goes out of its lane; its score, and that of the next one, or nil
  call('ZREM', P .. 'lane:' .. c.lane, id)
  if s then return lib.lane_rehead(c, s, was) end
  lib.lane_take_out(c.lane, c.q, c.t, c.at)
  call('DEL', P .. 'lm:' .. c.lane)
  call('ZREM', P .. 'old:' .. c.q, c.lane)
end

function lib.leave(lane, q, t, id) -- a waiting job goes out of its lane, wherever it stands
  local first, was, s = lib.two(lane)
  if first ~= id then return call('ZREM', P .. 'lane:' .. lane, id) end
  lib.leave_head(lib.place(lane, q, t), id, was, s)
end
