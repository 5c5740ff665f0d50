-- intake: one job at the door, whoever brings it: dedup, bounds, append; the verdict about it.
-- needs: finish pressure
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

local function append(a, flags, id)
  local j = {id = lib.int(id), state = a.delay > 0 and S.DELAYED or S.WAITING, flags = flags % 2, n = 0, charged = 0,
    crashes = 0, lost = 0, fence = 0, eligible = NOW + a.delay, boost = a.boost, created = NOW, started = 0,
    deadline = a.deadline, qt = a.qt, at = a.at, est = 0, q = a.q, t = a.t, lane = a.lane, mlen = #a.words}
  j.record = lib.job_header(j) .. a.words .. a.body
  call('SET', P .. 'job:' .. j.id, j.record)
  call('SET', P .. 'ix:' .. a.op .. ' ' .. a.step, j.id)
  if a.key ~= '-' then call('SET', P .. 'key:' .. a.key, a.op .. ' ' .. a.step .. ' ' .. a.hash) end
  lib.take_in(j)
  if j.state == S.DELAYED then lib.set_due(j) else lib.join(j) end
  return {'accepted', lib.waiting(a.q), lib.pressure(a.q, a.t)}
end

-- line: "delay_ms queue_timeout_ms attempt_timeout_ms deadline_ms boost_ms flags words..."; id: for this job, if it is taken
function lib.intake(line, body, id)
  local delay, qt, at, deadline, boost, flags, words, q, t, lane, op, step, key, hash = line:match(
    '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) ((%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) .*)$')
  flags = tonumber(flags)
  local a = {q = q, t = t, lane = lane, op = op, step = step, key = key, hash = hash, delay = tonumber(delay),
    qt = tonumber(qt), at = tonumber(at), deadline = tonumber(deadline), boost = tonumber(boost), known = flags >= 4,
    words = words, body = body}
  local refusal = earlier(a)
  if not refusal and math.floor(flags / 2) % 2 == 0 then refusal = lib.bound(a.q, a.t, #a.body + 900) end -- a continuation came in with its first step
  return refusal or append(a, flags, id)
end
