"""Provide the data source `sluice`: all recorded traffic of a broker as one table, for any Spark job or notebook.

    from analytics.spark.data_source import SluiceSource
    spark.dataSource.register(SluiceSource)
    events = spark.read.format("sluice").load()                      # archived and unarchived events
    stream = spark.readStream.format("sluice").load()                # from a position in the stream of events on

Options: `archive`, `redis`, `broker` (default: those of the installation's environment); `since`, `until` (ISO 8601,
UTC; bounds on `ts` in a query are pushed down to these); of streams `startingOffsets` (`earliest`, `latest` or an
entry's id, default `earliest`) and `maxEventsPerTrigger`.

Spark reads Parquet files several times faster than rows from Python: for archived events only, read the files. Planning
runs in one process and reading in others, so partitions are positions in the stream (stream_ids.py), which stay valid
while the archiver moves events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from analytics.archive.event_columns import with_path
from analytics.archive.stream_ids import id_of, position_of
from analytics.readers import stream_ranges
from analytics.readers.stream_ranges import TracePartition, TraceSource
from analytics.transforms.schemas import EVENTS
from brokerapp.errors import RequestRefused
from brokerapp.system.environment import Environment

OPTIONS = ("archive", "redis", "broker", "since", "until", "startingoffsets", "maxeventspertrigger", "path")


class SluiceSource(DataSource):
    """Recorded traffic of one broker, with the columns of docs/data.md."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "sluice"

    def schema(self) -> StructType:
        """Return the schema of recorded events."""
        return EVENTS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        return TraceReaderBatch(source_of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader for `spark.readStream`."""
        return TraceReaderStream(
            source_of(self.options),
            self.options.get("startingOffsets", "earliest"),
            int(self.options.get("maxEventsPerTrigger", 0)),
        )


def source_of(options: dict[str, str]) -> TraceSource:
    """Read the source from options. Raises RequestRefused."""
    if unknown := [name for name in options if name.lower() not in OPTIONS]:
        raise RequestRefused(f"the data source sluice has no option {unknown[0]!r}: it has {', '.join(OPTIONS)}")
    environment = Environment.read()
    source = TraceSource(
        Path(options.get("archive") or environment.archive),
        options.get("redis") or environment.redis_url,
        options.get("broker") or environment.broker_name,
    )
    if since := options.get("since"):
        source = replace(source, since_us=_moment(since))
    if until := options.get("until"):
        source = replace(source, until_us=_moment(until))
    return source


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RequestRefused(
            f"{text!r} is not a date and time: expected ISO 8601, such as 2025-10-09T08:00:00"
        ) from error
    return _micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _micros(moment: datetime) -> int:
    """Convert a time to microseconds since the epoch; without a zone it is in that of the process, as in Spark."""
    return round(moment.timestamp() * 1_000_000)


@dataclass
class ArchivePartition(InputPartition):
    """A partition of events, read by one task."""

    part: TracePartition


class _BaseReader:
    """The part of a reader that batch and streaming queries share: reading one partition."""

    _source: TraceSource

    def read(self, partition: ArchivePartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of a partition."""
        for events in stream_ranges.read(self._source, partition.part):
            yield from with_path(events, self._source.broker).combine_chunks().to_batches()


class TraceReaderBatch(_BaseReader, DataSourceReader):
    """Reads all events that exist when the query is planned."""

    def __init__(self, source: TraceSource) -> None:
        self._source = source

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Restrict the time range to bounds on `ts`; Spark still applies them."""
        for each in filters:
            if getattr(each, "attribute", None) == ("ts",) and isinstance(getattr(each, "value", None), datetime):
                self._bound(each, _micros(each.value))
            yield each

    def _bound(self, filter: Filter, us: int) -> None:
        if isinstance(filter, (GreaterThan, GreaterThanOrEqual, EqualTo)):
            self._source = replace(self._source, since_us=max(self._source.since_us, us))
        if isinstance(filter, (LessThan, LessThanOrEqual, EqualTo)):
            self._source = replace(self._source, until_us=min(self._source.until_us, us + 1))

    def partitions(self) -> list[ArchivePartition]:
        """Return a partition for each hour of the archive, and one for unarchived events."""
        return [
            ArchivePartition(part)
            for part in stream_ranges.partitions_of(self._source, 0, stream_ranges.end_position(self._source))
        ]


class TraceReaderStream(_BaseReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads events after an offset, `{"entry": id}`: the last entry of the stream that was read."""

    def __init__(self, source: TraceSource, start: str, most: int) -> None:
        self._source, self._start, self._most = source, start, most
        self._target: int | None = None

    def initialOffset(self) -> dict:
        """Return the offset at which a new query starts."""
        if self._start == "latest":
            return _offset(stream_ranges.end_position(self._source))
        return _offset(0) if self._start == "earliest" else _offset(position_of(self._start))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit given by `maxEventsPerTrigger`."""
        return ReadMaxRows(self._most) if self._most else ReadAllAvailable()

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:
        """Return the offset at which the next batch ends."""
        after = position_of(start["entry"])
        end = stream_ranges.end_position(self._source) if self._target is None else self._target
        if end <= after:
            return start
        if isinstance(limit, ReadMaxRows):
            end = stream_ranges.position_after(self._source, after, end, limit.max_rows)
        return _offset(end)

    def reportLatestOffset(self) -> dict:
        """Return the offset of the last recorded entry."""
        return _offset(stream_ranges.end_position(self._source))

    def prepareForTriggerAvailableNow(self) -> None:
        """Restrict the query to the events that exist now."""
        self._target = stream_ranges.end_position(self._source)

    def partitions(self, start: dict, end: dict) -> list[ArchivePartition]:
        """Return the partitions of a batch. Raises DataLoss."""
        after, upto = position_of(start["entry"]), position_of(end["entry"])
        stream_ranges.require_available(self._source, after)
        return (
            [ArchivePartition(part) for part in stream_ranges.partitions_of(self._source, after, upto)]
            if after < upto
            else []
        )

    def commit(self, end: dict) -> None:
        """Do nothing: the archiver trims the stream, after it has archived the entries."""


def _offset(place: int) -> dict:
    return {"entry": id_of(place)}
