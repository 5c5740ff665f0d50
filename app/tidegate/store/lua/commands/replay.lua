#!lua flags=allow-oom
-- replay: dead letters go back to their lines with all their attempts before them, each only if it is the very death that was
-- looked at. Every bound of the door holds, and none makes its queue red.
-- needs:   pressure tries audit
-- keys:    prefix
-- args:    by, reason, detail, (job, generation)*
-- edge:    DEAD --replay--> WAITING
-- replies: replayed(a line each: "ok" | "gone" | "changed" | "expired" | "conflict" | "closed" | "held ms" |
--          "pressure scope depth limit retry_after_ms" | "full scope depth limit retry_after_ms") | old | lost
local last = lib.replayed()
if last then return last end
local by, why = ARGV[4], ARGV[5]

local function red(q) -- one more would make it so
  local most = lib.limit('queue:' .. q).depth
  if lib.level(lib.depth(q) + 1, most) < 2 then return end
  return {'pressure', 'queue:' .. q, lib.depth(q), most, lib.retry_after(q)}
end

local function refusal(j, generation)
  if lib.held() > 0 then return {'held', lib.int(lib.held())} end
  if not j or j.state ~= S.DEAD then return {'gone'} end
  if lib.int(lib.generation(j)) ~= generation then return {'changed'} end
  if j.deadline > 0 and j.deadline <= NOW then return {'expired'} end
  local key = j.key ~= '-' and call('GET', P .. 'key:' .. j.key)
  if key and key ~= lib.key_of(j) then return {'conflict'} end -- the key is another operation's by now
  return lib.bound(j.q, j.t, 0) or red(j.q)
end

local function revive(j)
  lib.note_replay(j, by, why)
  call('ZREM', P .. 'dlq', j.id)
  call('ZREM', P .. 'untold', j.id)
  call('UNLINK', P .. 'err:' .. j.id) -- windows count from its next failure
  j.charged, j.crashes, j.lost, j.est, j.started, j.eligible, j.created = 0, 0, 0, 0, 0, NOW, NOW
  lib.next_generation(j)
  if j.key ~= '-' then call('SET', P .. 'key:' .. j.key, lib.key_of(j)) end
  lib.move(j, S.WAITING)
  lib.take_in(j)
  lib.join(j)
end

local lines, revived = {}, 0
for i = 7, #ARGV, 2 do
  local j = lib.job_read(ARGV[i])
  local no = refusal(j, ARGV[i + 1])
  if not no then
    revive(j)
    revived = revived + 1
  end
  local word = table.concat(no or {'ok'}, ' ')
  call('HINCRBY', P .. 'replays', word:match('^%a+'), 1)
  lines[#lines + 1] = word
end
if revived > 0 then lib.audit(by, 'dlq replay', why, revived, ARGV[6]) end
return lib.answer({'replayed', table.concat(lines, '\n')})
