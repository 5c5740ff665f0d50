#!lua
-- fire: the next fires of one schedule, as planned from its cursor. Mark, job, cursor and count are one step: no fire is lost
-- or comes twice, however many plan it and whenever they die; and a lost second loses all of it together.
-- needs:   schedule intake
-- keys:    prefix
-- args:    schedule, digest of its times, cursor it was planned from, ("time fate number first detail", line, body)*
--          ascending; fate: emitted (line and body: the job as in enqueue) | coalesced | missed; first: of the stretch
-- edge:    none --enqueue--> WAITING
-- replies: fired(cursor, (emitted | duplicate | coalesced | missed | "full scope depth limit retry_after_ms" | "closed")*) |
--          stale_cursor | unknown | future | held | old | lost
-- What its queue refuses ends the list: the cursor stays before it, and it is tried again.
local last = lib.replayed()
if last then return last end
if lib.held() > 0 then return {'held'} end -- a job that ran in the lost second may be in a worker's memory only
local name = ARGV[4]
local s = lib.schedule_parse(call('HGET', P .. 'sched', name))
if not s then return {'unknown'} end
if s.digest ~= ARGV[5] or lib.int(s.cursor) ~= ARGV[6] then return {'stale_cursor'} end
local latest = (ARGV[#ARGV - 2] or '0'):match('^%d+')
if tonumber(latest) > NOW then return {'future'} end

local free = lib.take_ids('job', (#ARGV - 6) / 3)
local words, fates, lag, refused = {}, {}, nil, false
for i = 7, #ARGV, 3 do
  local time, fate, number, first, detail = ARGV[i]:match('^(%d+) (%a+) (%d+) (%d+) (%S+)$')
  time = tonumber(time)
  if time <= s.cursor then -- decided, whether its mark is still there or not
    words[#words + 1] = 'duplicate'
  else
    local marked = fate == 'emitted' and lib.fired(name, time)
    if marked then
      fate = 'duplicate'
    elseif fate == 'emitted' then
      local verdict = lib.intake(ARGV[i + 1], ARGV[i + 2], free)
      if verdict[1] == 'accepted' then
        free, lag = free + 1, NOW - time
      elseif verdict[1] == 'duplicate' then
        fate = 'duplicate'
      else
        words[#words + 1], refused = table.concat(verdict, ' '), true
        break
      end
    end
    if not marked then lib.mark(name, time, fate, tonumber(number), tonumber(first), detail) end
    s.cursor, fates[fate] = time, (fates[fate] or 0) + tonumber(number)
    words[#words + 1] = fate
  end
end

if not refused then s.since = 0
else s.since, s.till = s.since == 0 and NOW or s.since, NOW end
lib.trim_marks(name, s)
call('HSET', P .. 'sched', name, lib.schedule_text(s))
for fate, number in pairs(fates) do call('HINCRBY', P .. 'fates', name .. ' ' .. fate, number) end
if lag then call('HSET', META, 'fire_lag', lib.int(lag)) end
return lib.answer({'fired', lib.int(s.cursor), unpack(words)})
