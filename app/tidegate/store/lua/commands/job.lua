#!lua flags=no-writes
-- job: one job as it is stored, by operation and step, or what became of it.
-- needs:   base
-- keys:    prefix
-- args:    operation, step
-- edge:    none
-- replies: job(id, record, error, (try)*) | past(time and state) | none | lost
local name = ARGV[4] .. ' ' .. ARGV[5]
local id = call('GET', P .. 'ix:' .. name)
local record = id and call('GET', P .. 'job:' .. id)
if record then return {'job', id, record, call('GET', P .. 'err:' .. id) or '', call('LRANGE', P .. 'tries:' .. id, 0, -1)} end
local past = call('ZSCORE', P .. 'hist', name)
if past and math.floor(past / 256) > NOW - lib.rarely('history_ms', 3600000) then return {'past', past} end
return {'none'}
