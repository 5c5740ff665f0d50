-- base: the one prefix, the server's clock, the request slot. Every command but `init` includes it.
-- A script is called with KEYS[1] = the prefix "{fleet}:", ARGV = client, request id, run_id of the server as the
-- connection saw it at its handshake, then the command's own arguments from ARGV[4] on.
local lib = {} -- one table for all functions: a local each would make Lua search a long list for every captured variable
local call, P, ARGV, CLIENT, RID, RUN, META, SLOT, NOW, meta -- of this call, set by begin

-- Every call starts here (the loader writes it). A reply means: there is nothing more to do.
function lib.begin(keys, argv)
  call, P, ARGV = redis.call, keys[1], argv -- a library that is being loaded has no redis.call yet
  CLIENT, RID, RUN = argv[1], tonumber(argv[2]) or 0, argv[3]
  META, SLOT = P .. 'meta', P .. 'rq:' .. CLIENT
  local m = call('HMGET', META, 'run', 'epoch', 'hold', 'clock', 'lease', 'pulse', 'digest', 'ring', 'blocked', 'idle', 'left')
  if not m[2] then return {'lost'} end -- FLUSHALL under a running fleet: nobody may go on as if nothing had happened
  meta = {run = m[1], epoch = tonumber(m[2]), hold = tonumber(m[3]), clock = m[4], lease = tonumber(m[5]), pulse = tonumber(m[6]),
    digest = m[7], ring = tonumber(m[8] or nil), blocked = m[9] == '1', idle = tonumber(m[10] or 0), left = m[11] or '0'}
  if meta.clock == '-' then -- milliseconds of the server, or of the test clock of a fleet that was created with one
    local t = call('TIME')
    NOW = t[1] * 1000 + math.floor(t[2] / 1000)
  else
    NOW = tonumber(meta.clock)
  end
end

function lib.rarely(field, default) -- a number of meta that few calls need
  return tonumber(call('HGET', META, field) or default)
end

function lib.int(n) return string.format('%d', n) end

function lib.first(key) -- least member of a sorted set, and its score
  local z = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if z[1] then return z[1], tonumber(z[2]) end
end

function lib.rank(key, member) return tonumber(call('ZSCORE', key, member) or nil) end

function lib.held() return math.max(0, meta.hold - NOW) end -- ms until the hold ends; 0 = none

-- A reply can be lost and its request sent again. The slot of the client keeps the last answer: the same request id gets
-- it again, an older one (a copy that wandered in the network) is refused. Second value: the mark of the last answer.
function lib.replayed()
  local s = call('GET', SLOT)
  if not s then return nil end
  local last, mark, reply = s:match('^(%d+) (%S+) (.*)$')
  last = tonumber(last)
  if last == RID then return cmsgpack.unpack(reply), mark end
  if last > RID then return {'old'} end
  return nil, mark
end

function lib.answer(reply, mark)
  call('SET', SLOT, lib.int(RID) .. ' ' .. (mark or '-') .. ' ' .. cmsgpack.pack(reply), 'EX', 600)
  return reply
end
