"""From wall times to instants: what a cron expression means in a zone, through gaps and folds (DESIGN §7, "DST")."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tidegate.config.schedule import DstFold, DstGap
from tidegate_beat.semantics.expression import Expression
from tidegate_beat.semantics.fire import FireTime, Note, utc
from tidegate_beat.semantics.sequence import FireSequence
from tidegate_beat.semantics.wall import LAST_YEAR, Walls, walls
from tidegate_beat.semantics.zone import Stretch, Zone

#: no zone is farther than this from UTC, nor its gaps longer
_FAR = timedelta(days=2)

#: nothing is planned earlier: before that, most zones kept the time of the sun
_FIRST = datetime(1900, 1, 1)

_Found = tuple[datetime, Note]


@dataclass(frozen=True, slots=True)
class Cron(FireSequence):
    """A cron schedule; make it with `Cron.of`. `gap` and `fold` are never AUTO here."""

    expression: Expression
    zone: Zone
    gap: DstGap
    fold: DstFold
    _walls: Walls = field(repr=False, compare=False)

    @staticmethod
    def of(
        expression: Expression,
        zone: Zone,
        gap: DstGap = DstGap.AUTO,
        fold: DstFold = DstFold.AUTO,
    ) -> Cron:
        """AUTO: a schedule that names fixed times fires once each day (gap_end, first); one that names a rhythm
        follows elapsed time (skip, both)."""
        fixed = expression.names_fixed_times
        if gap is DstGap.AUTO:
            gap = DstGap.GAP_END if fixed else DstGap.SKIP
        if fold is DstFold.AUTO:
            fold = DstFold.FIRST if fixed else DstFold.BOTH
        return Cron(expression, zone, gap, fold, walls(expression))

    def fires(self, instant: datetime) -> Iterator[FireTime]:
        """All fires later than `instant` (aware), strictly ascending; none before the year 1900."""
        last = max(utc(instant).replace(tzinfo=None), _FIRST)
        for at, note in self._instants(last):
            # A gap's end and a shifted fire can meet an ordinary fire; one instant is one fire.
            if at > last:
                last = at
                yield FireTime(at.replace(tzinfo=UTC), self.zone, note)

    def _instants(self, after: datetime) -> Iterator[_Found]:
        """Ascending, from `after` on; some of them twice."""
        if after.year > LAST_YEAR:
            return
        stretch = self.zone.stretch(after)
        asked, wall = after, None
        while True:
            start = max(stretch.start, after)
            shown = start + stretch.offset
            bound = stretch.start + stretch.before if self._owes(stretch, after) else shown
            if wall is None or not asked <= bound <= wall:
                # Otherwise the answer for the last stretch is the answer for this one too.
                asked, wall = bound, self._walls.since(bound)
            if wall is None:
                return
            if wall - _FAR >= stretch.end:
                # Nothing for a long time: go there at once.
                stretch = self.zone.stretch(wall - _FAR)
                continue
            first = wall if wall >= shown else self._walls.since(shown)
            moved, ordinary = self._moved(stretch, after), self._ordinary(stretch, first)
            yield from heapq.merge(moved, ordinary, key=lambda found: found[0])
            stretch = self.zone.stretch(stretch.end)

    def _owes(self, stretch: Stretch, after: datetime) -> bool:
        """Whether wall times of a gap before the stretch may still fire later than `after`."""
        width = stretch.offset - stretch.before  # of a gap; none or negative where there is none
        return self.gap is not DstGap.SKIP and width > timedelta() and after < stretch.start + width

    def _ordinary(self, stretch: Stretch, wall: datetime | None) -> Iterator[_Found]:
        """The wall times that the stretch itself shows, from `wall` on, as its instants."""
        offset = stretch.offset
        again_until = stretch.start + stretch.before  # walls below are shown a second time here
        again_from = stretch.end + stretch.after  # walls from here on will be shown again
        while wall is not None and wall < stretch.end + offset:
            if wall < again_until:
                if self.fold is not DstFold.FIRST:
                    yield wall - offset, Note.FOLD_SECOND
            elif wall >= again_from:
                if self.fold is not DstFold.SECOND:
                    yield wall - offset, Note.FOLD_FIRST
            else:
                yield wall - offset, Note.NONE
            wall = self._walls.after(wall)

    def _moved(self, stretch: Stretch, after: datetime) -> Iterator[_Found]:
        """What becomes of the wall times in the gap before the stretch, if there is one."""
        gap_end = stretch.start + stretch.offset
        if not self._owes(stretch, after):
            return
        wall = self._walls.since(stretch.start + stretch.before)
        while wall is not None and wall < gap_end:
            if self.gap is DstGap.GAP_END:
                yield stretch.start, Note.GAP_END
                return
            yield wall - stretch.before, Note.SHIFTED
            wall = self._walls.after(wall)
