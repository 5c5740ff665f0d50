"""Where every key is born: prefix, names, lanes, and how long each kind of key may live.

Names come from users and may hold any Unicode text; inside the store they are percent-encoded ASCII, so braces,
colons, spaces and quotes can do no harm and a word never contains a space.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote


def encode(name: str) -> str:
    """A user's name as one safe word; the empty name is `-` (and `-` itself is written out)."""
    if not name:
        return "-"
    if name.isalnum() and name.isascii():
        return name
    return "%2D" if name == "-" else quote(name, safe="@+")


def decode(word: str) -> str:
    """Inverse of `encode`."""
    if "%" not in word:
        return "" if word == "-" else word
    return unquote(word)


def encode_resource(name: str) -> str:
    """`kind:rest` with the rest encoded: the kind stays readable for the scripts."""
    kind, sep, rest = name.partition(":")
    return f"{encode(kind)}:{encode(rest)}" if sep else encode(name)


def decode_resource(word: str) -> str:
    """Inverse of `encode_resource`."""
    kind, sep, rest = word.partition(":")
    if kind == "cost":
        return f"cost:{'/'.join(map(decode, rest.split('/')))}"
    return f"{decode(kind)}:{decode(rest)}" if sep else decode(word)


def budget(dependency: str, unit: str) -> str:
    """The resource that counts a dependency's units: `cost:DEPENDENCY/UNIT`, whatever stands in either name."""
    return f"cost:{encode(dependency)}/{encode(unit)}"


def digest(*parts: str) -> str:
    """Short name of a structured key (JSON array, so no two different lists of parts meet): 128 bits in hex."""
    canonical = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def lane(queue: str, tenant: str, resources: Iterable[str]) -> str:
    """Name of the lane of one (queue, tenant, set of resources): order and repetition of resources do not matter."""
    return digest(queue, tenant, *sorted(set(resources)))[:20]


@dataclass(frozen=True, slots=True)
class KeyKind:
    """One family of keys below the prefix: what it is, and what ends it."""

    pattern: str
    owner: str
    lifetime: str


#: Every key that a script may create. `while …` kinds are gone when the thing is; a test fails on any key that is left
#: over after a fleet has run empty, unless its lifetime here says `fleet` or `ttl`.
KEYS: tuple[KeyKind, ...] = (
    KeyKind("meta", "init, epoch", "fleet"),
    KeyKind("lim", "configure", "fleet"),
    KeyKind("queues", "enqueue", "fleet: one member per queue name"),
    KeyKind("book:*", "book", "fleet: one per queue; a field per tenant with jobs or a debt"),
    KeyKind("pace", "pressure", "fleet: one field per queue that was full"),
    KeyKind("qpass", "claim", "fleet: one field per queue"),
    KeyKind("hist", "finish", "fleet: at most 100,000 members, one hour"),
    KeyKind("workers", "register", "while the worker lives"),
    KeyKind("winfo", "register", "while the worker lives"),
    KeyKind("tasks", "register", "fleet: at most 10,000 fields, one per task with options of its own"),
    KeyKind("held", "epoch", "while the hold lasts"),
    KeyKind("job:*", "enqueue", "while the job is unfinished or dead"),
    KeyKind("ix:*", "enqueue", "while the job is unfinished or dead"),
    KeyKind("err:*", "settle, reap, promote", "while the job is unfinished or dead"),
    KeyKind("tries:*", "tries", "while the job is unfinished or dead"),
    KeyKind("key:*", "enqueue", "ttl: 24 h after the end of the job"),
    KeyKind("due", "enqueue", "while jobs wait for an instant"),
    KeyKind("lane:*", "join", "while the lane has jobs"),
    KeyKind("lm:*", "join", "while the lane has jobs"),
    KeyKind("rl:*", "lanes", "while the lane has jobs"),
    KeyKind("wl:*", "park", "while the lane has jobs"),
    KeyKind("wt:*", "park", "while the lane has jobs"),
    KeyKind("wq:*", "park", "while lanes wait for the resource"),
    KeyKind("blocked", "park", "while lanes wait for the resource"),
    KeyKind("old:*", "line", "while the lane has jobs"),
    KeyKind("ready:*", "lanes", "while the lane has jobs"),
    KeyKind("timers", "park", "until the instant"),
    KeyKind("pass:*", "join", "while the tenant has jobs or a debt (swept by promote)"),
    KeyKind("use:*", "charge", "while attempts run"),
    KeyKind("leases", "admit", "while attempts run"),
    KeyKind("bucket:*", "charge", "ttl: time to fill + 1 h"),
    KeyKind("failed", "settle", "while jobs are failed"),
    KeyKind("dlq", "bury", "while jobs are dead"),
    KeyKind("untold", "bury", "until the result of the dead job is written"),
    KeyKind("died", "bury", "fleet: one field per queue and reason"),
    KeyKind("refused", "enqueue", "fleet: one field per queue and answer other than accepted"),
    KeyKind("replays", "replay", "fleet: one field per answer"),
    KeyKind("audit", "audit", "fleet: about 100,000 lines, the latest"),
    KeyKind("sched", "schedule, fire", "fleet: one field per schedule"),
    KeyKind("fires:*", "fire", "fleet: one per schedule, at most 128 marks of its latest fires"),
    KeyKind("fates", "fire", "fleet: one field per schedule and fate"),
    KeyKind("wake:*", "wake", "fleet: at most 32 tokens per queue"),
    KeyKind("tick:*", "claim", "ttl: at most 1 s"),
    KeyKind("rq:*", "answer", "ttl: 10 min"),
    KeyKind("k:*", "kombu", "fleet: remote control; replies expire"),
    KeyKind("r:*", "celery", "ttl: result_expires"),
)


@dataclass(frozen=True, slots=True)
class Keyspace:
    """All keys of one fleet: they share the hash tag, so a fleet is one slot."""

    fleet: str

    @property
    def prefix(self) -> str:
        """What every key starts with; passed to every script as its only key."""
        return "{" + encode(self.fleet) + "}:"

    def wake(self, queue: str) -> str:
        """The list on which idle workers of a queue wait."""
        return f"{self.prefix}wake:{encode(queue)}"
