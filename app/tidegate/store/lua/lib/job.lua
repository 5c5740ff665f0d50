-- job: one stored record = fixed header (68 bytes, big-endian) + words (names, encoded, separated by spaces) + body.
-- The body is never parsed here and never moves; a change of state rewrites the header alone.
-- words: queue tenant lane operation step key body-hash task task_id resource...   ("-" = none)
-- needs: epoch
local FORMAT, HEADER = '>BBI4HBBI8I8i4I8I8I8I4I4I4H', 68
local WAITING, DELAYED, RUNNING, FAILED, SUCCEEDED, CANCELLED, DEAD = 87, 68, 82, 70, 83, 67, 88
local AT_MOST_ONCE = 1

local function job_parse(id, s)
  local j = {id = id}
  j.state, j.flags, j.n, j.charged, j.crashes, j.lost, j.fence, j.eligible, j.boost, j.created, j.started, j.deadline,
    j.qt, j.at, j.est, j.mlen = struct.unpack(FORMAT, s)
  return j
end

local function job_words(j, s)
  local w = {}
  for x in s:sub(HEADER + 1, HEADER + j.mlen):gmatch('%S+') do w[#w + 1] = x end
  j.q, j.t, j.lane, j.op, j.step, j.key, j.hash = w[1], w[2], w[3], w[4], w[5], w[6], w[7]
  j.res = {'queue:' .. j.q, 'tenant:' .. j.t}
  for i = 10, #w do j.res[#j.res + 1] = w[i] end
  return j
end

-- header and words of a job, or nil
local function job_read(id)
  local s = call('GETRANGE', P .. 'job:' .. id, 0, 511)
  if s == '' then return nil end
  local j = job_parse(id, s)
  if HEADER + j.mlen > 512 then s = call('GETRANGE', P .. 'job:' .. id, 0, HEADER + j.mlen - 1) end
  return job_words(j, s)
end

local function job_header(j)
  return struct.pack(FORMAT, j.state, j.flags, j.n, j.charged, j.crashes, j.lost, j.fence, j.eligible, j.boost,
    j.created, j.started, j.deadline, j.qt, j.at, j.est, j.mlen)
end

local function score(j) return j.eligible - j.boost end

-- the one place where a job changes its state: counters and header together
local function move(j, to)
  local cnt = P .. 'cnt:' .. j.q
  call('HINCRBY', cnt, string.char(j.state), -1)
  call('HINCRBY', cnt, string.char(to), 1)
  j.state = to
  call('SETRANGE', P .. 'job:' .. j.id, 0, job_header(j))
end

-- a job that came back waits since then, though its place in the line is that of its first eligibility
local function waiting_since(j) return math.max(j.eligible, j.started) end

-- next instant at which something must happen to a waiting or delayed job (0 = never)
local function next_due(j)
  local at = j.deadline > 0 and j.deadline or math.huge
  if j.state == DELAYED then at = math.min(at, j.eligible)
  elseif j.qt > 0 then at = math.min(at, waiting_since(j) + j.qt) end
  return at
end

local function set_due(j)
  local at = next_due(j)
  if at < math.huge then call('ZADD', P .. 'due', int(at), j.id) end
end

local function clear_due(j)
  if j.deadline > 0 or j.qt > 0 or j.state == DELAYED then call('ZREM', P .. 'due', j.id) end
end

local function step_name(j) return j.op .. ' ' .. j.step end
