-- restore: what a worker remembers and the server has forgotten.
-- needs: attempt
local function give_back_key(j)
  if j.key ~= '-' then call('SET', P .. 'key:' .. j.key, j.op .. ' ' .. j.step .. ' ' .. j.hash) end
end

local function recreate(j, record) -- the enqueue itself was in the lost second
  call('SET', P .. 'job:' .. j.id, record)
  call('SET', P .. 'ix:' .. step_name(j), j.id)
  give_back_key(j)
  local cnt = P .. 'cnt:' .. j.q
  call('HINCRBY', cnt, 'depth', 1)
  call('HINCRBY', cnt, string.char(j.state), 1)
  call('HINCRBY', P .. 'td:' .. j.q, j.t, 1)
  call('SADD', P .. 'queues', j.q)
  if not rank(P .. 'pass:' .. j.q, j.t) then call('ZADD', P .. 'pass:' .. j.q, least_pass(j.q), j.t) end
end

local function take_as_running(j, mine) -- its claim was in the lost second: out of the line, on with the attempt
  if j.state == WAITING then leave(j.lane, j.q, j.t, j.id) end
  clear_due(j)
  j.n, j.fence, j.started, j.est = mine.n, mine.fence, mine.started, mine.est
  move(j, RUNNING)
  for _, r in ipairs(j.res) do call('SADD', P .. 'use:' .. r, lease_of(j)) end
end

-- a fence of this epoch or a later one, from before the restart: the opening of its epoch was forgotten as well
local function outrun(fence)
  local e = math.floor(fence / SPACE)
  if e < meta.epoch then return end
  meta.epoch = e + 1
  call('HSET', META, 'epoch', int(meta.epoch))
end

-- true: the lease is the worker's (again); false: somebody else's, or the job is over
local function restore_lease(lease, record)
  local id = lease:match('^(%d+):')
  local mine = job_words(job_parse(id, record), record)
  local j = job_read(id)
  if held() > 0 then outrun(mine.fence) end
  if j and step_name(j) ~= step_name(mine) then return false end
  if j and j.state == RUNNING then
    if lease_of(j) ~= lease then return false end
  elseif j and (j.state == WAITING or j.state == DELAYED) and j.n < mine.n then
    take_as_running(j, mine)
  elseif j or remembered(step_name(mine)) then
    return false
  else
    recreate(mine, record)
    for _, r in ipairs(mine.res) do call('SADD', P .. 'use:' .. r, lease) end
  end
  call('ZADD', P .. 'leases', int(NOW + meta.lease), lease)
  return true
end

local function restore_outcome(lease, kind, reason, detail, head)
  local id = lease:match('^(%d+):')
  local mine = job_words(job_parse(id, head), head)
  local j = job_read(id)
  if j and j.state == RUNNING and lease_of(j) == lease then
    settle(lease, kind, reason, detail)
  elseif j and (j.state == WAITING or j.state == DELAYED) and j.n < mine.n then
    take_as_running(j, mine)
    end_attempt(j, kind, reason, detail)
  elseif not j and kind == 'ok' and not remembered(step_name(mine)) then -- done and gone, and then forgotten
    remember(step_name(mine), SUCCEEDED)
    give_back_key(mine)
    if mine.key ~= '-' then call('PEXPIRE', P .. 'key:' .. mine.key, meta.key_ttl) end
  end
end
