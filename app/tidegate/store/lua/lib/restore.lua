-- restore: what a worker remembers and the server has forgotten.
-- needs: attempt check
-- Of two attempts at one job the later one has the higher fence, in every epoch; the earlier one had ended before it began.
function lib.give_back_key(j)
  if j.key ~= '-' then call('SET', P .. 'key:' .. j.key, lib.key_of(j)) end
end

function lib.recreate(j, record) -- the enqueue itself was in the lost second
  call('SET', P .. 'job:' .. j.id, record)
  call('SET', P .. 'ix:' .. lib.step_name(j), j.id)
  lib.give_back_key(j)
  lib.take_in(j)
  if not lib.pass_of(j.q, j.t) then call('ZADD', P .. 'pass:' .. j.q, lib.least_pass(j.q), j.t) end
  lib.charge(j.res, lib.lease_of(j))
end

-- the producer never had an answer to that enqueue and sent it again: the same job, waiting under another id
function lib.copy_of(mine)
  local id = call('GET', P .. 'ix:' .. lib.step_name(mine))
  return id and lib.job_read(id)
end

function lib.drop_copy(j)
  if j.state == S.WAITING then lib.leave(j.lane, j.q, j.t, j.id) end
  lib.clear_due(j)
  lib.count(j, -1)
  call('UNLINK', P .. 'job:' .. j.id)
  local b, x = lib.book(j.q, j.t), lib.tenant(j.q, j.t)
  b.took, x.n, b.changed, x.changed = b.took - 1, x.n - 1, true, true
end

function lib.take_as_running(j, mine) -- its claim was in the lost second: out of the line, on with the attempt
  if j.state == S.WAITING then lib.leave(j.lane, j.q, j.t, j.id) end
  if j.state == S.RUNNING then -- the end of the attempt before it was lost as well
    call('ZREM', P .. 'leases', lib.lease_of(j))
    lib.free_units(j)
  end
  if j.state == S.FAILED then call('ZREM', P .. 'failed', j.id) end -- so was what was decided about it
  lib.clear_due(j)
  j.n, j.fence, j.started, j.est = mine.n, mine.fence, mine.started, mine.est
  lib.move(j, S.RUNNING)
  lib.charge(j.res, lib.lease_of(j))
end

function lib.behind(j, mine) -- what the store has of the job is older than this attempt, and the job is not over
  return (j.state == S.WAITING or lib.sleeps(j) or j.state == S.RUNNING or j.state == S.FAILED) and j.fence < mine.fence
end

-- a fence of this epoch or a later one, from before the restart: the opening of its epoch was forgotten as well
function lib.outrun(fence)
  local e = math.floor(fence / SPACE)
  if e < meta.epoch then return end
  meta.epoch = e + 1
  call('HSET', META, 'epoch', meta.epoch)
end

-- true: the lease is the worker's (again); false: somebody else's, or the job is over
function lib.restore_lease(lease, record)
  local id = lease:match('^(%d+):')
  local mine = lib.job_words(lib.job_parse(id, record), record)
  if lib.held() > 0 then lib.outrun(mine.fence) end
  local j = lib.job_read(id)
  if j and lib.step_name(j) ~= lib.step_name(mine) then return false end
  if j and lib.behind(j, mine) then
    lib.take_as_running(j, mine)
  elseif j then
    if j.state ~= S.RUNNING or lib.lease_of(j) ~= lease then return false end
  else
    local copy = lib.copy_of(mine)
    if copy and copy.state ~= S.WAITING and copy.state ~= S.DELAYED then return false end
    if not copy and lib.remembered(lib.step_name(mine)) then return false end
    if copy then lib.drop_copy(copy) end
    lib.recreate(mine, record)
  end
  call('ZADD', P .. 'leases', NOW + meta.lease, lease)
  return true
end

function lib.restore_outcome(lease, kind, reason, detail, head, worker)
  local id = lease:match('^(%d+):')
  local mine = lib.job_words(lib.job_parse(id, head), head)
  if lib.held() > 0 then lib.outrun(mine.fence) end
  local j = lib.job_read(id) or lib.copy_of(mine)
  if j and lib.step_name(j) ~= lib.step_name(mine) then return end
  if j and lib.behind(j, mine) then
    lib.take_as_running(j, mine)
    lib.end_attempt(j, kind, reason, detail, worker)
  elseif j and j.state == S.RUNNING and lib.lease_of(j) == lease then
    lib.settle(lease, kind, reason, detail, worker)
  elseif not j and kind == 'ok' and not lib.remembered(lib.step_name(mine)) then -- done and gone, and then forgotten
    lib.remember(lib.step_name(mine), S.SUCCEEDED)
    lib.give_back_key(mine)
    lib.end_key(mine)
  end
end
