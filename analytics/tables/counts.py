"""Read counts of a time range by Spark, from tables and raw events together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.requests.request import TimeWindow
from analytics.tables.definitions import (
    DEAD_LETTERS,
    DEPTH_FLOWS,
    DEPTH_NOTES,
    LATENCY,
    SLOT,
    MeasureTable,
)
from analytics.tables.selection import table_slot_seconds
from analytics.transforms.aggregates import slot as slot_of
from analytics.transforms.depth_changes import flows, notes
from analytics.transforms.failure_causes import causes
from analytics.transforms.latency import ack_counts
from analytics.transforms.traffic import message_counts

if TYPE_CHECKING:
    from analytics.requests.question import RunQuestion

#: The slot, in seconds, of counts over a time range as a whole, which daily rows may have.
WHOLE_DAYS = 86_400
_FILTER = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class RecordedCounts:
    """The counts of time ranges: raw events where tables do not reach, and frames of the tables elsewhere."""

    raw: Callable[[], DataFrame | None]  #: raw events where there are no tables; None: tables have everything
    counted: Callable[[MeasureTable], DataFrame | None] | None  #: their messages as rows of a table; None: count `raw`
    current: DataFrame | None = None  #: events of current hours that the hours' rows do not include yet
    tables: Callable[[str], DataFrame | None] = lambda _: None  #: rows of a table, or None
    filters: tuple[_FILTER, ...] = field(default=())

    def where(self, choose: _FILTER) -> RecordedCounts:
        """Return the counts of the events that a filter on the keys chooses, from raw events and tables alike."""
        return replace(self, filters=(*self.filters, choose))

    def messages(self, table: MeasureTable, *keys: Column | str) -> DataFrame:
        """Count messages by these keys and their kind, as `by_kind`; several rows may have equal keys.

        Keys may refer to `ts`.
        """
        found = [self.tables(table.name)]
        events = [self.current]
        if self.counted is None:
            events.append(self.raw())
        else:
            found.append(self.counted(table))
        return self._union(table, (*keys, "kind"), lambda each: message_counts(each, *keys), events, found)

    def acks(self, *keys: Column | str) -> DataFrame:
        """Count acks by these keys and the bucket of their latency; several rows may have equal keys."""
        events, rows = [self.raw(), self.current], [self.tables(LATENCY.name)]
        return self._union(LATENCY, (*keys, "bucket"), lambda each: ack_counts(each, *keys), events, rows)

    def causes(self, slot_seconds: int) -> DataFrame:
        """Return schemas.CAUSES, of which several rows may have equal keys."""
        events, rows = self._frames(DEAD_LETTERS)
        parts = [] if events is None else [causes(events, slot_seconds)]
        if rows is not None:
            at = slot_of(slot_seconds).alias(SLOT)
            parts.append(rows.select(*DEAD_LETTERS.keys, at, *DEAD_LETTERS.values))
        return reduce(DataFrame.unionByName, parts)

    def depth_notes(self, slot_seconds: int) -> DataFrame:
        """Return schemas.DEPTH_NOTES, with the `part` of flows that begins with a note of a table; else null.

        Tables do not have `first`: it is null then.
        """
        events, rows = self._frames(DEPTH_NOTES)
        parts = [] if events is None else [notes(events, slot_seconds).withColumn("part", F.lit(None).cast("long"))]
        parts += [] if rows is None else [rows.withColumn("first", F.lit(None).cast("timestamp"))]
        return reduce(DataFrame.unionByName, parts)

    def depth_flows(self, slot_seconds: int, first: int, cuts: Sequence[Mapping[int, int]]) -> DataFrame:
        """Return schemas.DEPTH_FLOWS; the cuts are those of raw events."""
        events, rows = self._frames(DEPTH_FLOWS)
        parts = [] if events is None else [flows(events, slot_seconds, first, cuts)]
        if rows is not None:
            number = ((F.unix_seconds("ts") - F.lit(first)) / slot_seconds).cast("int").alias("number")
            part = F.col("part").cast("int").alias("part")
            parts.append(rows.select("broker", "destination", number, part, *DEPTH_FLOWS.values))
        return reduce(DataFrame.unionByName, parts)

    def _union(
        self,
        table: MeasureTable,
        keys: tuple,
        count: Callable[[DataFrame], DataFrame],
        events: Sequence[DataFrame | None],
        rows: Sequence[DataFrame | None],
    ) -> DataFrame:
        """Count the events, and return that with the rows of the table. Several rows may have equal keys."""
        chosen_events, chosen_rows = self._chosen(events), self._chosen(rows)
        parts = [] if chosen_events is None else [count(chosen_events)]
        if chosen_rows is not None:
            parts.append(chosen_rows.select(*keys, *table.values))
        return reduce(DataFrame.unionByName, parts)

    def _frames(self, table: MeasureTable) -> tuple[DataFrame | None, DataFrame | None]:
        """Return raw events and rows of the table, filtered. Rows have the start of their slot as `ts`."""
        return self._chosen([self.raw(), self.current]), self._chosen([self.tables(table.name)])

    def _chosen(self, frames: Sequence[DataFrame | None]) -> DataFrame | None:
        """Return what the filters choose of some frames with the same columns; None without any."""
        there = [each for each in frames if each is not None]
        if not there:
            return None
        return reduce(lambda found, choose: choose(found), self.filters, reduce(DataFrame.unionByName, there))


def read_counts(question: RunQuestion, slot: int, *windows: TimeWindow, hourly_only: bool = False) -> RecordedCounts:
    """Return the counts of the question's time range, or of other ones, by slots of so many seconds."""
    windows = windows or (question.window,)
    if question.tables is None:
        return recorded_counts(question, windows, slot)
    return question.tables.counts(question, windows, slot, hourly_only)


def recorded_counts(
    question: RunQuestion,
    windows: Sequence[TimeWindow],
    slot: int,
    current: DataFrame | None = None,
    tables: Callable[[str], DataFrame | None] = lambda _: None,
) -> RecordedCounts:
    """Return counts of which these time ranges are counted from raw events. Both are read when they are needed."""
    count = question.count

    def raw() -> DataFrame | None:
        return question.read(*windows) if windows else None

    def counted(table: MeasureTable) -> DataFrame | None:
        return count(table, slot, *windows) if windows and count is not None else None

    return RecordedCounts(cache(raw), None if count is None else counted, current, tables)


def chart_slot(question: RunQuestion, slot: int) -> int:
    """Return the slot of a chart over the question's time range, which tables can have."""
    return table_slot_seconds(question.covered, slot)
