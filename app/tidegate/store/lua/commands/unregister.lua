#!lua flags=allow-oom
-- unregister: a worker leaves politely; nobody waits for it any more.
-- needs:   hold
-- keys:    prefix
-- args:    worker
-- edge:    none
-- replies: unregistered | lost
call('ZREM', P .. 'workers', ARGV[4])
call('HDEL', P .. 'winfo', ARGV[4])
call('HINCRBY', META, 'left', 1)
lib.not_awaited(ARGV[4])
return {'unregistered'}
