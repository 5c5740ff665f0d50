-- schedule: where schedules stand, and what became of their latest fires.
-- needs: base
-- sched: schedule -> "cursor watermark since until digest": up to the cursor everything is decided; marks up to the watermark
-- are gone; since, until: the queue refuses its next fire (0 = it does not). fires:<schedule>: marks, by logical time:
-- "time fate number span lag detail"; span: from the first fire of a stretch to its last (time), lag: of the decision.
local KEEP, MOST = 64, 96 -- marks that stay when there are too many

function lib.schedule_parse(s)
  if not s then return nil end
  local cursor, low, since, till, digest = s:match('^(%d+) (%d+) (%d+) (%d+) (%S+)$')
  return {cursor = tonumber(cursor), low = tonumber(low), since = tonumber(since), till = tonumber(till), digest = digest}
end

function lib.schedule_text(s) return string.format('%d %d %d %d %s', s.cursor, s.low, s.since, s.till, s.digest) end

-- Whether that fire has its job. Beyond the cursor a mark stands only after the server's clock was ahead and came back.
function lib.fired(name, time)
  for _, m in ipairs(call('ZRANGE', P .. 'fires:' .. name, time, time, 'BYSCORE')) do
    local fate = m:match('^%d+ (%a+)')
    if fate == 'emitted' or fate == 'duplicate' then return true end
  end
  return false
end

function lib.mark(name, time, fate, number, first, detail)
  call('ZADD', P .. 'fires:' .. name, time, string.format('%d %s %d %d %d %s', time, fate, number, time - first, NOW - time, detail))
end

-- The oldest marks go, but none beyond the cursor: up to the watermark nothing but a backfill may ever fire.
function lib.trim_marks(name, s)
  local key = P .. 'fires:' .. name
  local extra = call('ZCARD', key)
  if extra <= MOST then return end
  extra = math.min(extra - KEEP, call('ZCOUNT', key, '-inf', s.cursor))
  if extra <= 0 then return end
  s.low = math.max(s.low, tonumber(call('ZRANGE', key, extra - 1, extra - 1, 'WITHSCORES')[2]))
  call('ZREMRANGEBYRANK', key, 0, extra - 1)
end
