-- pressure: the bounds at the door, and how full a queue is.
-- needs: limits book
-- When room is likely: the time one job needed to finish lately, judged between two refusals at least a second apart.
function lib.retry_after(q)
  local s = call('HGET', P .. 'pace', q) or '0 0 1000'
  local at, seen, pace = s:match('^(%d+) (%d+) (%d+)$')
  local done = lib.book(q).out
  at, seen, pace = tonumber(at), tonumber(seen), tonumber(pace)
  if NOW - at >= 1000 then
    if at > 0 then pace = done > seen and (NOW - at) / (done - seen) or pace * 2 end
    pace = math.min(30000, math.max(100, pace))
    call('HSET', P .. 'pace', q, string.format('%d %d %d', NOW, done, pace))
  end
  return math.floor(pace)
end

-- The reaper looks at memory once a second, if there is one. A flood fills a small server in less, and then not even the
-- claims that would empty it have room. So the door looks too: once in 10 ms, and at each call that brings much.
local room -- bytes left below the mark of 85 %, as far as this call knows
function lib.begin_pressure()
  room = math.huge
  local c = call('HMGET', META, 'full', 'memory_at')
  meta.full = c[1] == '1'
  local bytes, again = 0, tonumber(c[2] or 0)
  for i = 5, #ARGV, 2 do bytes = bytes + #ARGV[i] end
  if bytes < 100000 and NOW < again and again - NOW <= 1000 then return end
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then return end -- an ACL without +info: the reaper still looks
  local used, most = tonumber(info:match('used_memory:(%d+)')), tonumber(info:match('maxmemory:(%d+)'))
  call('HSET', META, 'memory_at', lib.int(NOW + (most > 0 and 10 or 1000)))
  if most > 0 then room = 0.85 * most - used end
  if meta.full ~= (room <= 0) then
    meta.full = room <= 0
    call('HSET', META, 'full', meta.full and 1 or 0)
  end
end

function lib.bound(q, t, bytes) -- nil, or the refusal
  local lq, lt = lib.limit('queue:' .. q), lib.limit('tenant:' .. t)
  if lq.closed then return {'closed'} end
  if meta.full or room < bytes then return {'full', 'store', 0, 0, 1000} end
  local depth = lib.depth(q)
  if lq.depth >= 0 and depth >= lq.depth then return {'full', 'queue:' .. q, depth, lq.depth, lib.retry_after(q)} end
  local mine = lt.depth >= 0 and lib.tenant(q, t).n
  if mine and mine >= lt.depth then return {'full', 'tenant:' .. t, mine, lt.depth, lib.retry_after(q)} end
  room = room - bytes
end

function lib.level(depth, most)
  if most < 0 or depth < 0.7 * most then return 0 end
  return depth < 0.9 * most and 1 or 2
end

function lib.pressure(q, t) -- 0 green, 1 yellow, 2 red: the worse of queue and tenant
  local lq, lt = lib.limit('queue:' .. q).depth, lib.limit('tenant:' .. t).depth
  return math.max(lib.level(lib.depth(q), lq), lt < 0 and 0 or lib.level(lib.tenant(q, t).n, lt))
end
