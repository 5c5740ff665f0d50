"""Everything a fleet has in its server, read in one piece: one instant, no key forgotten."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

# KEYS is right here: a test's fleet is small, and nothing may be overlooked.
_SCRIPT = """#!lua flags=no-writes
local read = {
  string = function(k) return {redis.call('GET', k)} end,
  hash = function(k) return redis.call('HGETALL', k) end,
  set = function(k) return redis.call('SMEMBERS', k) end,
  list = function(k) return redis.call('LRANGE', k, 0, -1) end,
  zset = function(k) return redis.call('ZRANGE', k, 0, -1, 'WITHSCORES') end,
  stream = function(k) return redis.call('XRANGE', k, '-', '+') end,
}
local out = {}
for _, k in ipairs(redis.call('KEYS', (ARGV[1]:gsub('[%[%]?*\\\\]', '\\\\%0')) .. '*')) do
  local kind = redis.call('TYPE', k).ok
  out[#out + 1] = {k, kind, redis.call('PTTL', k), read[kind](k)}
end
return cjson.encode(out)
"""


class Client(Protocol):
    """What of redis-py's client is needed here."""

    def eval(self, script: str, numkeys: int, *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Record:
    """A stored job, parsed by hand: a check must not trust what it checks."""

    id: str
    state: str
    flags: int
    n: int
    charged: int
    crashes: int
    lost: int
    fence: int
    eligible: int
    boost: int
    created: int
    started: int
    deadline: int
    queue_timeout: int
    attempt_timeout: int
    est: int
    words: tuple[str, ...]
    body: bytes

    @classmethod
    def parse(cls, job_id: str, raw: bytes) -> Record:
        state, *numbers, length = struct.unpack(">BBIHBBQQiQQQIIIH", raw[:68])
        end = 68 + length
        words = tuple(raw[68:end].decode("ascii").split(" "))
        fixed: tuple[int, ...] = tuple(numbers)
        return cls(job_id, chr(state), *fixed, words, raw[end:])  # type: ignore[call-arg, arg-type]

    @property
    def queue(self) -> str:
        return self.words[0]

    @property
    def tenant(self) -> str:
        return self.words[1]

    @property
    def lane(self) -> str:
        return self.words[2]

    @property
    def name(self) -> str:
        """operation and step, as the index spells them."""
        return f"{self.words[3]} {self.words[4]}"

    @property
    def key(self) -> str:
        return self.words[5]

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"queue:{self.queue}", f"tenant:{self.tenant}", *self.words[9:])

    @property
    def lease(self) -> str:
        return f"{self.id}:{self.fence}"

    @property
    def score(self) -> int:
        return self.eligible - self.boost

    @property
    def due(self) -> int:
        """Next instant at which something must happen to it, 0 = none; the rule of lib/job.lua."""
        at = [self.deadline] if self.deadline else []
        if self.state in "DT":
            at.append(self.eligible)
        elif self.queue_timeout:
            at.append(max(self.eligible, self.started) + self.queue_timeout)
        return min(at, default=0) if self.state in "WDT" else 0


@dataclass(frozen=True, slots=True)
class Book:
    """What a queue says of itself. tenants: (unfinished jobs, mean slot-seconds) of each."""

    taken: int
    gone: int
    states: dict[str, int]
    vt: float
    tenants: dict[str, tuple[int, float]]

    @classmethod
    def parse(cls, dump: Mapping[str, Any], queue: str) -> Book:
        fields = dict(dump.get(f"book:{queue}", {}))
        taken, gone, *states, vt = fields.pop("", "0 0 0 0 0 0 0 0").split(" ")
        tenants = {
            t: (int(n), float(mean)) for t, (n, mean) in ((t, v.split(" ")) for t, v in fields.items())
        }
        return cls(
            int(taken), int(gone), dict(zip("DFXRT", map(int, states), strict=True)), float(vt), tenants
        )


class Dump(Mapping[str, Any]):
    """Keys without their prefix → text, dict, set, list, or dict of floats (sorted sets). `ttl`: ms, -1 = none.

    Bytes are read as Latin-1: names are ASCII, other values are compared with nothing.
    """

    def __init__(self, client: Client, prefix: str) -> None:
        self.values_: dict[str, Any] = {}
        self.ttl: dict[str, int] = {}
        self.jobs: dict[str, Record] = {}
        # cjson escapes what JSON must escape and leaves the other bytes alone
        for key, kind, ttl, raw in json.loads(client.eval(_SCRIPT, 0, prefix).decode("latin-1")):
            name = key[len(prefix) :]
            self.ttl[name] = ttl
            if name.startswith("job:"):
                self.jobs[name[4:]] = Record.parse(name[4:], raw[0].encode("latin-1"))
            self.values_[name] = _value(kind, raw)

    def __getitem__(self, name: str) -> Any:
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def book(self, queue: str) -> Book:
        """The book of a queue; all zero if it has none."""
        return Book.parse(self, queue)

    def passes(self, queue: str) -> dict[str, float]:
        """Tenant → pass, of those in ready:q and of the others."""
        ready = {m[1:]: p for m, p in self.get(f"ready:{queue}", {}).items() if m[0] == "~"}
        return {**self.get(f"pass:{queue}", {}), **ready}

    def below(self, kind: str) -> dict[str, Any]:
        """`kind:*`: the rest of the name → value."""
        return {
            name[len(kind) + 1 :]: value
            for name, value in self.values_.items()
            if name.startswith(f"{kind}:")
        }


def _value(kind: str, words: list[str]) -> Any:
    match kind:
        case "string":
            return words[0]
        case "set":
            return set(words)
        case "list" | "stream":
            return words
        case "zset":
            return {words[i]: float(words[i + 1]) for i in range(0, len(words), 2)}
    return dict(zip(words[::2], words[1::2], strict=True))
