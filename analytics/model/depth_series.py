"""Reconstruct depths over time from the depths that brokers noted, and the arrivals and removals since. Pure.

A note has the depth of a log just before a moment. From there on the depth changes by arrivals and removals, until the
next note corrects for events that were not recorded.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

#: Times of notes in one slot at which flows are split: one of each node; those of more nodes are ignored.
MAX_CUTS = 4


@dataclass(slots=True)
class DepthSeries:
    """Depth of one log at the end of each slot, with the messages enqueued and dequeued in the slot."""

    depths: list[int]
    enqueued: list[int]
    dequeued: list[int]
    enqueued_bytes: int = 0
    gaps: list[bool] = field(default_factory=list)  #: whether a slot has no data (recording_gaps.py)
    consumers: int | None = None  #: number at the end, if it changed since the first slot

    @property
    def chart_values(self) -> list[int | None]:
        """Return the depths for a chart, with None in slots without data."""
        return [None if gap else depth for depth, gap in zip(self.depths, self.gaps, strict=True)]

    @property
    def message_bytes(self) -> float:
        """Return the average size of enqueued messages; 0 without any."""
        return self.enqueued_bytes / sum(self.enqueued) if self.enqueued_bytes else 0.0


@dataclass(frozen=True, slots=True)
class DepthForecast:
    """Forecast of a depth at the rates of the last slots, in messages/s."""

    depth: int
    enqueue_rate: float
    dequeue_rate: float
    drained_seconds: float | None = None  #: until the queue is empty; None: not at these rates, or no consumers
    full_seconds: float | None = None  #: until the limit is reached; None: not at these rates


def cuts_of(moments: Iterable[tuple[int, int]], most: int = MAX_CUTS) -> list[dict[int, int]]:
    """Arrange times of notes, pairs of slot number and microseconds, as cuts: each cut has one time for a slot.

    `most`: cuts of a slot; the latest times count.
    """
    by_slot: dict[int, set[int]] = {}
    for slot, moment in moments:
        by_slot.setdefault(slot, set()).add(moment)
    cuts: list[dict[int, int]] = []
    for slot, found in by_slot.items():
        for number, moment in enumerate(sorted(found)[-most:]):
            while len(cuts) <= number:
                cuts.append({})
            cuts[number][slot] = moment
    return cuts


@dataclass(slots=True)
class _Log:
    notes: dict[tuple[int, int], int] = field(default_factory=dict)  # depth by slot and part
    flows: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)


def build_series(
    slots: int,
    cuts: list[dict[int, int]],
    notes: Iterable[tuple[Hashable, int, int, int]],
    flows: Iterable[tuple[Hashable, int, int, int, int, int]],
) -> dict[Hashable, DepthSeries]:
    """Reconstruct the depths of each log over a number of slots.

    `notes`: log, slot number, time, depth. `flows`: log, slot number, part of the slot, enqueued, dequeued, bytes.
    A log without notes began empty, or with the least depth that keeps it from becoming negative.
    """
    logs: dict[Hashable, _Log] = {}
    places = {(slot, moment): part + 1 for part, each in enumerate(cuts) for slot, moment in each.items()}
    for name, slot, moment, depth in notes:
        if (slot, moment) in places:
            logs.setdefault(name, _Log()).notes[slot, places[slot, moment]] = depth
    for name, slot, part, came, went, size in flows:
        logs.setdefault(name, _Log()).flows[slot, part] = (came, went, size)
    return {name: _series_of(log, slots, len(cuts) + 1) for name, log in logs.items()}


def _series_of(log: _Log, slots: int, parts: int) -> DepthSeries:
    found = DepthSeries([], [], [])
    depth, lowest, noted = 0, 0, None
    for slot in range(slots):
        came = went = 0
        for part in range(parts):
            if (slot, part) in log.notes:
                depth, noted = log.notes[slot, part], slot if noted is None else noted
            more, less, size = log.flows.get((slot, part), (0, 0, 0))
            depth += more - less
            came, went, found.enqueued_bytes = came + more, went + less, found.enqueued_bytes + size
            if noted is None:
                lowest = min(lowest, depth)
        found.depths.append(depth)
        found.enqueued.append(came)
        found.dequeued.append(went)
    before = slots if noted is None else noted
    # Messages from before the first note show only when they leave.
    found.depths[:before] = [depth - lowest for depth in found.depths[:before]]
    if noted is None:
        return found
    found.depths = [max(0, depth) for depth in found.depths]
    return found


def forecast(course: DepthSeries, seconds: float, last_slots: int, limit: int) -> DepthForecast:
    """Forecast a depth at the rates of the last slots; `limit` in messages, 0 for none."""
    came, went = (sum(each[-last_slots:]) / seconds for each in (course.enqueued, course.dequeued))
    depth, growth = course.depths[-1], came - went
    drained = depth / -growth if depth and growth < 0 and course.consumers != 0 else None
    full = max(0, limit - depth) / growth if limit and growth > 0 else None
    if limit and depth >= limit:
        full = 0.0
    return DepthForecast(depth, came, went, drained, full)
