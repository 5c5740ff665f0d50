-- limits: what a resource may do. One hash for the fleet: name -> nine numbers; a name never seen gets its kind's default
-- ("tenant:*"), never "unlimited by accident".
-- needs: base
local UNLIMITED = {weight = 1, conc = -1, n = 0, d = 1, burst = 0, depth = -1, paused = false, till = 0, closed = false}
local limits = {}

local function limit_parse(s)
  local w, c, n, d, b, dp, p, t, x = s:match('^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  return {weight = tonumber(w), conc = tonumber(c), n = tonumber(n), d = tonumber(d), burst = tonumber(b),
    depth = tonumber(dp), paused = p == '1', till = tonumber(t), closed = x == '1'}
end

local function limit(r)
  local l = limits[r]
  if l then return l end
  local found = call('HMGET', P .. 'lim', r, r:match('^[^:]+') .. ':*')
  l = (found[1] or found[2]) and limit_parse(found[1] or found[2]) or UNLIMITED
  limits[r] = l
  return l
end

-- Token buckets in whole micro-tokens: n of them every d ms; what does not make a whole one stays in the remainder, so no
-- rate drifts. The stamp never moves back, and a full bucket gathers no credit. Absent = what the epoch has gathered.
local function bucket_read(r, l)
  local s = call('GET', P .. 'bucket:' .. r)
  local tokens, stamp, rest
  if s then
    tokens, stamp, rest = s:match('^(%S+) (%S+) (%S+)$')
    tokens, stamp, rest = tonumber(tokens), tonumber(stamp), tonumber(rest)
  else
    tokens, stamp, rest = 0, meta.start, 0
  end
  if NOW > stamp then
    local elapsed = math.min(NOW - stamp, math.ceil(l.burst * l.d / l.n) + 1) -- longer than full changes nothing
    local credit = elapsed * l.n + rest
    tokens, rest, stamp = tokens + math.floor(credit / l.d), credit % l.d, NOW
  end
  if tokens >= l.burst then tokens, rest = l.burst, 0 end
  return {tokens = tokens, stamp = stamp, rest = rest}
end

local function bucket_write(r, l, b)
  local life = math.ceil(l.burst * l.d / l.n) + 3600000
  call('SET', P .. 'bucket:' .. r, int(b.tokens) .. ' ' .. int(b.stamp) .. ' ' .. int(b.rest), 'PX', int(life))
end

local TOKEN = 1000000

-- give back what an attempt that never started was charged
local function bucket_refund(r)
  local l = limit(r)
  if l.n == 0 then return end
  local b = bucket_read(r, l)
  b.tokens = math.min(l.burst, b.tokens + TOKEN)
  bucket_write(r, l, b)
end

-- why r lets no further job in now: nil, or kind and the instant at which it may (nil = an event must come)
local function blocker(r)
  local l = limit(r)
  if l.paused or l.conc == 0 then return 'gate' end
  if l.till > NOW then return 'gate', l.till end
  if l.conc > 0 and call('SCARD', P .. 'use:' .. r) >= l.conc then return 'conc' end
  if l.n > 0 then
    local b = bucket_read(r, l)
    if b.tokens < TOKEN then
      return 'tokens', NOW + math.max(1, math.ceil(((TOKEN - b.tokens) * l.d - b.rest) / l.n))
    end
  end
end

local ORDER = {gate = 1, conc = 2, tokens = 3}

-- all resources of a lane together: nil, or the first blocker (gates, then concurrency, then buckets), its kind, its instant
local function check(res)
  local best, kind, at
  for _, r in ipairs(res) do
    local k, t = blocker(r)
    if k and (not best or ORDER[k] < ORDER[kind] or (k == 'gate' and kind == 'gate' and (t or math.huge) > (at or math.huge))) then
      best, kind, at = r, k, t
    end
  end
  return best, kind, at
end

local function charge(res, member)
  for _, r in ipairs(res) do
    call('SADD', P .. 'use:' .. r, member)
    local l = limit(r)
    if l.n > 0 then
      local b = bucket_read(r, l)
      b.tokens = b.tokens - TOKEN
      bucket_write(r, l, b)
    end
  end
end
