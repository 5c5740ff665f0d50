-- claim: who is served next (STORE.md §1, step 5).
-- needs: attempt
local est_default = 0.01 -- slot-seconds; a large guess would lift the virtual time and shut newcomers out

local function admit(lane, q, t, res, id, record)
  local j = job_words(job_parse(id, record), record)
  clear_due(j)
  leave(lane, q, t, id)
  local mean = tonumber(call('HGET', P .. 'mean:' .. q, t) or nil)
  local est = mean and mean / 2 or est_default
  j.n, j.fence, j.started, j.est = j.n + 1, next_id('fence'), NOW, math.min(4000000000, math.floor(est * 1000000))
  local fence = j.fence
  j.fence = tonumber(fence)
  move(j, RUNNING)
  charge(res, lease_of(j))
  call('ZADD', P .. 'leases', int(NOW + meta.lease), lease_of(j))
  local p, v = rank(P .. 'pass:' .. q, t) or least_pass(q), vt(q)
  if not rank(P .. 'ready:' .. q, '~' .. t) then p = math.max(p, v - 5) end
  if p > v then call('SET', P .. 'vt:' .. q, string.format('%.9f', p)) end
  p = p + est / limit('tenant:' .. t).weight
  call('ZADD', P .. 'pass:' .. q, p, t)
  call('ZADD', P .. 'ready:' .. q, 'XX', p, '~' .. t)
  for i = 3, #res do -- an open group follows its first waiter
    local who = call('ZRANGE', P .. 'wt:' .. res[i] .. ':' .. q, 0, 0, 'WITHSCORES')
    if who[1] then call('ZADD', P .. 'ready:' .. q, 'XX', who[2], '!' .. res[i]) end
  end
  return {id, fence, job_header(j) .. record:sub(HEADER + 1)}
end

local function candidate(q, m) -- the lane that a member of ready:q stands for; nil = look again
  local name = m:sub(2)
  if m:sub(1, 1) == '~' then
    local lane = first(P .. 'rl:' .. q .. ':' .. name)
    return lane, name
  end
  local t, score_t = first(P .. 'wt:' .. name .. ':' .. q)
  if not t then
    call('ZREM', P .. 'ready:' .. q, m)
    return nil
  end
  local p = rank(P .. 'pass:' .. q, t) or 0
  if p > score_t then -- it was served elsewhere meanwhile: its turn comes later
    call('ZADD', P .. 'wt:' .. name .. ':' .. q, p, t)
    local _, least = first(P .. 'wt:' .. name .. ':' .. q)
    call('ZADD', P .. 'ready:' .. q, least, m)
    return nil
  end
  return (first(P .. 'wl:' .. name .. ':' .. q .. ':' .. t)), t
end

-- one examination: a job, or nil after something was put in its place; true as second value = leave this queue for now
local function examine(q, m)
  local lane, t = candidate(q, m)
  if not lane then return nil end
  local id = first(P .. 'lane:' .. lane)
  local record = call('GET', P .. 'job:' .. id)
  if not record then
    leave(lane, q, t, id)
    return nil
  end
  local j = job_parse(id, record)
  local why = expired(j)
  if why then
    job_words(j, record)
    leave(lane, q, t, id)
    bury(j, why, '{}')
    return nil
  end
  local res = {}
  for r in call('HGET', P .. 'lm:' .. lane, 'res'):gmatch('%S+') do res[#res + 1] = r end
  local r, _, at = check(res)
  if not r then return admit(lane, q, t, res, id, record) end
  local where = park(lane, q, t, r, at)
  if m == '!' .. r and where == 'same' then call('ZREM', P .. 'ready:' .. q, m) end -- only its own first waiter closes a group
  return nil, where == 'queue'
end
