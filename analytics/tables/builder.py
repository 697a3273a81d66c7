"""Compute the tables of hours that are complete, a batch at a time, and publish each day atomically.

A day's new files get names that no file had before; then the manifest of the day is replaced, from which readers take
the names. A process killed before leaves files that no manifest names, which are deleted later; one killed after has
published. Hours that were published are not computed again, so that a build continues where the last one was killed.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.archive import manifest as archive_manifest
from analytics.tables.catalog import HourSource, TableCatalog
from analytics.tables.day_manifest import NAME, DayManifest
from analytics.tables.definitions import DAILY, DAY_US, HOUR_US, HOURLY, TABLES, VERSION, MeasureTable
from analytics.tables.merging import to_days, without_hours
from analytics.tables.status import hourly_since_us
from analytics.tables.storage import FolderStorage
from brokerapp.system.environment import Environment

#: Events that one batch reads at most, unless an hour has more: the rows of a batch are in memory.
BATCH_EVENTS = 4_000_000
#: Hours of a batch at most, a week: more would not save much, and what a killed build loses is a batch.
BATCH_HOURS = 168
#: Events for which a build is worth its start, and microseconds for which fewer may wait: a query of Spark costs as
#: much as counting hundreds of thousands of events.
WORTHWHILE_EVENTS, LONGEST_WAIT_US = 500_000, 6 * HOUR_US
#: Microseconds for which replaced files stay for readers that know their names: the longest run of an analysis.
REPLACED_KEPT_US = 2 * HOUR_US

#: Computes the rows of all tables from the events of some hours of a broker.
RowsOfHours = Callable[[TableCatalog, Sequence[HourSource]], dict[str, pa.Table]]


def _ignore_step(step: str) -> None:
    """Do nothing at a step of a build; tests pass a function that ends the process there."""


class UnreadableSource(Exception):
    """A file of the archive cannot be read."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did."""

    hours: int = 0
    events: int = 0
    is_done: bool = True  #: whether nothing is left to do


