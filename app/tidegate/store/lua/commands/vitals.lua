#!lua flags=no-writes
-- vitals: signs of life: who was heard of when, and what waits for somebody.
-- needs:   base
-- keys:    prefix
-- args:    none
-- edge:    none
-- replies: vitals(now, schema, clock, untold, failed since, untold since, (worker, heard of)*) | lost
-- Instants in ms; 0 = never, or there is nothing.
local _, failed = lib.first(P .. 'failed')
local _, untold = lib.first(P .. 'untold')
return {'vitals', lib.int(NOW), call('HGET', META, 'schema'), meta.clock, call('ZCARD', P .. 'untold'), lib.int(failed or 0),
  lib.int(untold or 0), unpack(call('ZRANGE', P .. 'workers', 0, 999, 'WITHSCORES'))}
