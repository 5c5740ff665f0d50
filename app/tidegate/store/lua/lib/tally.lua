-- tally: unfinished jobs of a queue and of its tenants. Read once, counted here while a script takes jobs in, written once.
-- needs: job
local tallies -- of this call
function lib.begin_tally() tallies = {} end

function lib.tally(q)
  local y = tallies[q]
  if not y then
    local c = call('HMGET', P .. 'cnt:' .. q, 'in', 'out', 'D', 'F')
    local n, w = (c[1] or 0) - (c[2] or 0), call('SCARD', P .. 'use:queue:' .. q) + (c[3] or 0) + (c[4] or 0)
    y = {q = q, waiting = n - w, depth = n, unknown = not c[1], taken = 0, delayed = 0, mine = {}, new = {}}
    tallies[q] = y
  end
  return y
end

function lib.tally_of(y, t)
  if not y.mine[t] then y.mine[t] = (y.new[t] or 0) + (call('HGET', P .. 'td:' .. y.q, t) or 0) end
  return y.mine[t]
end

function lib.tally_add(j)
  local y = lib.tally(j.q)
  y.depth, y.taken = y.depth + 1, y.taken + 1
  if j.state == S.DELAYED then y.delayed = y.delayed + 1 else y.waiting = y.waiting + 1 end
  y.new[j.t] = (y.new[j.t] or 0) + 1
  if y.mine[j.t] then y.mine[j.t] = y.mine[j.t] + 1 end
  return y
end

function lib.tally_write()
  for q, y in pairs(tallies) do
    if y.taken > 0 then call('HINCRBY', P .. 'cnt:' .. q, 'in', y.taken) end
    if y.delayed > 0 then call('HINCRBY', P .. 'cnt:' .. q, 'D', y.delayed) end
    for t, n in pairs(y.new) do call('HINCRBY', P .. 'td:' .. q, t, n) end
    if y.taken > 0 and y.unknown then call('SADD', P .. 'queues', q) end
  end
end
