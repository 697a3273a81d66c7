"""Depths of a window as the record has them: the last note, and what came and went since. Any job's home for them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from analytics.depths import Course, courses, cuts_of
from analytics.jobs.parts import Collect, total
from analytics.question import Question
from analytics.request import Window
from analytics.slots import starts
from analytics.transforms.depths import flows, notes
from analytics.transforms.which import of_destination

HOUR_US = 3_600_000_000
#: The longest slot: notes of all depths are an hour apart.
LONGEST = 3600
#: Frames that are collected.
STEPS = 2

#: A log: its broker and destination.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The course of each log from the beginning of the window's first hour on."""

    slot: int  #: seconds
    begins: list[int]  #: of each slot, seconds since the epoch
    courses: dict[Key, Course]
    rows_read: int


def recorded(question: Question, slot: int, collect: Collect, destination: str = "") -> Recorded:
    """The depths of the window, by slots of at most an hour."""
    slot, window = min(slot, LONGEST), question.window
    # Each hour begins with notes of all depths, so that nothing before it needs to be read.
    whole = Window(window.since_us // HOUR_US * HOUR_US, window.until_us)
    events = of_destination(question.read(whole), destination)
    first, begins = whole.since_us // 1_000_000, starts(whole, slot)
    noted = _numbered(collect("notes of depths", notes(events, slot)), first, slot)
    cuts = cuts_of((number, moment) for _, number, moment, _ in noted)
    changes = collect("what came and went", flows(events, slot, first, cuts))
    return Recorded(slot, begins, courses(len(begins), cuts, noted, _changes(changes)), total(changes, "events"))


def _numbered(rows: pa.Table, first: int, slot: int) -> list[tuple[Key, int, int, int]]:
    return [
        ((each["broker"], each["destination"]), int(each["slot"].timestamp() - first) // slot,
         round(each["ts"].timestamp() * 1e6), each["depth"])
        for each in rows.to_pylist()
    ]  # fmt: skip


def _changes(rows: pa.Table) -> list[tuple[Key, int, int, int, int, int]]:
    return [
        ((each["broker"], each["destination"]),
         *(each[name] for name in ("number", "part", "came", "went", "bytes_came")))
        for each in rows.to_pylist()
    ]  # fmt: skip
