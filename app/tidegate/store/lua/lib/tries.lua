-- tries: what became of each attempt that did not succeed, and of each replay, kept with the job for a person.
-- needs: finish
local TRIES = 20 -- the latest so many

local function note(id, row)
  call('RPUSH', P .. 'tries:' .. id, cjson.encode(row))
  call('LTRIM', P .. 'tries:' .. id, -TRIES, -1)
end

local function short(text) -- a message for a table; the whole one stands in the job's last error
  return type(text) == 'string' and text:sub(1, 200) or nil
end

function lib.note_try(j, outcome, detail, worker) -- worker: nil = it fell silent, and nobody knows which it was
  local row = {n = j.n, started = j.started, ended = NOW, outcome = outcome, worker = worker}
  local ok, said = pcall(cjson.decode, detail)
  if ok and type(said) == 'table' then row.class, row.message = short(said.class), short(said.message) end
  local known, info = pcall(cjson.decode, worker and call('HGET', P .. 'winfo', worker) or '')
  if known and type(info) == 'table' then row.host, row.release = info.hostname, info.release end
  note(j.id, row)
end

function lib.note_replay(j, by, why)
  note(j.id, {replayed = NOW, by = by, reason = why, enqueued = j.created})
end
