#!lua flags=allow-oom
-- unregister: a worker leaves politely; nobody waits for it any more.
-- needs:   epoch
-- keys:    prefix
-- args:    worker
-- edge:    none
-- replies: unregistered | lost
call('ZREM', P .. 'workers', ARGV[4])
call('HDEL', P .. 'winfo', ARGV[4])
call('SREM', P .. 'held', ARGV[4])
if meta.hold > 0 and call('EXISTS', P .. 'held') == 0 then call('HSET', META, 'hold', 0) end
return {'unregistered'}
