"""Silences: when a broker did not run, or recorded nothing, as its depths tell.

A node that runs notes each full hour what holds anything, each minute what changed, and when it starts what it finds
(brokerapp/recording/depths.py). So where messages wait, no hour begins without a note; and a note of everything that
does not come with a full hour is that of a start. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

HOUR = 3600
#: Seconds after a full hour in which its notes come, also from a node that has much else to do.
PROMPT = 60


def begins_a_run(second: float) -> bool:
    """Whether a note of everything at this moment (seconds since the epoch) is that of a node that started."""
    return second % HOUR >= PROMPT


def silent(
    begins: Sequence[int],
    slot: int,
    until: float,
    heard: Collection[int],
    started: Collection[int],
    waiting: Sequence[int],
) -> list[bool]:
    """Whether nothing is known of what waited in each slot, which begins then and takes so many seconds, 3600 at most.

    `until` is when the record ends; `heard` are the numbers of the slots in which any depth was noted, or changed,
    `started` of those in which a node began; `waiting` is how many messages were there at the end of each.
    """
    found = [False] * len(begins)
    for first, last in _stretches(heard, len(begins)):
        hours = (begins[number] + -begins[number] % HOUR for number in range(first, last + 1))
        missed = any(hour < begins[last] + slot and hour + PROMPT <= until for hour in hours)
        # Where nothing waited there was nothing to note.
        if waiting[first] and (missed or last + 1 in started):
            found[first : last + 1] = [True] * (last + 1 - first)
    return found


def _stretches(heard: Collection[int], count: int) -> Iterator[tuple[int, int]]:
    """The first and the last of the slots one after another in which nothing was heard."""
    marks = [-1, *sorted(heard), count]
    for before, after in pairwise(marks):
        if after - before > 1:
            yield before + 1, after - 1
