-- book: what a queue knows of itself and its tenants, as numbers: one hash, read when asked, written at the end of the call.
-- needs: base
-- Field "" of a queue: "in out D F X R T vt" = jobs that came and went, jobs in five of the states (what is neither gone nor in
-- one of them waits), pass of the tenant served last. Field TENANT: "n mean" = unfinished jobs, mean slot-seconds.
local books -- of this call
function lib.begin_book() books = {} end

local function tenant_of(s)
  local n, mean = 0, 0
  if s then n, mean = s:match('^(%S+) (%S+)$') end
  return {n = tonumber(n), mean = tonumber(mean)}
end

function lib.book(q, t) -- t: a tenant that will be asked for
  local b = books[q]
  if b then return b end
  local found = call('HMGET', P .. 'book:' .. q, '', t or '')
  b = {new = not found[1], took = 0, out = 0, D = 0, F = 0, X = 0, R = 0, T = 0, vt = 0, tenants = {}}
  if found[1] then
    local i, o, d, f, x, r, w, v = found[1]:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$')
    b.took, b.out, b.D, b.F, b.X, b.R, b.T, b.vt =
      tonumber(i), tonumber(o), tonumber(d), tonumber(f), tonumber(x), tonumber(r), tonumber(w), tonumber(v)
  end
  if t then b.tenants[t] = tenant_of(found[2]) end
  books[q] = b
  return b
end

function lib.tenant(q, t)
  local b = lib.book(q, t)
  if not b.tenants[t] then b.tenants[t] = tenant_of(call('HGET', P .. 'book:' .. q, t)) end
  return b.tenants[t]
end

function lib.depth(q) -- accepted and not finished
  local b = lib.book(q)
  return b.took - b.out
end

function lib.waiting(q)
  local b = lib.book(q)
  return b.took - b.out - b.D - b.F - b.R - b.T
end

function lib.close_book() -- the loader calls it after each command
  for q, b in pairs(books) do
    local key, set, gone = P .. 'book:' .. q, {}, {}
    if b.changed then
      set = {'', string.format('%d %d %d %d %d %d %d %.17g', b.took, b.out, b.D, b.F, b.X, b.R, b.T, b.vt)}
    end
    for t, x in pairs(b.tenants) do
      if x.changed and x.n == 0 and x.mean == 0 then gone[#gone + 1] = t
      elseif x.changed then set[#set + 1], set[#set + 2] = t, string.format('%d %.6f', x.n, x.mean) end
    end
    if set[1] then call('HSET', key, unpack(set)) end
    if gone[1] then call('HDEL', key, unpack(gone)) end
  end
end
