-- record: a stored job as it is read, and nothing changed: fixed header (68 bytes, big-endian) + words (names, encoded,
-- separated by spaces) + body, which is never parsed here.
-- words: queue tenant lane operation step key body-hash task task_id resource...   ("-" = none)
-- needs: base
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
