"""Find times in which a broker did not run or recorded nothing, by the depths that it noted. Pure.

A node notes the depths of all logs that hold messages when it starts, when it stops and at each full hour, and each
minute those that changed; and it notes at its start whether no other node was running (brokerapp/tracing/depths.py). So
while messages wait, each hour has a note of everything, and before the broker started nothing happened. Nodes that
start and stop beside others prove nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

HOUR = 3600
#: Seconds after a full hour within which its notes arrive, even from a busy node.
HOUR_NOTES_SECONDS = 60


@dataclass(frozen=True, slots=True)
class RecordingCoverage:
    """Slots and hours for which the trace of a broker says anything."""

    slots: Collection[int]  #: numbers of the slots in which any depth was noted or changed
    started: Collection[int]  #: numbers of the slots in which the broker started
    hours: Collection[int]  #: starts of the hours with notes of everything, in seconds since the epoch


def find_gaps(
    begins: Sequence[int], slot: int, until: float, coverage: RecordingCoverage, waiting: Sequence[int]
) -> list[bool]:
    """Return for each slot whether its depths are unknown.

    `begins`: starts of the slots; `slot`: their length in seconds, 3600 at most; `until`: the end of the recording;
    `waiting`: the number of messages at the end of each slot.
    """
    found = [False] * len(begins)
    for first, last in _silent_ranges(coverage.slots, len(begins)):
        hours = {begins[number] + -begins[number] % HOUR for number in range(first, last + 1)} - set(coverage.hours)
        missed = any(hour < begins[last] + slot and hour + HOUR_NOTES_SECONDS <= until for hour in hours)
        # An empty broker has nothing to note.
        if waiting[first] and (missed or last + 1 in coverage.started):
            found[first : last + 1] = [True] * (last + 1 - first)
    return found


def _silent_ranges(heard: Collection[int], count: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last slot of each range of slots without data."""
    marks = [-1, *sorted(heard), count]
    for before, after in pairwise(marks):
        if after - before > 1:
            yield before + 1, after - 1
