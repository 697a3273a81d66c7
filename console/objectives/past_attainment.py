"""Measure objectives at each minute of the recorded past, so that alert rules on them can be tested on history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from analytics.model.service_level import DAY, FAST, HOUR, MINUTE, SLOW, Outcomes, burn_rate, overdue
from analytics.rollups.queries import RollupQueries
from analytics.rollups.store import RETENTION_SECONDS
from console.objectives.targets import Measurement, Target

#: A depth is noted when it changes, and at the begin of each hour.
_NOTED_SECONDS = HOUR + MINUTE


@dataclass(frozen=True, slots=True)
class CumulativeCounts:
    """The sum of counts up to any time: times at which it changes, and the sums before each of them and in the end."""

    times: Sequence[int]
    sums: Sequence[int]

    @staticmethod
    def of(counts: Mapping[int, int]) -> CumulativeCounts:
        """Sum counts by the start of their cells."""
        times = sorted(counts)
        return CumulativeCounts(times, list(accumulate((counts[each] for each in times), initial=0)))

    def between(self, start: int, end: int) -> int:
        """Return the count of the cells that begin in a time range."""
        return self.sums[bisect_left(self.times, end)] - self.sums[bisect_left(self.times, start)]


class CumulativeOutcomes:
    """Outcomes of messages, summed over any time range."""

    def __init__(self, cells: Mapping[int, Outcomes]) -> None:
        self._within = CumulativeCounts.of({at: each.within for at, each in cells.items()})
        self._late = CumulativeCounts.of({at: each.late for at, each in cells.items()})
        self._failed = CumulativeCounts.of({at: each.failed for at, each in cells.items()})

    def between(self, start: int, end: int, late: int = 0) -> Outcomes:
        """Return the outcomes in a time range, with messages that were overdue at its end."""
        parts = (each.between(start, end) for each in (self._within, self._late, self._failed))
        return Outcomes(*parts, overdue=late)


def replay_range(past: RollupQueries, target: Target, now: int, longest: int) -> range:
    """Return the minutes for which a target can be measured, with a burn rate over `longest` seconds at most.

    Cells of minutes are kept for two days. The first minutes only serve as the past of those that follow.
    """
    oldest = now - RETENTION_SECONDS[MINUTE] + MINUTE
    first = past.first_start(MINUTE)
    if first is None:
        return range(0)
    lead = max(longest, target.seconds + MINUTE if target.seconds <= DAY else 0)
    begin = max(oldest + lead, first + MINUTE)
    return range(-(-begin // MINUTE) * MINUTE, now // MINUTE * MINUTE + 1, MINUTE)


def measure_past(
    past: RollupQueries, target: Target, names: Sequence[str], times: range, *, with_period: bool
) -> Iterator[tuple[int, Measurement]]:
    """Yield the measurement of a target at each of these minutes; `with_period`: with the outcomes of its period.

    The same measures as `attainment.measure_at`, of whole minutes. A period begins at a full hour.
    """
    if not times:
        return
    earliest, end = times[0] - max(*FAST, *SLOW), times[-1]
    minutes = CumulativeOutcomes(past.outcomes_by_start(earliest, end, MINUTE, names, target.seconds))
    hours = CumulativeOutcomes(
        past.outcomes_by_start(times[0] - target.days * DAY, end, HOUR, names, target.seconds) if with_period else {}
    )
    for at, late in zip(times, _overdue_at(past, target, names, times), strict=True):
        rates = {window: burn_rate(minutes.between(at - window, at, late), target.percent) for window in (*FAST, *SLOW)}
        period = Outcomes()
        if with_period:
            hour = at // HOUR * HOUR
            whole, rest = hours.between((at - target.days * DAY) // HOUR * HOUR, hour), minutes.between(hour, at, late)
            period = whole.plus(rest)
        yield at, Measurement(target, len(names), 0, period, rates)


def _overdue_at(past: RollupQueries, target: Target, names: Sequence[str], times: range) -> Iterable[int]:
    """Return for each minute how many messages waited longer than allowed, at least."""
    found = [0] * len(times)
    notes: dict[str, list[tuple[int, int]]] = {}
    for noted, name, depth in past.depth_notes(times[0] - _NOTED_SECONDS, times[-1], names):
        notes.setdefault(name, []).append((noted, depth))
    held = [name for name, each in notes.items() if any(depth for _, depth in each)]
    width = MINUTE if target.seconds <= DAY else HOUR
    arrived: dict[str, dict[int, int]] = {name: {} for name in held}
    for start, name, came, _, _ in past.flows(times[0] - target.seconds - width, times[-1], width, held):
        arrived[name][start] = came
    for name in held:
        arrivals = CumulativeCounts.of(arrived[name])
        moments = [noted for noted, _ in notes[name]]
        for place, at in enumerate(times):
            last = bisect_left(moments, at) - 1
            if last < 0 or moments[last] < at - _NOTED_SECONDS or not (depth := notes[name][last][1]):
                continue
            start = (at - target.seconds - MINUTE) // width * width
            found[place] += overdue(depth, arrivals.between(start, at))
    return found
