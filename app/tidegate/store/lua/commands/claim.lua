#!lua
-- claim: up to n jobs for one worker, each with a lease; riding outcomes are settled first.
-- needs:   claim reap riders
-- keys:    prefix
-- args:    worker, n, number of outcomes, (lease, kind, reason, detail)*, queue*
-- edge:    WAITING --claim--> RUNNING
-- replies: claimed(one text: "more wait_ms held_ms known word*", for each job "id size" and its record) | old | lost
-- In this order: riders, reap, timers, due, then the tenants in turn. A claim that gives fewer than n and says more = 0 leaves
-- nothing in its queues that could start now.
local worker, n = ARGV[4], tonumber(ARGV[5])

local function text_of(numbers, jobs) -- one text: a client reads it in one piece
  local parts = {'claimed ' .. numbers}
  for _, j in ipairs(jobs) do parts[#parts + 1] = j.id .. ' ' .. #j.record .. '\n' .. j.record end
  return table.concat(parts, '\n')
end

-- the jobs of an earlier answer that still live, with their bodies
local function again(last)
  local jobs = {}
  for i = 3, #last do
    local id = last[i]:match('^%d+')
    if call('ZSCORE', P .. 'leases', last[i]) then jobs[#jobs + 1] = {id = id, record = call('GET', P .. 'job:' .. id)} end
  end
  return text_of(last[2], jobs)
end

local last, mark = lib.replayed()
if last then return last[1] == 'claimed' and again(last) or last end

-- registered: it was so at this client's last claim, and since then no worker has left
local present = meta.left .. ':' .. worker
local known = (mark == present or call('ZSCORE', P .. 'workers', worker)) and 1 or 0

local words, at = lib.riders(worker, 6)
local queues, jobs, more = {}, {}, 0
for i = at, #ARGV do queues[#queues + 1] = ARGV[i] end

if NOW - meta.pulse >= 250 then -- the house is kept four times a second, whoever calls
  lib.reap(8)
  lib.promote(32)
end
lib.ring(16)

local left = known == 1 and lib.held() == 0 and 4 * n + 32 or 0
local shut = {}
local function next_queue() -- of those with something ready, the one with the least pass: queue, member, its pass, queue pass
  local best, least, member, pass
  for _, q in ipairs(queues) do
    local m, s
    if not shut[q] then m, s = lib.first(P .. 'ready:' .. q) end
    if m then
      local p = #queues == 1 and 0 or tonumber(call('HGET', P .. 'qpass', q) or 0)
      if not best or p < least then best, least, member, pass = q, p, m, s end
    end
  end
  return best, member, pass, least
end

while #jobs < n and left > 0 do
  local q, m, pass, qpass = next_queue()
  if not q then break end
  left = left - 1
  local job, leave_queue = lib.examine(q, m, pass)
  if leave_queue then shut[q] = true end
  if job then
    jobs[#jobs + 1] = job
    if #queues > 1 then
      local v = math.max(tonumber(call('HGET', P .. 'qpass', '') or 0), qpass)
      call('HSET', P .. 'qpass', '', v, q, v + 1 / lib.limit('queue:' .. q).weight)
    end
  end
end

-- how long the caller may sleep: one waiter of a queue is told the next instant, the others the idle cap
local wait = 1000
if left > 0 and #jobs < n then
  local t = meta.ring
  local _, due = lib.first(P .. 'due')
  if due and due <= NOW and lib.held() == 0 then -- came due since the house was last kept: claim again at once
    lib.promote(32)
    more = 1
  end
  local ms = math.max(1, math.min(t or math.huge, due or math.huge) - NOW)
  if more == 0 and ms < wait and queues[1] then
    local tick = P .. 'tick:' .. queues[1]
    if call('SET', tick, worker, 'NX', 'PX', ms) or call('GET', tick) == worker then wait = ms end -- woken early, it asks again
  end
elseif known == 1 and lib.held() == 0 then
  if #jobs < n then more = next_queue() and 1 or 0 end
  for _, q in ipairs(#jobs == n and queues or {}) do lib.wake(q) end
end

if #jobs < n and more == 0 then lib.note_idle() end

local numbers = table.concat({more, wait, lib.int(lib.held()), known, unpack(words)}, ' ')
local leases = {}
for i, j in ipairs(jobs) do leases[i] = lib.lease_of(j) end
lib.answer({'claimed', numbers, unpack(leases)}, known == 1 and present or '-')
return text_of(numbers, jobs)
