"""The data source `sluice`: all recorded traffic of a broker as one table, for any Spark job or notebook.

    from analytics.spark.data_source import SluiceSource
    spark.dataSource.register(SluiceSource)
    events = spark.read.format("sluice").load()                      # archive and what is not archived yet
    stream = spark.readStream.format("sluice").load()                # on from a place in the stream of events

Options: `archive`, `redis`, `broker` (default: as the environment of the installation says); `since`, `until` (ISO
8601, UTC; bounds on `ts` in a query become these by themselves); of streams `startingOffsets` (`earliest`, `latest` or
an entry's id, default `earliest`) and `maxEventsPerTrigger`.

Spark itself reads Parquet some times faster than Python hands it rows: who needs no more than what is archived reads
the files. Planning runs in one process, reading in others: what is read is named by places in the stream
(stream_ids.py),
so that it stays the same while the archiver moves it.
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
    """Microseconds since the epoch; without a zone it is in the process's own, as Spark has it."""
    return round(moment.timestamp() * 1_000_000)


@dataclass
class ArchivePartition(InputPartition):
    """A part of a stretch, read by one task."""

    part: TracePartition


class _BaseReader:
    """The part of a reader that batch and streaming queries share: reading one partition."""

    _source: TraceSource

    def read(self, partition: ArchivePartition) -> Iterator[pa.RecordBatch]:
        """Return the events of a part."""
        for events in stream_ranges.read(self._source, partition.part):
            yield from with_path(events, self._source.broker).combine_chunks().to_batches()


class TraceReaderBatch(_BaseReader, DataSourceReader):
    """All there is when the query is planned."""

    def __init__(self, source: TraceSource) -> None:
        self._source = source

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Look only where the bounds on `ts` allow; Spark still applies them."""
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
        """Return an hour a task, and one for what is not archived."""
        return [
            ArchivePartition(part)
            for part in stream_ranges.partitions_of(self._source, 0, stream_ranges.end_of(self._source))
        ]


class TraceReaderStream(_BaseReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """On from an offset, `{"entry": id}`: the last entry of the stream that was read."""

    def __init__(self, source: TraceSource, start: str, most: int) -> None:
        self._source, self._start, self._most = source, start, most
        self._target: int | None = None

    def initialOffset(self) -> dict:
        """Return the offset at which a new query starts."""
        if self._start == "latest":
            return _offset(stream_ranges.end_of(self._source))
        return _offset(0) if self._start == "earliest" else _offset(position_of(self._start))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit given by `maxEventsPerTrigger`."""
        return ReadMaxRows(self._most) if self._most else ReadAllAvailable()

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:
        """Up to where the next batch goes."""
        after = position_of(start["entry"])
        end = stream_ranges.end_of(self._source) if self._target is None else self._target
        if end <= after:
            return start
        if isinstance(limit, ReadMaxRows):
            end = stream_ranges.position_after(self._source, after, end, limit.max_rows)
        return _offset(end)

    def reportLatestOffset(self) -> dict:
        """Up to where there is anything."""
        return _offset(stream_ranges.end_of(self._source))

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what is there now, and nothing that comes later."""
        self._target = stream_ranges.end_of(self._source)

    def partitions(self, start: dict, end: dict) -> list[ArchivePartition]:
        """Return the parts of a batch. Raises DataLoss."""
        after, upto = position_of(start["entry"]), position_of(end["entry"])
        stream_ranges.require_available(self._source, after)
        return (
            [ArchivePartition(part) for part in stream_ranges.partitions_of(self._source, after, upto)]
            if after < upto
            else []
        )

    def commit(self, end: dict) -> None:
        """Nothing: the archiver trims the stream, and what it trims is archived."""


def _offset(place: int) -> dict:
    return {"entry": id_of(place)}