class TableBuilder:
    """Builds the tables of one broker."""

    def __init__(self, catalog: TableCatalog, rows_of: RowsOfHours, at: Callable[[str], None] = _ignore_step) -> None:
        self._catalog, self._rows_of, self._on_step = catalog, rows_of, at

    def build(self, now_us: int, since_us: int = 0, deadline: float = float("inf")) -> BuildResult:
        """Compute the pending hours from `since_us` on, in batches, until a time of the monotonic clock.

        The caller holds the read lock of the archive.
        """
        hours = events = 0
        for batch in _batches(self._catalog.pending(now_us, since_us)):
            if time.monotonic() > deadline:
                return BuildResult(hours, events, is_done=False)
            hours, events = hours + len(batch), events + self._publish(batch, now_us)
        self._catalog.store_merged()
        return BuildResult(hours, events)

    def _publish(self, batch: Sequence[HourSource], now_us: int) -> int:
        """Compute some hours and publish their days; return the number of events."""
        try:
            rows = self._rows_of(self._catalog, batch)
        except UnreadableSource:
            for each in batch:
                archive_manifest.verify(each.folder)
            batch = [self._catalog.source(each.start_us) for each in batch]  # without the damaged files
            rows = self._rows_of(self._catalog, batch)
        self._on_step("computed")
        for day_us in sorted({each.start_us // DAY_US * DAY_US for each in batch}):
            of_day = [each for each in batch if each.start_us // DAY_US * DAY_US == day_us]
            self._publish_day(day_us, of_day, rows, now_us)
        return sum(each.rows for each in batch)

    def _publish_day(self, day_us: int, hours: Sequence[HourSource], rows: dict[str, pa.Table], now_us: int) -> None:
        """Store the rows of these hours with those of the day's other hours."""
        before, build = self._catalog.day(day_us), f"{time.time_ns()}-{os.getpid()}"
        computed = {
            (each.start_us - day_us) // HOUR_US: replace(each.record, computed_us=now_us, version=VERSION)
            for each in hours
        }
        day = DayManifest({**before.hours, **computed})
        starts = {each.start_us for each in hours}
        files: dict[str, dict[str, str]] = {HOURLY: {}, **({DAILY: {}} if day.is_complete else {})}
        size = 0
        for table in TABLES.values():
            hourly = _of_hours(table, rows[table.name], starts)
            if (old := before.files.get(HOURLY, {}).get(table.name)) is not None:
                hourly = pa.concat_tables([without_hours(self._read(day_us, old), starts), hourly])
            levels = {HOURLY: hourly}
            if day.is_complete and table.is_daily:
                levels[DAILY] = to_days(table, hourly)
            for level, found in levels.items():
                if not found.num_rows:
                    continue
                files[level][table.name] = f"{level}-{table.name}-{build}.parquet"
                size += self._write(day_us, files[level][table.name], found)
                self._on_step("written")
        self._on_step("before-publish")
        self._catalog.replace_day(day_us, replace(day, files=files, bytes=size))
        self._on_step("published")
        self.delete_replaced(day_us, now_us)

    def _read(self, day_us: int, file: str) -> pa.Table:
        return pq.read_table(io.BytesIO(self._catalog.storage.read(self._catalog.name(day_us, file))))

    def _write(self, day_us: int, file: str, rows: pa.Table) -> int:
        target = io.BytesIO()
        pq.write_table(rows, target, compression="zstd")
        self._catalog.storage.replace(self._catalog.name(day_us, file), target.getvalue())
        return target.tell()

    def delete_replaced(self, day_us: int, now_us: int) -> None:
        """Delete the files of a day that its manifest has not named for a while."""
        day, storage = self._catalog.day(day_us), self._catalog.storage
        current = {file for level in day.files.values() for file in level.values()}
        for file in storage.names(self._catalog.name(day_us, "").rstrip("/")):
            if file != NAME and file not in current and _built_us(file) < now_us - REPLACED_KEPT_US:
                storage.delete(self._catalog.name(day_us, file))

    def delete_expired(self, now_us: int, hourly_days: float, daily_days: float) -> int:
        """Delete levels of days past their retention (0: unlimited); return how many days changed."""
        changed = 0
        for day_us in self._catalog.days():
            age = (now_us - day_us - DAY_US) / DAY_US
            day = self._catalog.day(day_us)
            over = {
                level
                for level, days in ((HOURLY, hourly_days), (DAILY, daily_days))
                if days and age > days and level in day.files
            }
            if not over:
                continue
            changed += 1
            left = {level: files for level, files in day.files.items() if level not in over}
            if left:
                self._catalog.replace_day(day_us, replace(day, files=left, bytes=self._size(day_us, left)))
            else:
                self._delete_day(day_us)
        return changed

    def _size(self, day_us: int, files: dict) -> int:
        names = (file for level in files.values() for file in level.values())
        return sum(len(self._catalog.storage.read(self._catalog.name(day_us, file))) for file in names)

    def _delete_day(self, day_us: int) -> None:
        """Delete a day, its manifest first: readers no longer choose it then."""
        storage, folder = self._catalog.storage, self._catalog.name(day_us, "").rstrip("/")
        storage.delete(f"{folder}/{NAME}")
        for file in storage.names(folder):
            storage.delete(f"{folder}/{file}")


def is_worthwhile(pending: Iterable[HourSource], now_us: int) -> bool:
    """Return whether so much is pending, or for so long, that Spark should compute it."""
    events = 0
    for each in pending:
        events += each.rows
        if events >= WORTHWHILE_EVENTS or (each.start_us + HOUR_US < now_us - LONGEST_WAIT_US):
            return True
    return False


def has_work(environment: Environment) -> bool:
    """Return whether so much is pending that Spark should compute it, or something is past its retention."""
    storage, now_us = FolderStorage(environment.tables), time.time_ns() // 1000
    since_us = hourly_since_us(now_us, environment.hourly_table_days)
    for catalog in TableCatalog.all_of(storage, environment.archive):
        if is_worthwhile(catalog.pending(now_us, since_us), now_us):
            return True
        days = catalog.days()[:1]
        if days and days[0] < since_us and HOURLY in catalog.day(days[0]).files:
            return True
    return False


def _batches(pending: Iterator[HourSource]) -> Iterator[list[HourSource]]:
    batch: list[HourSource] = []
    for each in pending:
        if batch and (len(batch) == BATCH_HOURS or sum(one.rows for one in batch) + each.rows > BATCH_EVENTS):
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


def _of_hours(table: MeasureTable, rows: pa.Table, starts: set[int]) -> pa.Table:
    wanted = pa.array(sorted(starts), pa.int64())
    return rows.filter(pa.compute.is_in(rows["slot"].cast(pa.int64()), wanted)).cast(table.schema)


def _built_us(file: str) -> int:
    """Return when a file was built, from its name; 0 for a foreign file."""
    stamp = file.removesuffix(".parquet").split("-")
    return int(stamp[-2]) // 1000 if len(stamp) > 2 and stamp[-2].isdecimal() else 0
