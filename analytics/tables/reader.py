"""Find the tables that can be read, and make Spark frames of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.archive.manifest import SetAside
from analytics.readers.completeness import Completeness
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.tables.catalog import TableCatalog, first_recorded_us
from analytics.tables.counts import RecordedCounts, recorded_counts
from analytics.tables.current_hours import CurrentHours, read_current_hours
from analytics.tables.day_manifest import DayManifest
from analytics.tables.definitions import DAILY, DAY_US, HOUR_US, HOURLY, SLOT, TABLES
from analytics.tables.selection import AvailableDay, Selection, select
from analytics.tables.storage import TableStorage


@dataclass(slots=True)
class LevelsRead:
    """Which levels a run read."""

    days: set[int] = field(default_factory=set)
    hours: set[int] = field(default_factory=set)
    raw: set[TimeWindow] = field(default_factory=set)
    first_us: int = 0  #: start of the first recorded hour: there is nothing to read before it

    def to_json(self, window: TimeWindow) -> dict[str, object]:
        """Return plain values for the stored result: number of days, of hours, and seconds of raw events.

        An analysis that asks for no tables reads the events of its time range.
        """
        raw = self.raw if self.days or self.hours or self.raw else {window}
        seconds = sum(max(0, each.until_us - max(each.since_us, self.first_us)) for each in raw) / 1_000_000
        return {"daily": len(self.days), "hourly": len(self.hours), "raw_seconds": round(seconds, 3)}


class TableReader:
    """Reads tables for one run, and notes what was read."""

    def __init__(
        self,
        session: SparkSession,
        storage: TableStorage,
        archive: Path,
        completeness: Completeness | None = None,
        unarchived: str | None = None,
    ) -> None:
        """`unarchived`: name of the broker whose events are read from its stream, too."""
        self._session, self._storage, self._completeness, self._unarchived = session, storage, completeness, unarchived
        self._catalogs = TableCatalog.all_of(storage, archive)
        self._first_us = {each.broker: each.first_us() for each in self._catalogs}
        self._days: dict[tuple[str, int], DayManifest] = {}
        self._current = {
            each.broker: found for each in self._catalogs if (found := read_current_hours(each)) is not None
        }
        self.levels = LevelsRead(first_us=self.first_us() or 0)

    def first_us(self) -> int | None:
        """Return the start of the first hour that is archived or in a table, of all brokers."""
        return min((at for at in self._first_us.values() if at is not None), default=None)

    def first_computed_us(self) -> int | None:
        """Return the start of the first hour with events in a table, of all brokers."""
        return first_recorded_us(self._catalogs)

    def counts(
        self,
        question: RunQuestion,
        windows: Sequence[TimeWindow],
        slot: int,
        hourly_only: bool = False,
    ) -> RecordedCounts:
        """Return the counts of time ranges, from the highest level that has them."""
        chosen = self.choose(windows, slot, hourly_only)
        uncounted = self._uncounted(question.read, chosen, windows)
        current = reduce(DataFrame.unionAll, uncounted) if uncounted else None
        return recorded_counts(question, chosen.raw, slot, current, lambda table: self.frame(table, chosen))

    def choose(self, windows: Sequence[TimeWindow], slot: int, hourly_only: bool = False) -> Selection:
        """Choose the levels to read, and note them."""
        first = self.first_us()
        starts = (
            set()
            if first is None
            else {
                day
                for window in windows
                for day in range(max(window.since_us, first) // DAY_US * DAY_US, window.until_us, DAY_US)
            }
        )
        chosen = select(windows, slot, {day: self._available(day, hourly_only) for day in sorted(starts)}, hourly_only)
        self.levels.days.update(chosen.days)
        self.levels.hours.update(chosen.hours, chosen.current)
        self.levels.raw.update(chosen.raw)
        self._note_completeness(chosen)
        return chosen

    def frame(self, table: str, chosen: Selection) -> DataFrame | None:
        """Return the rows of a table that were chosen, with the start of their slot as `ts`; None without any."""
        parts = [
            frame
            for level, starts in ((DAILY, chosen.days), (HOURLY, (*chosen.hours, *chosen.current)))
            if level in TABLES[table].levels and (frame := self._level(table, level, starts)) is not None
        ]
        parts += self._current_rows(table, chosen.current)
        if not parts:
            return None
        found = reduce(DataFrame.unionByName, parts)
        return found.withColumn("ts", F.col(SLOT)).drop(SLOT) if "ts" not in TABLES[table].values else found

    def _level(self, table: str, level: str, starts: Sequence[int]) -> DataFrame | None:
        days = sorted({each // DAY_US * DAY_US for each in starts})
        names = [
            each.name(day, file)
            for each in self._catalogs
            for day in days
            if (file := self._day(each, day).files.get(level, {}).get(table)) is not None
        ]
        if not names:
            return None
        schema = from_arrow_schema(TABLES[table].schema)
        frame = self._session.read.schema(schema).parquet(*map(self._storage.location, names))
        if level == DAILY or _are_whole_days(starts, days):
            return frame
        seconds = F.unix_seconds(SLOT)
        return frame.where(seconds.isin([each // 1_000_000 for each in starts]))

    def _current_rows(self, table: str, starts: Sequence[int]) -> list[DataFrame]:
        """Return the rows of hours that are counted from the stream."""
        if not starts:
            return []
        schema = from_arrow_schema(TABLES[table].schema)
        found = (
            each.table_rows(table, self._open_hours(broker).keys() & set(starts))
            for broker, each in self._current.items()
        )
        return [self._session.createDataFrame(rows, schema) for rows in found if rows.num_rows]

    def _uncounted(
        self, read: Callable[..., DataFrame], chosen: Selection, windows: Sequence[TimeWindow]
    ) -> list[DataFrame]:
        """Return the events of current hours that are recorded but not counted yet."""
        parts = []
        for broker, each in self._current.items():
            starts = [at for at in self._open_hours(broker).keys() & set(chosen.current) if not each.is_whole(at)]
            rest = [
                TimeWindow(max(at, window.since_us), min(at + HOUR_US, window.until_us))
                for at in sorted(starts)
                for window in windows
                if at < window.until_us and window.since_us < at + HOUR_US
            ]
            if rest:
                parts.append(read(*rest).where((F.col("broker") == broker) & (F.col("entry") > each.position)))
        return parts

    def _open_hours(self, broker: str) -> dict[int, int]:
        """Return the hours of a broker that only the stream has rows of, and where a range with them must end."""
        (catalog,) = (each for each in self._catalogs if each.broker == broker)
        found = self._current[broker]
        days = {start: self._day(catalog, start // DAY_US * DAY_US) for start in found.starts}
        return {start: found.end_us(start) for start, day in days.items() if start % DAY_US // HOUR_US not in day.hours}

    def _available(self, day_us: int, hourly_only: bool) -> AvailableDay:
        """Return what all brokers have of a day; a broker that recorded nothing in it has all of it."""
        hours, is_merged = set(range(24)), True
        counts: dict[int, int] = {}
        for each in self._catalogs:
            first = self._first_us[each.broker]
            if first is None or day_us + DAY_US <= first:
                continue
            day = self._day(each, day_us)
            current = {hour for hour, record in day.hours.items() if each.is_current(day_us + hour * HOUR_US, record)}
            empty = self._empty_hours(each, day_us, day)
            is_merged = is_merged and ((DAILY in day.files and len(current) == 24) or len(empty) == 24)
            counted = self._counted_hours(each.broker, day_us, hourly_only)
            counts |= {hour: max(end, counts.get(hour, 0)) for hour, end in counted.items()}
            hours &= (current if HOURLY in day.files else set()) | empty | counted.keys()
        of_stream = {hour: counts[hour] for hour in hours & counts.keys()}
        return AvailableDay(frozenset(hours - counts.keys()), is_merged, of_stream)

    def _counted_hours(self, broker: str, day_us: int, whole_only: bool) -> dict[int, int]:
        """Return the hours of a day that only the stream has rows of; those without later events, if `whole_only`."""
        found: CurrentHours | None = self._current.get(broker)
        if found is None:
            return {}
        return {
            (start - day_us) // HOUR_US: end
            for start, end in self._open_hours(broker).items()
            if day_us <= start < day_us + DAY_US and (found.is_whole(start) or not whole_only)
        }

    def _empty_hours(self, catalog: TableCatalog, day_us: int, day: DayManifest) -> set[int]:
        """Return the hours of which a broker has no events anywhere, such as those after it was shut down for good."""
        if catalog.broker == self._unarchived:
            return set()
        return {
            hour
            for hour in range(24)
            if hour not in day.hours and not catalog.folder_of(day_us + hour * HOUR_US).is_dir()
        }

    def _day(self, catalog: TableCatalog, day_us: int) -> DayManifest:
        key = (catalog.broker, day_us)
        if key not in self._days:
            self._days[key] = catalog.day(day_us)
        return self._days[key]

    def _note_completeness(self, chosen: Selection) -> None:
        """Note the events that the tables were made from, and the files that could not be read then."""
        if self._completeness is None:
            return
        starts = {*chosen.hours, *(day + hour * HOUR_US for day in chosen.days for hour in range(24))}
        for each in self._catalogs:
            for start in starts:
                record = self._day(each, start // DAY_US * DAY_US).hours.get(start % DAY_US // HOUR_US)
                for aside in record.set_aside if record else ():
                    found = SetAside(**aside)
                    self._completeness.set_aside[f"{each.broker}/{found.path}"] = found


def _are_whole_days(starts: Sequence[int], days: Sequence[int]) -> bool:
    return len(starts) == 24 * len(days)
