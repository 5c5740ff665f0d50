-- riders: a list of outcomes in the arguments, from index `at`: their number, then (lease, kind, reason, detail) each.
-- A worker that has not reasserted since the server came back is told "held": its reports come again afterwards.
-- needs: attempt
function lib.riders(worker, at)
  local words, number = {}, tonumber(ARGV[at])
  local wait = lib.must_reassert(worker)
  for i = 1, number do
    local a = at + 1 + (i - 1) * 4
    words[i] = wait and 'held' or lib.settle(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], worker)
  end
  return words, at + 1 + number * 4
end
