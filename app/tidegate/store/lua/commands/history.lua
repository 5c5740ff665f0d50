#!lua flags=no-writes
-- history: where schedules stand, and what became of their latest fires, the latest first.
-- needs:   schedule
-- keys:    prefix
-- args:    most fires of each, schedule*
-- edge:    none
-- replies: history((schedule, "cursor watermark since until digest", "time fate number span lag detail"*)*) | lost
local found = {}
for i = 5, #ARGV do
  local s = call('HGET', P .. 'sched', ARGV[i])
  if s then
    found[#found + 1] = {ARGV[i], s, unpack(call('ZRANGE', P .. 'fires:' .. ARGV[i], 0, tonumber(ARGV[4]) - 1, 'REV'))}
  end
end
return {'history', unpack(found)}
