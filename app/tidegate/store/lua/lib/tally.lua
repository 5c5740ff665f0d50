-- tally: unfinished jobs of a queue and of its tenants. Read once, counted here while a script takes jobs in, written once.
-- needs: job
local tallies -- of this call
function lib.begin_tally() tallies = {} end

function lib.tally(q)
  local y = tallies[q]
  if not y then
    local c = call('HMGET', P .. 'cnt:' .. q, 'W', 'D', 'F')
    local w, d, f = tonumber(c[1] or 0), tonumber(c[2] or 0), tonumber(c[3] or 0)
    y = {q = q, waiting = w, depth = w + d + f + call('SCARD', P .. 'use:queue:' .. q), mine = {}, new = {}, states = {}}
    tallies[q] = y
  end
  return y
end

function lib.tally_of(y, t)
  if not y.mine[t] then y.mine[t] = (y.new[t] or 0) + (call('HGET', P .. 'td:' .. y.q, t) or 0) end
  return y.mine[t]
end

function lib.tally_add(j)
  local y, letter = lib.tally(j.q), string.char(j.state)
  y.depth = y.depth + 1
  if j.state == S.WAITING then y.waiting = y.waiting + 1 end
  y.states[letter] = (y.states[letter] or 0) + 1
  y.new[j.t] = (y.new[j.t] or 0) + 1
  if y.mine[j.t] then y.mine[j.t] = y.mine[j.t] + 1 end
  return y
end

function lib.tally_write()
  for q, y in pairs(tallies) do
    for letter, n in pairs(y.states) do call('HINCRBY', P .. 'cnt:' .. q, letter, n) end
    for t, n in pairs(y.new) do call('HINCRBY', P .. 'td:' .. q, t, n) end
    if next(y.new) then call('SADD', P .. 'queues', q) end
  end
end
