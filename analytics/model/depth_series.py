"""Depths over time, put together from what brokers noted of them and what came and went since.

A note says where a log stands just before a moment. From there on its depth changes by what comes and goes, until the
next note corrects whatever was not recorded. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

#: Moments of notes in one slot that flows are cut at: one of each node; those of more nodes are left out.
MAX_CUTS = 4


@dataclass(slots=True)
class DepthSeries:
    """Depth of one log at the end of each slot, with the messages that came and went in the slot."""

    depths: list[int]
    came: list[int]
    went: list[int]
    bytes_came: int = 0
    silent: list[bool] = field(default_factory=list)  #: whether nothing is known of a slot (recording_gaps.py)
    consumers: int | None = None  #: at the end, where it changed since the first slot

    @property
    def drawn(self) -> list[int | None]:
        """The depths as a chart has them: with gaps where nothing is known."""
        return [None if gap else depth for depth, gap in zip(self.depths, self.silent, strict=True)]

    @property
    def message_bytes(self) -> float:
        """Return the average size of enqueued messages; 0 without any."""
        return self.bytes_came / sum(self.came) if self.bytes_came else 0.0


@dataclass(frozen=True, slots=True)
class DepthForecast:
    """Where a depth is going, at the rates of the last slots (messages a second)."""

    depth: int
    came: float
    went: float
    drained_seconds: float | None = None  #: until nothing waits; None: not at these rates, or nobody consumes
    full_seconds: float | None = None  #: until the limit is reached; None: not at these rates


def cuts_of(moments: Iterable[tuple[int, int]]) -> list[dict[int, int]]:
    """Moments of notes, as pairs of the slot's number and microseconds, as cuts: each has one of a slot, in order."""
    by_slot: dict[int, set[int]] = {}
    for slot, moment in moments:
        by_slot.setdefault(slot, set()).add(moment)
    cuts: list[dict[int, int]] = []
    for slot, found in by_slot.items():
        for number, moment in enumerate(sorted(found)[-MAX_CUTS:]):
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
    """Return the course of each log over so many slots.

    `notes`: log, number of the slot, moment, depth. `flows`: log, number of the slot, part of it, came, went, bytes.
    A log that nobody noted began with nothing, or with the least that keeps its depth from falling below nothing.
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
            came, went, found.bytes_came = came + more, went + less, found.bytes_came + size
            if noted is None:
                lowest = min(lowest, depth)
        found.depths.append(depth)
        found.came.append(came)
        found.went.append(went)
    before = slots if noted is None else noted
    # What was there before the first note shows only when it leaves.
    found.depths[:before] = [depth - lowest for depth in found.depths[:before]]
    if noted is None:
        return found
    found.depths = [max(0, depth) for depth in found.depths]
    return found


def forecast(course: DepthSeries, seconds: float, last_slots: int, limit: int) -> DepthForecast:
    """Forecast a depth at the rates of the last slots; `limit` in messages, 0 for none."""
    came, went = (sum(each[-last_slots:]) / seconds for each in (course.came, course.went))
    depth, growth = course.depths[-1], came - went
    drained = depth / -growth if depth and growth < 0 and course.consumers != 0 else None
    full = max(0, limit - depth) / growth if limit and growth > 0 else None
    if limit and depth >= limit:
        full = 0.0
    return DepthForecast(depth, came, went, drained, full)
