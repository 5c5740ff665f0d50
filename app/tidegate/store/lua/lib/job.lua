-- job: one stored record = fixed header (68 bytes, big-endian) + words (names, encoded, separated by spaces) + body.
-- The body is never parsed here and never moves; a change of state rewrites the header alone.
-- words: queue tenant lane operation step key body-hash task task_id resource...   ("-" = none)
-- needs: epoch book
local FORMAT, HEADER = '>BBI4HBBI8I8i4I8I8I8I4I4I4H', 68
local S = {WAITING = 87, DELAYED = 68, RUNNING = 82, FAILED = 70, RETRY_WAITING = 84, SUCCEEDED = 83, CANCELLED = 67, DEAD = 88}
local AT_MOST_ONCE = 1 -- of the flags; what is above it is the generation

function lib.job_parse(id, s)
  local j = {id = id}
  j.state, j.flags, j.n, j.charged, j.crashes, j.lost, j.fence, j.eligible, j.boost, j.created, j.started, j.deadline,
    j.qt, j.at, j.est, j.mlen = struct.unpack(FORMAT, s)
  return j
end

function lib.job_words(j, s)
  local more
  j.q, j.t, j.lane, j.op, j.step, j.key, j.hash, more = s:sub(HEADER + 1, HEADER + j.mlen):match(
    '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) %S+ %S+(.*)$')
  j.res = {'queue:' .. j.q, 'tenant:' .. j.t}
  for r in more:gmatch('%S+') do j.res[#j.res + 1] = r end
  return j
end

-- header and words of a job, or nil
function lib.job_read(id)
  local s = call('GETRANGE', P .. 'job:' .. id, 0, 511)
  if s == '' then return nil end
  local j = lib.job_parse(id, s)
  if HEADER + j.mlen > 512 then s = call('GETRANGE', P .. 'job:' .. id, 0, HEADER + j.mlen - 1) end
  return lib.job_words(j, s)
end

-- what stands before the body, or nil: for who wants to know and to change nothing
function lib.job_head(id)
  local s = call('GETRANGE', P .. 'job:' .. id, 0, HEADER - 1)
  if #s == HEADER then return call('GETRANGE', P .. 'job:' .. id, 0, HEADER - 1 + struct.unpack('>H', s:sub(-2))) end
end

-- how often it was replayed, counted up to 127
function lib.generation(j) return math.floor(j.flags / 2) end
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
