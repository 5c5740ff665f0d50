#!lua
-- enqueue: take jobs in, whole or not at all: dedup, bounds, append, counters, wake; a verdict for each.
-- needs:   intake
-- keys:    prefix
-- args:    ("delay_ms queue_timeout_ms attempt_timeout_ms deadline_ms boost_ms flags words...", body)*
--          flags: 1 at most once, 2 continuation, 4 known operation; words: as in the stored record (lib/job.lua)
-- edge:    none --enqueue--> WAITING
-- edge:    none --enqueue--> DELAYED
-- replies: verdicts(a line each: "accepted position pressure" | "duplicate operation state" | "conflict operation" |
--          "full scope depth limit retry_after_ms" | "closed" | "held ms") | old | lost
local last = lib.replayed()
if last then return last end
local free = lib.take_ids('job', (#ARGV - 3) / 2) -- ids of refused jobs are not used again
local verdicts = {}
for i = 4, #ARGV, 2 do
  local verdict = lib.intake(ARGV[i], ARGV[i + 1], free)
  if verdict[1] == 'accepted' then free = free + 1
  else call('HINCRBY', P .. 'refused', ARGV[i]:match('^%S+ %S+ %S+ %S+ %S+ %S+ (%S+)') .. ' ' .. verdict[1], 1) end
  verdicts[#verdicts + 1] = table.concat(verdict, ' ')
end
return lib.answer({'verdicts', table.concat(verdicts, '\n')})
