-- audit: who changed what and why, in the same step as the change, so that there is no change without a line. Never rewritten.
-- needs: base
local LINES = 100000 -- about so many, the latest

function lib.audit(by, command, reason, count, detail)
  call('XADD', P .. 'audit', 'MAXLEN', '~', LINES, '*', 'at', lib.int(NOW), 'by', by, 'command', command, 'reason', reason,
    'count', lib.int(count), 'detail', detail)
end
