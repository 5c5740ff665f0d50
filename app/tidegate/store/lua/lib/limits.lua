-- limits: what a resource may do. One hash for the fleet: name -> nine numbers; a name never seen gets its kind's default
-- ("tenant:*"), never "unlimited by accident".
-- needs: base
local UNLIMITED = {weight = 1, conc = -1, n = 0, d = 1, burst = 0, depth = -1, paused = false, till = 0, closed = false}
local limits -- of this fleet, as far as they were looked at; a function of the server keeps them until the settings change
local kept, fleets = {}, 0 -- prefix -> digest of the settings, limits, number
local MOST = 20000 -- tenants and fleets come and go: then all is looked at anew

function lib.begin_limits()
  local k = kept[P]
  if not k or k.digest ~= meta.digest or k.number > MOST then
    if not k then fleets = fleets + 1 end
    if fleets > 64 then kept, fleets = {}, 1 end
    k = {digest = meta.digest, limits = {}, number = 0}
    kept[P] = k
  end
  limits = k.limits
end

function lib.limit_parse(s)
  local w, c, n, d, b, dp, p, t, x = s:match('^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  return {weight = tonumber(w), conc = tonumber(c), n = tonumber(n), d = tonumber(d), burst = tonumber(b),
    depth = tonumber(dp), paused = p == '1', till = tonumber(t), closed = x == '1'}
end

function lib.kind_default(r) return r:match('^[^:]+') .. ':*' end

function lib.limits_of(res) -- one call for all that are not known yet
  local ask = {}
  for _, r in ipairs(res) do
    if not limits[r] then ask[#ask + 1], ask[#ask + 2] = r, lib.kind_default(r) end
  end
  if not ask[1] then return end
  local found = call('HMGET', P .. 'lim', unpack(ask))
  for i = 1, #ask, 2 do
    local s = found[i] or found[i + 1]
    limits[ask[i]] = s and lib.limit_parse(s) or UNLIMITED
  end
  kept[P].number = kept[P].number + #ask / 2
end

function lib.limit(r)
  if not limits[r] then lib.limits_of({r}) end
  return limits[r]
end
