#!lua flags=allow-oom
-- schedule: where schedules stand. One that is adopted and was never seen begins now; one whose times were edited goes on
-- from now: an edit fires nothing, and the next fire is the first of the new expression.
-- needs:   schedule
-- keys:    prefix
-- args:    adopt (1 | 0), (schedule, digest of its times, cursor that the caller remembers | 0)*
-- edge:    none
-- replies: schedules(now, ("cursor since until" | "edited" | "unknown")*) | lost
-- A cursor is remembered by one who adopted before: the server may have forgotten that second. An edit is only what is new.
local AHEAD = 60000 -- ms: a cursor so far ahead was written by a clock that came back; marks keep what it fired from firing again
local names, rows = {}, {}
for i = 5, #ARGV, 3 do names[#names + 1] = ARGV[i] end
if not names[1] then return {'schedules', lib.int(NOW)} end
local found = call('HMGET', P .. 'sched', unpack(names))
for k, name in ipairs(names) do
  local digest, known = ARGV[3 * k + 3], tonumber(ARGV[3 * k + 4])
  local s, was = lib.schedule_parse(found[k]), found[k]
  if ARGV[4] == '1' and not s then
    s = {cursor = known > 0 and math.min(known, NOW) or NOW, low = 0, since = 0, till = 0, digest = digest}
  elseif ARGV[4] == '1' and known == 0 and s.digest ~= digest then
    s = {cursor = math.max(NOW, s.low), low = s.low, since = 0, till = 0, digest = digest}
  end
  if s and s.digest == digest then
    if s.cursor > NOW + AHEAD then s.cursor, s.since, s.till = math.max(NOW, s.low), 0, 0 end
    if lib.schedule_text(s) ~= was then call('HSET', P .. 'sched', name, lib.schedule_text(s)) end
    rows[k] = string.format('%d %d %d', s.cursor, s.since, s.till)
  else
    rows[k] = s and 'edited' or 'unknown'
  end
end
return {'schedules', lib.int(NOW), unpack(rows)}
