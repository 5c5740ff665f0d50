-- pressure: the bounds at the door, and how full a queue is.
-- needs: limits
-- When room is likely: the time one job needed to finish lately, judged between two refusals at least a second apart.
function lib.retry_after(q)
  local c = call('HMGET', P .. 'cnt:' .. q, 'finished', 'seen_at', 'seen', 'pace')
  local done, at, seen, pace = tonumber(c[1] or 0), tonumber(c[2] or 0), tonumber(c[3] or 0), tonumber(c[4] or 1000)
  if NOW - at >= 1000 then
    if at > 0 then pace = done > seen and (NOW - at) / (done - seen) or pace * 2 end
    pace = math.min(30000, math.max(100, pace))
    call('HSET', P .. 'cnt:' .. q, 'seen_at', lib.int(NOW), 'seen', lib.int(done), 'pace', lib.int(pace))
  end
  return math.floor(pace)
end

local depths = {} -- unfinished jobs of a queue: waiting, delayed, failed, running
function lib.depth_of(q)
  if not depths[q] then
    local c = call('HMGET', P .. 'cnt:' .. q, 'W', 'D', 'F')
    depths[q] = (c[1] or 0) + (c[2] or 0) + (c[3] or 0) + call('SCARD', P .. 'use:queue:' .. q)
  end
  return depths[q]
end

function lib.bound(q, t) -- nil, or the refusal
  local lq, lt = lib.limit('queue:' .. q), lib.limit('tenant:' .. t)
  if lq.closed then return {'closed'} end
  if meta.full then return {'full', 'store', 0, 0, 1000} end
  local depth = lib.depth_of(q)
  if lq.depth >= 0 and depth >= lq.depth then return {'full', 'queue:' .. q, depth, lq.depth, lib.retry_after(q)} end
  local mine = lt.depth >= 0 and tonumber(call('HGET', P .. 'td:' .. q, t) or 0)
  if mine and mine >= lt.depth then return {'full', 'tenant:' .. t, mine, lt.depth, lib.retry_after(q)} end
end

function lib.level(depth, most)
  if most < 0 or depth < 0.7 * most then return 0 end
  return depth < 0.9 * most and 1 or 2
end

function lib.pressure(q, t, depth, mine) -- 0 green, 1 yellow, 2 red: the worse of queue and tenant
  return math.max(lib.level(depth, lib.limit('queue:' .. q).depth), lib.level(mine, lib.limit('tenant:' .. t).depth))
end
