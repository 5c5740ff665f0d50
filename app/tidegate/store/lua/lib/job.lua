-- job: one stored record, changed. Its body never moves: a change of state rewrites the header alone.
-- needs: record epoch book
function lib.next_generation(j) j.flags = math.min(j.flags + 2, 254 + j.flags % 2) end

function lib.job_header(j)
  return struct.pack(FORMAT, j.state, j.flags, j.n, j.charged, j.crashes, j.lost, j.fence, j.eligible, j.boost,
    j.created, j.started, j.deadline, j.qt, j.at, j.est, j.mlen)
end

function lib.score(j) return j.eligible - j.boost end

-- The one place where a job changes its state: counters and header together.
function lib.count(j, n)
  if j.state == S.WAITING then return end
  local b, state = lib.book(j.q, j.t), string.char(j.state)
  b[state], b.changed = b[state] + n, true
end

function lib.move(j, to)
  lib.count(j, -1)
  j.state = to
  lib.count(j, 1)
  call('SETRANGE', P .. 'job:' .. j.id, 0, lib.job_header(j))
end

-- a job that came back waits since then, though its place in the line is that of its first eligibility
function lib.waiting_since(j) return math.max(j.eligible, j.started) end

function lib.sleeps(j) return j.state == S.DELAYED or j.state == S.RETRY_WAITING end -- until its eligible time

-- next instant at which something must happen to a waiting or delayed job (0 = never)
function lib.next_due(j)
  local at = j.deadline > 0 and j.deadline or math.huge
  if lib.sleeps(j) then at = math.min(at, j.eligible)
  elseif j.qt > 0 then at = math.min(at, lib.waiting_since(j) + j.qt) end
  return at
end

function lib.set_due(j)
  local at = lib.next_due(j)
  if at < math.huge then call('ZADD', P .. 'due', at, j.id) end
end

function lib.clear_due(j)
  if j.deadline > 0 or j.qt > 0 or lib.sleeps(j) then call('ZREM', P .. 'due', j.id) end
end

function lib.step_name(j) return j.op .. ' ' .. j.step end
