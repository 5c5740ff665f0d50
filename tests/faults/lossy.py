"""Where an exchange is cut, and what happens before it is tried again: the rounds of test_lost_replies."""

from __future__ import annotations

import enum
import hashlib
import random
from dataclasses import dataclass

from tests.harness.link import Cut, Part
from tests.harness.proxy import Match, Proxy
from tests.harness.resp import Frame

from tidegate.store.script import all_scripts

_NAMES = {word: name for name, one in all_scripts().items() for word in (one.sha, one.function)}


def script(frame: Frame) -> str:
    """Which script a command runs, in whatever form it is called; empty for any other command."""
    if frame.command not in ("FCALL", "EVALSHA", "EVAL"):
        return ""
    word: bytes = frame.value[1]
    if frame.command == "EVAL":
        return _NAMES.get(hashlib.sha1(word, usedforsecurity=False).hexdigest(), "")
    return _NAMES.get(word.decode(), "")


class Place(enum.Enum):
    """Whose exchange is cut. The first two belong to a producer, the others to the worker."""

    ENQUEUE = "enqueue"
    HANDSHAKE = "any command of a producer that has to connect"
    CLAIM = "claim"
    SETTLE = "settle"
    EXTEND = "extend"
    REGISTER = "register"
    REAP = "reap"
    ANY = "any command of the worker"


class Way(enum.Enum):
    """How the jobs of a round are offered."""

    BARE = "enqueue without a key"
    KEYED = "enqueue with a key"
    NAMED = "enqueue with an operation id"
    MANY = "enqueue_many without keys"
    MANY_KEYED = "enqueue_many with keys"
    STORE = "Store.enqueue without keys"
    STORE_KEYED = "Store.enqueue with keys"


class Again(enum.Enum):
    """When the cut exchange is tried again."""

    AT_ONCE = "at once"
    LATE = "after the jobs have finished"
    FLUSHED = "after a flush of scripts and functions"
    LATE_FLUSHED = "after the jobs have finished and a flush of scripts and functions"
    EXPIRED = "after the lost leases have ended"
    NEVER = "never: the producer gives up"

    @property
    def flushed(self) -> bool:
        return self in (Again.FLUSHED, Again.LATE_FLUSHED)

    @property
    def late(self) -> bool:
        return self in (Again.LATE, Again.LATE_FLUSHED)


@dataclass(frozen=True, slots=True)
class Round:
    """One cut: the `after`-th command of `place`, its request or its reply, after `keep` bytes of it."""

    number: int
    place: Place
    part: Part
    after: int
    keep: int
    way: Way
    jobs: int
    again: Again

    def __str__(self) -> str:
        cut = f"{self.part.value} {self.after} of {self.place.value}, {self.keep} bytes pass"
        return f"{self.number}: {cut}; {self.jobs} by {self.way.value}; again {self.again.value}"

    def order(self, proxy: Proxy) -> Cut:
        lose = proxy.lose_reply if self.part is Part.REPLY else proxy.lose_request
        return lose(self._match, after=self.after, keep=self.keep)

    @property
    def _match(self) -> Match:
        if self.place in (Place.HANDSHAKE, Place.ANY):
            return lambda frame: frame.command not in _SUBSCRIPTION
        name = self.place.value
        return lambda frame: script(frame) == name


#: what a subscriber says has no reply of its own
_SUBSCRIPTION = {"SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "PING"}

#: one deal of places: in so many rounds each place comes in this proportion
_DEAL = (
    *[Place.ENQUEUE] * 10,
    *[Place.CLAIM] * 6,
    *[Place.SETTLE] * 3,
    *[Place.EXTEND] * 2,
    Place.HANDSHAKE,
    Place.REGISTER,
    Place.REAP,
    Place.ANY,
)
#: for the producer's cuts: each of these twice before any third time
_AGAIN = (Again.AT_ONCE, Again.LATE, Again.FLUSHED, Again.LATE_FLUSHED, Again.NEVER)


def plan(seed: int, deals: int) -> list[Round]:
    """25 rounds per deal, in random order, the same ones for the same seed."""
    rng = random.Random(seed)
    rounds: list[Round] = []
    for _ in range(deals):
        agains = [*_AGAIN, *_AGAIN]
        ways = [*Way, *rng.sample([*Way], 3)]
        expires = True  # one claim of each deal outlives its leases
        rng.shuffle(agains)
        rng.shuffle(ways)
        for place in rng.sample(_DEAL, len(_DEAL)):
            again = rng.choice((Again.AT_ONCE, Again.FLUSHED))
            way = rng.choice([*Way])
            if place is Place.ENQUEUE:
                again, way = agains.pop(), ways.pop()
            elif place is Place.CLAIM and expires:
                again, expires = Again.EXPIRED, False
            rounds.append(_round(rng, len(rounds), place, way, again))
    return rounds


def _round(rng: random.Random, number: int, place: Place, way: Way, again: Again) -> Round:
    reply = again.late or again is Again.EXPIRED or rng.random() < 0.75
    jobs = 1
    if "many" in way.value or way in (Way.STORE, Way.STORE_KEYED):
        # above 100 a bulk is two scripts in one pipeline
        jobs = rng.randint(101, 130) if rng.random() < 0.15 else rng.randint(2, 9)
    most = {Place.CLAIM: 3, Place.SETTLE: 2, Place.HANDSHAKE: 4, Place.ANY: 8}.get(place, 1)
    if place is Place.ENQUEUE and jobs > 100:
        most = 2
    keep = rng.choice((0, 0, rng.randint(1, 12), rng.randint(1, 60)))
    return Round(
        number=number,
        place=place,
        part=Part.REPLY if reply else Part.REQUEST,
        after=1 if again is Again.EXPIRED else rng.randint(1, most),
        keep=0 if again.late or again is Again.EXPIRED else keep,
        way=way,
        jobs=jobs,
        again=again,
    )
