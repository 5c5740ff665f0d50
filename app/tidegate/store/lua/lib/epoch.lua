-- epoch: the store may come back without its last second; whoever changes something notices first.
-- needs: base
-- Ids never repeat, also when the server forgets its last second: the epoch is part of them, 16 digits always.
local SPACE = 4294967296 -- ids of one epoch
function lib.take_ids(counter, number) -- the first of so many, as a number
  local last = call('HINCRBY', META, counter, number)
  if last >= SPACE then
    meta.epoch, last = call('HINCRBY', META, 'epoch', 1), number
    call('HSET', META, counter, last)
  end
  return meta.epoch * SPACE + last - number + 1
end

-- A server that came back may have forgotten its last second. Whoever notices first opens a new epoch: ids and fences
-- start above all earlier ones, and until the workers have said what they hold (or one lease has passed) nothing is given.
function lib.begin_epoch()
  if RUN == meta.run then return end
  meta.epoch, meta.hold, meta.run = meta.epoch + 1, 0, RUN
  call('DEL', P .. 'held')
  local newest = call('ZREVRANGE', P .. 'workers', 0, 0, 'WITHSCORES')
  if newest[1] then
    local alive = call('ZRANGEBYSCORE', P .. 'workers', newest[2] - meta.lease, '+inf')
    call('SADD', P .. 'held', unpack(alive))
    meta.hold = NOW + meta.lease
  end
  -- A second crash may forget this very record: the server's own random run_id shifts the counters, so that the epoch
  -- that is then opened again under the same number does not give the same ids.
  local shift = lib.int(tonumber(RUN:sub(1, 3), 16) % 2048 * 1048576)
  call('HSET', META, 'run', RUN, 'epoch', lib.int(meta.epoch), 'hold', lib.int(meta.hold), 'start', lib.int(NOW), 'job', shift,
    'fence', shift, 'pulse', lib.int(NOW), 'judge', lib.int(NOW + meta.lease))
  call('HINCRBY', META, 'resets', 1)
end

function lib.must_reassert(worker)
  return lib.held() > 0 and call('SISMEMBER', P .. 'held', worker) == 1
end
