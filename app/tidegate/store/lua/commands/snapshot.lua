#!lua flags=no-writes
-- snapshot: the fleet in numbers, from one instant. What is looked at is bounded: the oldest lanes, the first leases.
-- needs:   record limits
-- keys:    prefix
-- args:    queue*
-- edge:    none
-- replies: snapshot(now, epoch, held_ms, resets, stale, expired, beat heard of, workers, failed, dead, died, refused, replays, fates, fire lag,
--          (queue, limit, paused, eligible time of the oldest that waits for a worker, of the oldest at a limit, its book)*,
--          (tenant, running, limit)*, (queue, tenant, eligible time of its oldest)*, names of all queues) | lost
local LANES, LEASES = 64, 200
local tenants, names, ages = {}, {}, {}
local function meet(t)
  if tenants[t] then return end
  tenants[t] = true
  names[#names + 1] = t
end

local function eligible(lane) -- of its first job; the score there is moved by its priority
  local job = lib.first(P .. 'lane:' .. lane)
  local at = job and call('GETRANGE', P .. 'job:' .. job, 18, 25) or ''
  return #at == 8 and struct.unpack('>I8', at) or nil
end

local function oldest(q) -- that waits for a worker, and that waits at a limit
  local found, seen = {[false] = 0, [true] = 0}, {}
  for _, lane in ipairs(call('ZRANGE', P .. 'old:' .. q, 0, LANES - 1)) do
    local c, at = call('HMGET', P .. 'lm:' .. lane, 't', 'at'), eligible(lane)
    local limited = c[2] ~= 'rl' or call('SISMEMBER', P .. 'wq:tenant:' .. c[1], q) == 1
    if at and (found[limited] == 0 or at < found[limited]) then found[limited] = at end
    if at and not seen[c[1]] then
      seen[c[1]] = true
      ages[#ages + 1] = {q, c[1], lib.int(at)}
      meet(c[1])
    end
  end
  if found[false] == 0 and found[true] > 0 then -- all of them at limits: then the first whose turn it is
    for _, m in ipairs(call('ZRANGE', P .. 'ready:' .. q, 0, LANES - 1)) do
      local lane = m:byte() == 126 and lib.first(P .. 'rl:' .. q .. ':' .. m:sub(2)) -- 126: a tenant
      if lane then
        found[false] = eligible(lane) or 0
        break
      end
    end
  end
  return lib.int(found[false]), lib.int(found[true])
end

local m = call('HMGET', META, 'resets', 'stale', 'expired', 'beat', 'fire_lag')
local queues, rows = {}, {}
for i = 4, #ARGV do
  local q = ARGV[i]
  local free, limited = oldest(q)
  local limit = lib.limit('queue:' .. q)
  queues[#queues + 1] = {q, lib.int(limit.depth), limit.paused and 1 or 0, free, limited, call('HGET', P .. 'book:' .. q, '')}
end
for _, lease in ipairs(call('ZRANGE', P .. 'leases', 0, LEASES - 1)) do
  local j = lib.job_read(lease:match('^%d+'))
  if j then meet(j.t) end
end
for _, t in ipairs(names) do
  rows[#rows + 1] = {t, call('SCARD', P .. 'use:tenant:' .. t), lib.int(lib.limit('tenant:' .. t).conc)}
end
return {'snapshot', lib.int(NOW), lib.int(meta.epoch), lib.int(lib.held()), m[1] or '0', m[2] or '0', m[3] or '0', m[4] or '0',
  call('HGETALL', P .. 'winfo'), call('ZCARD', P .. 'failed'), call('ZCARD', P .. 'dlq'), call('HGETALL', P .. 'died'),
  call('HGETALL', P .. 'refused'), call('HGETALL', P .. 'replays'), call('HGETALL', P .. 'fates'), m[5] or '0', queues, rows, ages, call('SMEMBERS', P .. 'queues')}
