#!lua flags=allow-oom
-- init: the first process of a fleet writes its meta record; later ones compare.
-- keys:    prefix
-- args:    key schema, first epoch, lease_ms, test clock (ms, or "-" = the server's own clock for ever)
-- edge:    none
-- replies: ready(schema, clock, created)
-- The first epoch comes from the calendar, so that a fleet created again after a FLUSHALL does not repeat old ids.
local key = KEYS[1] .. 'meta'
local created = 0
if redis.call('EXISTS', key) == 0 then
  local t, clock = redis.call('TIME'), ARGV[7]
  local now = clock == '-' and string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000)) or clock
  redis.call('HSET', key, 'schema', ARGV[4], 'run', ARGV[3], 'epoch', ARGV[5], 'hold', 0, 'clock', clock, 'lease', ARGV[6],
    'start', now, 'job', 0, 'fence', 0, 'pulse', now, 'judge', now, 'full', 0)
  created = 1
end
local m = redis.call('HMGET', key, 'schema', 'clock')
return {'ready', m[1], m[2], created}
