-- bucket: token buckets, exact in integers.
-- needs: limits
-- Token buckets in whole micro-tokens: n of them every d ms; what does not make a whole one stays in the remainder, so no
-- rate drifts. The stamp never moves back, and a full bucket gathers no credit. Absent = what the epoch has gathered.
function lib.bucket_read(r, l)
  local s = call('GET', P .. 'bucket:' .. r)
  local tokens, stamp, rest
  if s then
    tokens, stamp, rest = s:match('^(%S+) (%S+) (%S+)$')
    tokens, stamp, rest = tonumber(tokens), tonumber(stamp), tonumber(rest)
  else
    tokens, stamp, rest = 0, lib.rarely('start'), 0
  end
  if NOW > stamp then
    local elapsed = math.min(NOW - stamp, math.ceil(l.burst * l.d / l.n) + 1) -- longer than full changes nothing
    local credit = elapsed * l.n + rest
    tokens, rest, stamp = tokens + math.floor(credit / l.d), credit % l.d, NOW
  end
  if tokens >= l.burst then tokens, rest = l.burst, 0 end
  return {tokens = tokens, stamp = stamp, rest = rest}
end

function lib.bucket_write(r, l, b)
  local life = math.ceil(l.burst * l.d / l.n) + 3600000
  call('SET', P .. 'bucket:' .. r, lib.int(b.tokens) .. ' ' .. lib.int(b.stamp) .. ' ' .. lib.int(b.rest), 'PX', lib.int(life))
end

local TOKEN = 1000000

-- give back what an attempt that never started was charged
function lib.bucket_refund(r)
  local l = lib.limit(r)
  if l.n == 0 then return end
  local b = lib.bucket_read(r, l)
  b.tokens = math.min(l.burst, b.tokens + TOKEN)
  lib.bucket_write(r, l, b)
end
