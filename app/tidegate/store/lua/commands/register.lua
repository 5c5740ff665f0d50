#!lua flags=allow-oom
-- register: a worker exists. Made durable by the caller before the first claim, so that a server that lost its last second
-- still knows whom to wait for.
-- needs:   epoch
-- keys:    prefix
-- args:    worker, information (JSON)
-- edge:    none
-- replies: registered(epoch) | lost
call('ZADD', P .. 'workers', NOW, ARGV[4])
call('HSET', P .. 'winfo', ARGV[4], ARGV[5])
return {'registered', lib.int(meta.epoch)}
