#!lua flags=allow-oom
-- decide: what becomes of failed attempts. A decision holds only for the attempt it was made about, so of two who decide
-- one is late.
-- needs:   attempt
-- keys:    prefix
-- args:    (lease, retry | given_up, instant, reason, detail)*
-- edge:    FAILED --retry--> RETRY_WAITING
-- edge:    FAILED --given_up--> DEAD
-- replies: decided(words: ok | stale | held) | old | lost
local last = lib.replayed()
if last then return last end
local words = {}
for i = 4, #ARGV, 5 do
  local id = ARGV[i]:match('^%d+')
  local j = lib.held() == 0 and lib.job_read(id)
  if j and j.state == S.FAILED and lib.lease_of(j) == ARGV[i] then
    call('ZREM', P .. 'failed', id)
    if ARGV[i + 1] == 'retry' then
      j.eligible = tonumber(ARGV[i + 2])
      lib.move(j, S.RETRY_WAITING)
      lib.set_due(j)
    else
      lib.bury(j, ARGV[i + 3], ARGV[i + 4])
    end
    words[#words + 1] = 'ok'
  else
    words[#words + 1] = lib.held() > 0 and 'held' or 'stale'
  end
end
return lib.answer({'decided', words})
