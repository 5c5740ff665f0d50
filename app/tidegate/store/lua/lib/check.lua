-- check: all resources of a lane together, and the charge of all of them.
-- needs: bucket book
function lib.in_use(r) -- a queue counts its running jobs; every other resource knows them by name
  local q = r:match('^queue:(.*)$')
  return q and lib.book(q).R or call('SCARD', P .. 'use:' .. r)
end

-- why r lets no further job in now: nil, or kind and the instant at which it may (nil = an event must come)
function lib.blocker(r)
  local l = lib.limit(r)
  if l.paused or l.conc == 0 then return 'gate' end
  if l.till > NOW then return 'gate', l.till end
  if l.conc > 0 and lib.in_use(r) >= l.conc then return 'conc' end
  if l.n > 0 then
    local b = lib.bucket_read(r, l)
    if b.tokens < TOKEN then
      return 'tokens', NOW + math.max(1, math.ceil(((TOKEN - b.tokens) * l.d - b.rest) / l.n))
    end
  end
end

local ORDER = {gate = 1, conc = 2, tokens = 3}

-- all resources of a lane together: nil, or the first blocker (gates, then concurrency, then buckets), its kind, its instant
function lib.check(res)
  local best, kind, at
  lib.limits_of(res)
  for _, r in ipairs(res) do
    local k, t = lib.blocker(r)
    if k and (not best or ORDER[k] < ORDER[kind] or (k == 'gate' and kind == 'gate' and (t or math.huge) > (at or math.huge))) then
      best, kind, at = r, k, t
    end
  end
  return best, kind, at
end

function lib.charge(res, member)
  for i, r in ipairs(res) do
    if i > 1 then call('SADD', P .. 'use:' .. r, member) end
    local l = lib.limit(r)
    if l.n > 0 then
      local b = lib.bucket_read(r, l)
      b.tokens = b.tokens - TOKEN
      lib.bucket_write(r, l, b)
    end
  end
end
