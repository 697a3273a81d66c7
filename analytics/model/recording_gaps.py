"""Silences: when a broker did not run, or recorded nothing, as its depths tell.

A node notes what holds anything when it begins, when it stops and at each full hour, and each minute what changed; and
it says when no other ran as it began (brokerapp/tracing/depths.py). So where messages wait, no hour is without a note
of everything, and before the broker began nothing was. Of nodes that come and go beside others nothing follows. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

HOUR = 3600
#: Seconds after a full hour in which its notes come, also from a node that has much else to do.
PROMPT = 60


@dataclass(frozen=True, slots=True)
class RecordingCoverage:
    """Slots and hours for which the trace of a broker says anything."""

    slots: Collection[int]  #: the numbers of those in which any depth was noted, or changed
    started: Collection[int]  #: of those in which the broker began
    hours: Collection[int]  #: when those began, in seconds since the epoch, that have notes of everything


def find_gaps(
    begins: Sequence[int], slot: int, until: float, heard: RecordingCoverage, waiting: Sequence[int]
) -> list[bool]:
    """Whether nothing is known of what waited in each slot, which begins then and takes so many seconds, 3600 at most.

    `until` is when the record ends; `waiting` is how many messages were there at the end of each slot.
    """
    found = [False] * len(begins)
    for first, last in _stretches(heard.slots, len(begins)):
        hours = {begins[number] + -begins[number] % HOUR for number in range(first, last + 1)} - set(heard.hours)
        missed = any(hour < begins[last] + slot and hour + PROMPT <= until for hour in hours)
        # Where nothing waited there was nothing to note.
        if waiting[first] and (missed or last + 1 in heard.started):
            found[first : last + 1] = [True] * (last + 1 - first)
    return found


def _stretches(heard: Collection[int], count: int) -> Iterator[tuple[int, int]]:
    """The first and the last of the slots one after another in which nothing was heard."""
    marks = [-1, *sorted(heard), count]
    for before, after in pairwise(marks):
        if after - before > 1:
            yield before + 1, after - 1
