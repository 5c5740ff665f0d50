#!lua
-- enqueue: take jobs in, whole or not at all: dedup, bounds, append, counters, wake; a verdict for each.
-- needs:   finish pressure
-- keys:    prefix
-- args:    ("delay_ms queue_timeout_ms attempt_timeout_ms deadline_ms boost_ms flags words...", body)*
--          flags: 1 at most once, 2 continuation, 4 known operation; words: as in the stored record (lib/job.lua)
-- edge:    none --enqueue--> WAITING
-- edge:    none --enqueue--> DELAYED
-- replies: verdicts(a line each: "accepted position pressure" | "duplicate operation state" | "conflict operation" |
--          "full scope depth limit retry_after_ms" | "closed" | "held ms") | old | lost
local last = lib.replayed()
if last then return last end

local function state_of(op, step) -- letter of the job that bears this name, or nil
  local id = call('GET', P .. 'ix:' .. op .. ' ' .. step)
  local s = id and call('GETRANGE', P .. 'job:' .. id, 0, 0)
  if s and s ~= '' then return s end
  return lib.remembered(op .. ' ' .. step)
end

local function earlier(a) -- dedup by key, then by (operation, step)
  if a.key ~= '-' then
    if lib.held() > 0 then return {'held', lib.int(lib.held())} end -- the key may be in a worker's memory only
    local s = call('GET', P .. 'key:' .. a.key)
    if s then
      local op, step, hash = s:match('^(%S+) (%S+) (%S+)$')
      if hash ~= a.hash then return {'conflict', op} end
      return {'duplicate', op, state_of(op, step) or 'S'}
    end
  end
  if a.step ~= '-' or a.known then
    local state = state_of(a.op, a.step)
    if state then return {'duplicate', a.op, state} end
  end
end

local free = lib.take_ids('job', (#ARGV - 3) / 2) -- ids of refused jobs are not used again
local function store(a, flags)
  local j = {id = lib.int(free), state = a.delay > 0 and S.DELAYED or S.WAITING, flags = flags % 2, n = 0, charged = 0,
    crashes = 0, lost = 0, fence = 0, eligible = NOW + a.delay, boost = a.boost, created = NOW, started = 0,
    deadline = a.deadline, qt = a.qt, at = a.at, est = 0, q = a.q, t = a.t, lane = a.lane, mlen = #a.words}
  free = free + 1
  j.record = lib.job_header(j) .. a.words .. a.body
  call('SET', P .. 'job:' .. j.id, j.record)
  call('SET', P .. 'ix:' .. a.op .. ' ' .. a.step, j.id)
  if a.key ~= '-' then call('SET', P .. 'key:' .. a.key, a.op .. ' ' .. a.step .. ' ' .. a.hash) end
  lib.take_in(j)
  if j.state == S.DELAYED then lib.set_due(j) else lib.join(j) end
  return {'accepted', lib.waiting(a.q), lib.pressure(a.q, a.t)}
end

local verdicts = {}
for i = 4, #ARGV, 2 do
  local delay, qt, at, deadline, boost, flags, words, q, t, lane, op, step, key, hash = ARGV[i]:match(
    '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) ((%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) .*)$')
  flags = tonumber(flags)
  local a = {q = q, t = t, lane = lane, op = op, step = step, key = key, hash = hash, delay = tonumber(delay),
    qt = tonumber(qt), at = tonumber(at), deadline = tonumber(deadline), boost = tonumber(boost), known = flags >= 4,
    words = words, body = ARGV[i + 1]}
  local refusal = earlier(a)
  if not refusal and math.floor(flags / 2) % 2 == 0 then refusal = lib.bound(a.q, a.t, #a.body + 900) end -- a continuation came in with its first step
  if refusal then call('HINCRBY', P .. 'refused', a.q .. ' ' .. refusal[1], 1) end
  verdicts[#verdicts + 1] = table.concat(refusal or store(a, flags), ' ')
end
return lib.answer({'verdicts', table.concat(verdicts, '\n')})
