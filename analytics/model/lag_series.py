"""Compute the lag of a queue or subscription over time: oldest message, time behind, and rates. Pure.

`oldest` is the age of the oldest message at the end of a slot: the time since that message reached the broker, whatever
the order in which messages leave. `behind` is the depth divided by the service rate: the time until the messages that
wait now are served. Rates are means over RATE_SECONDS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate

from analytics.model.depth_series import DepthSeries

#: Level of the row that counts the copies stored before the first slot and removed later.
BEFORE = -1
#: Seconds over which rates are averaged: shorter ones are 0 between the messages of a quiet queue.
RATE_SECONDS = 300


class Certainty(StrEnum):
    """Whether the age of the oldest message is known exactly."""

    EXACT = "exact"
    #: Messages wait that no event names: they were stored before the first event that was read.
    AT_LEAST = "at least"
    #: More messages should wait than do: some left without an event.
    AT_MOST = "at most"
    UNKNOWN = ""  #: nothing waits, or nothing is known of what does


@dataclass(frozen=True, slots=True)
class SlotTimes:
    """The slots of a time range, in seconds since the epoch."""

    begins: Sequence[int]
    seconds: int  #: length of a slot
    known_since: float  #: start of the recorded part
    until: float

    def end(self, slot: int) -> float:
        """Return the end of a slot; that of the last is the end of the time range."""
        return min(self.begins[slot] + self.seconds, self.until)


@dataclass(slots=True)
class ServiceCounts:
    """Messages of each slot that arrived and were served; and of acknowledged ones, number and sum of their ages."""

    arrived: list[int]
    served: list[int]
    timed: list[int]
    age_us: list[float]


@dataclass(slots=True)
class LagSeries:
    """The lag of one log at the end of each slot; None where it is not known."""

    depths: list[int | None]
    oldest: list[float | None] = field(default_factory=list)  #: seconds
    certainty: list[Certainty] = field(default_factory=list)
    arrival_rate: list[float] = field(default_factory=list)  #: messages/s
    service_rate: list[float] = field(default_factory=list)
    behind: list[float | None] = field(default_factory=list)  #: seconds; None: nothing is served
    acknowledged_age: list[float | None] = field(default_factory=list)  #: mean of the slot, seconds


def oldest_of_slots(slots: int, blocks: Iterable[tuple[int, int, int]]) -> list[int | None]:
    """Return the least `born` of the blocks that cover each slot; a block is (level, start, born), 2**level slots."""
    levels: dict[int, dict[int, int]] = {}
    for level, start, born in blocks:
        known = levels.setdefault(level, {})
        known[start] = min(born, known.get(start, born))
    for level in range(max(levels, default=0), 0, -1):
        below, half = levels.setdefault(level - 1, {}), 1 << (level - 1)
        for start, born in levels.get(level, {}).items():
            for part in (start, start + half):
                below[part] = min(born, below.get(part, born))
    single = levels.get(0, {})
    return [single.get(slot) for slot in range(slots)]


def lag_of(
    course: DepthSeries, times: SlotTimes, counts: ServiceCounts, born_us: Sequence[int | None], before: int
) -> LagSeries:
    """Compute the lag of a log. `born_us`: of its oldest message by slot; `before`: copies known to be older."""
    found = LagSeries(course.chart_values)
    flows = zip(course.enqueued, course.dequeued, strict=True)
    known = accumulate((came - went for came, went in flows), initial=before)
    next(known)
    unseen = [depth - count for depth, count in zip(course.depths, known, strict=True)]
    is_older = min((each for each, gap in zip(unseen, course.gaps, strict=True) if not gap), default=0) > 0
    for slot, depth in enumerate(found.depths):
        age, certainty = _age(times, slot, born_us[slot], depth, unseen[slot], is_older)
        found.oldest.append(age)
        found.certainty.append(certainty)
        arrived, served = (_rate(each, times, slot) for each in (counts.arrived, counts.served))
        found.arrival_rate.append(arrived)
        found.service_rate.append(served)
        found.behind.append(behind(depth, served))
        timed = counts.timed[slot]
        found.acknowledged_age.append(counts.age_us[slot] / timed / 1e6 if timed else None)
    return found


def behind(depth: int | None, service_rate: float) -> float | None:
    """Return the seconds until a depth is served at a rate; None if it is unknown, or nothing is served."""
    if not depth:
        return None if depth is None else 0.0
    return depth / service_rate if service_rate else None


def _age(
    times: SlotTimes, slot: int, born_us: int | None, depth: int | None, unseen: int, is_older: bool
) -> tuple[float | None, Certainty]:
    """Return the age of the oldest message at the end of a slot in seconds, and how certain it is."""
    if not depth:
        return None, Certainty.UNKNOWN
    end = times.end(slot)
    age = None if born_us is None else max(0, round(end * 1e6) - born_us) / 1e6
    if is_older:  # they were stored before anything was read
        return max(age or 0.0, end - times.known_since), Certainty.AT_LEAST
    if age is None:
        return None, Certainty.UNKNOWN
    if unseen:
        return age, Certainty.AT_LEAST if unseen > 0 else Certainty.AT_MOST
    return age, Certainty.EXACT


def _rate(counts: Sequence[int], times: SlotTimes, slot: int) -> float:
    """Return the messages per second over the last RATE_SECONDS, or over the slot if it is longer."""
    first = max(0, slot + 1 - max(1, -(-RATE_SECONDS // times.seconds)))
    seconds = times.end(slot) - max(times.begins[first], times.known_since)
    return sum(counts[first : slot + 1]) / seconds if seconds > 0 else 0.0


def empty_counts(slots: int) -> ServiceCounts:
    """Make the counts of a log in which nothing happened."""
    return ServiceCounts([0] * slots, [0] * slots, [0] * slots, [0.0] * slots)


def latest(values: Sequence[float | None]) -> float | None:
    """Return the last value."""
    return values[-1] if values else None


def greatest(values: Iterable[float | None]) -> float | None:
    """Return the greatest known value; None without any."""
    return max((each for each in values if each is not None), default=None)


def mean_age(counts: ServiceCounts, first: int) -> float | None:
    """Return the mean age in seconds of what was acknowledged from a slot on; None without any."""
    timed = sum(counts.timed[first:])
    return sum(counts.age_us[first:]) / timed / 1e6 if timed else None


def by_oldest(series: Mapping[str, LagSeries]) -> list[str]:
    """Return the names of the series, that with the oldest message of the whole time range first."""
    return sorted(series, key=lambda name: (-(greatest(series[name].oldest) or 0.0), name))
