-- hold: the end of it. By time it ends by itself; early when every worker that was alive has come back or has left.
-- needs: turn
function lib.not_awaited(worker)
  call('SREM', P .. 'held', worker)
  if meta.hold == 0 or call('EXISTS', P .. 'held') == 1 then return end
  meta.hold = 0
  call('HSET', META, 'hold', 0)
  for _, q in ipairs(call('SMEMBERS', P .. 'queues')) do lib.wake(q) end
end
