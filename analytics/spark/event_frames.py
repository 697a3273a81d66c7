"""Build Spark frames of the recorded events of time ranges, from the files of the archive and unarchived entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import between
from analytics.archive.event_columns import with_path
from analytics.archive.footer_stats import READ_ERRORS, FooterStats, read_footer
from analytics.archive.trace_stream import TraceStream
from analytics.readers.completeness import Completeness
from analytics.readers.snapshot import ArchiveView, archived_files, events_of, read_snapshot
from analytics.requests.request import TimeWindow
from analytics.spark.event_counts import count_files, count_here
from analytics.tables.definitions import MeasureTable
from analytics.transforms.schemas import EVENTS

#: Events up to which one task is faster than several, with their planning and exchange of data.
TASK_EVENTS = 300_000
#: Files up to which footers are read to find out, once in each process.
MAX_FILES = 500


@dataclass(frozen=True, slots=True)
class _Found:
    """The recorded events of some time ranges at one moment."""

    windows: tuple[TimeWindow, ...]
    paths: list[Path]
    footers: list[FooterStats] | None  #: None: unknown
    tail: pa.Table  #: unarchived events, with the columns of EVENTS

    @property
    def lie_within(self) -> bool:
        """Return whether no file has events outside of the time ranges."""
        return lie_within(self.footers, self.windows)


class EventReader:
    """Reads the archived events of all brokers, and the unarchived ones of one broker.

    `unarchived`: URL of that broker's store, and its name. Each event is included once, even while the archiver moves
    it; hold `read_locks.read_lock` while frames are used. What is read of the same time ranges is the same each time.
    `completeness` collects which files are read and which are not.
    """

    def __init__(
        self,
        session: SparkSession,
        archive: Path,
        unarchived: tuple[str, str] | None = None,
        completeness: Completeness | None = None,
    ) -> None:
        self._session, self._archive = session, archive
        self._unarchived, self._completeness = unarchived, completeness
        self._found: dict[tuple[TimeWindow, ...], _Found] = {}

    def events(self, *windows: TimeWindow) -> DataFrame:
        """Return the events of these time ranges. Raises StoreUnavailable."""
        found, parts = self._find(windows), []
        if found.paths:
            frame = read_files(self._session, self._archive, found.paths)
            parts.append(frame if found.lie_within else frame.where(reduce(or_, map(_within, windows))))
        if found.tail.num_rows or not found.paths:
            parts.append(self._session.createDataFrame(found.tail, EVENTS))
        events = reduce(DataFrame.unionAll, parts)
        return events.coalesce(1) if fit_one_task(found.footers, found.tail.num_rows) else events

    def counts(self, table: MeasureTable, slot_seconds: int, *windows: TimeWindow) -> DataFrame:
        """Count the messages of these time ranges by slot and the keys of a table: rows of it, with `ts` as their slot.

        Several rows may have equal keys. Raises StoreUnavailable.
        """
        found = self._find(windows)
        if fit_one_task(found.footers, found.tail.num_rows):  # a task would take longer to begin than to count them
            return count_here(self._session, found.paths, found.tail, table, slot_seconds, windows)
        of_files = count_files(self._session, found.paths, table, slot_seconds, windows, lie_within=found.lie_within)
        others = count_here(self._session, [], found.tail, table, slot_seconds, windows)
        return of_files.unionAll(others) if found.tail.num_rows else of_files

    def _find(self, windows: tuple[TimeWindow, ...]) -> _Found:
        if windows not in self._found:
            views = _read_snapshots(self._archive, windows, self._unarchived)
            if self._completeness is not None:
                for broker, view in views.items():
                    self._completeness.note(broker, view, windows)
            paths = [file.path for view in views.values() for file in view.files]
            tails = [_unarchived_events(broker, view, windows) for broker, view in views.items()]
            self._found[windows] = _Found(windows, paths, _footers(paths), pa.concat_tables(tails or [_NOTHING]))
        return self._found[windows]


def read_events(
    session: SparkSession, archive: Path, *windows: TimeWindow, unarchived: tuple[str, str] | None = None
) -> DataFrame:
    """Return the events of these time ranges, as EventReader reads them."""
    return EventReader(session, archive, unarchived).events(*windows)


def read_files(session: SparkSession, archive: Path, paths: Sequence[Path]) -> DataFrame:
    """Return the events of these files of the archive."""
    frame = session.read.schema(EVENTS).option("basePath", str(archive)).parquet(*map(str, paths))
    return frame.withColumn("weight", F.coalesce("weight", F.lit(1)))  # files of version 1 have none


def _footers(paths: Sequence[Path]) -> list[FooterStats] | None:
    """Read the footers of these files; None if there are too many, or one is missing."""
    if len(paths) > MAX_FILES:
        return None
    try:
        return [read_footer(path) for path in paths]
    except READ_ERRORS:
        return None


def fit_one_task(footers: Sequence[FooterStats] | None, others: int) -> bool:
    """Return whether one task should read the events of these files (None: unknown) and `others` more."""
    return footers is not None and sum(each.rows for each in footers) + others <= TASK_EVENTS


def lie_within(footers: Sequence[FooterStats] | None, windows: Sequence[TimeWindow]) -> bool:
    """Return whether all events of these files lie within one of the windows, so that no filter is needed.

    Spark compiles the bounds of a filter into the code of a query: without them it can use compiled code again.
    """
    return footers is not None and all(any(each.is_within(window) for window in windows) for each in footers)


def _within(window: TimeWindow) -> Column:
    since, until = (F.timestamp_micros(F.lit(us)) for us in (window.since_us, window.until_us))
    return (F.col("ts") >= since) & (F.col("ts") < until)


def _read_snapshots(
    archive: Path, windows: tuple[TimeWindow, ...], unarchived: tuple[str, str] | None
) -> dict[str, ArchiveView]:
    """Return what each broker has recorded in the windows, by the broker's name."""
    spans = [(each.since_us, each.until_us) for each in windows]
    views = {
        each.broker: archived_files(each, spans)
        for each in BrokerArchive.archives_in(archive)
        if unarchived is None or each.broker != unarchived[1]
    }
    if unarchived is not None:
        url, broker = unarchived
        stream = TraceStream(url, broker)
        try:
            views[broker] = read_snapshot(BrokerArchive(archive, broker), stream, spans)
        finally:
            stream.close()
    return views


def _unarchived_events(broker: str, view: ArchiveView, windows: tuple[TimeWindow, ...]) -> pa.Table:
    """Return the events of these windows that are not archived yet, with the columns of EVENTS."""
    events = events_of(view.tail)
    return with_path(between(events, *((each.since_us, each.until_us) for each in windows)), broker)


_NOTHING = with_path(events_of([]), "")
