"""Read ranges of the event stream by position: the events after one entry and up to another.

An event's position never changes while the archiver moves it from the stream to a file, and one file into another. So a
range that is divided into partitions, by hour and at the seam (snapshot.py), reads the same at any time and in any
process: each partition takes the events of its own positions. Independent of Spark; spark/data_source.py uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US, DataFile, between, position_in, start_us, to_archive_schema
from analytics.archive.manifest import FOREIGN, hours_of, inspect
from analytics.archive.stream_ids import START, id_of, position_of
from analytics.archive.trace_stream import TraceStream
from analytics.readers.snapshot import ArchiveView, archived_files, events_of, read_snapshot
from brokerapp.errors import BrokerError

#: Attempts to open the files of an hour that is being compacted.
_ATTEMPTS = 20
#: Bounds that exclude no event.
FIRST_US, LAST_US = -(1 << 62), 1 << 62


class DataLoss(BrokerError):
    """Events of the requested range were removed or are damaged."""

    code = "data-loss"


@dataclass(frozen=True, slots=True)
class TraceSource:
    """Where a broker's events are. Readers are sent to other processes, so it holds no open connections."""

    archive: Path
    redis_url: str
    broker: str
    since_us: int = FIRST_US
    until_us: int = LAST_US


@dataclass(frozen=True, slots=True)
class TracePartition:
    """The events after and up to these positions, of an hour or ("") of what was unarchived at partitioning."""

    hour: str
    after: int
    upto: int


def end_position(source: TraceSource) -> int:
    """Return the position of the last recorded entry."""
    stream = TraceStream(source.redis_url, source.broker)
    try:
        return max(position_of(stream.last() or START), position_of(_archive(source).commit.offset))
    finally:
        stream.close()


def partitions_of(source: TraceSource, after: int, upto: int) -> list[TracePartition]:
    """Divide the range after a position and up to another into partitions."""
    archive = _archive(source)
    seam = archived_files(archive, []).seam
    cut = []
    if after < seam:
        for hour in hours_of(archive.folder):
            overlaps = start_us(hour) < source.until_us and start_us(hour) + HOUR_US > source.since_us
            if overlaps and any(file.last > after for file in _sound_files(archive, hour, after)):
                cut.append(TracePartition(str(hour.relative_to(archive.folder)), after, min(seam, upto)))
    if upto > seam:
        cut.append(TracePartition("", max(after, seam), upto))
    return cut


def read(source: TraceSource, part: TracePartition) -> Iterator[pa.Table]:
    """Yield the events of a partition, in the schema of files."""
    pieces = _of_hour(source, part) if part.hour else _tail(source, part)
    for events in pieces:
        wanted = between(events, (source.since_us, source.until_us))
        if wanted.num_rows:
            yield wanted


def _of_hour(source: TraceSource, part: TracePartition) -> Iterator[pa.Table]:
    archive = _archive(source)
    list_files = partial(_sound_files, archive, archive.folder / part.hour, part.after)
    for parquet, last in _open_files(list_files, part.after):
        yield from _row_groups(parquet, last, part.after, part.upto)


def _sound_files(archive: BrokerArchive, hour: Path, after: int) -> list[DataFile]:
    """Return the files of an hour. Raises DataLoss if one after the position is missing or damaged."""
    found = inspect(hour, {Path(each).name for each in archive.commit.files})
    for each in found.set_aside:
        if each.reason != FOREIGN and (position_in(each.file) or 0) > after:
            raise DataLoss(f"{each.path} of {archive.broker} cannot be read: {each.reason}, {each.detail}")
    return found.files


def _open_files(list_files: Callable[[], list[DataFile]], after: int) -> list[tuple[pq.ParquetFile, int]]:
    """Open a consistent set of files; once they are open, compaction may replace them."""
    for _ in range(_ATTEMPTS):
        try:
            return [(pq.ParquetFile(each.path), each.last) for each in list_files() if each.last > after]
        except FileNotFoundError:
            continue
    raise DataLoss("an hour that was to be read was removed meanwhile: it was too old")


def _row_groups(parquet: pq.ParquetFile, last: int, after: int, upto: int) -> Iterator[pa.Table]:
    for number, (least, greatest) in enumerate(_row_group_positions(parquet, last)):
        if greatest > after and least <= upto:
            events = to_archive_schema(parquet.read_row_group(number), last)
            yield events if after < least and greatest <= upto else _within(events, after, upto)


def _row_group_positions(parquet: pq.ParquetFile, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last position of each row group."""
    names = parquet.schema_arrow.names
    column = _column_index(parquet, "entry") if "entry" in names else None
    for number in range(parquet.num_row_groups):
        statistics = column is not None and parquet.metadata.row_group(number).column(column).statistics
        yield (statistics.min, statistics.max) if statistics else (last, last)


def _column_index(parquet: pq.ParquetFile, name: str) -> int:
    """Return the index of a column in a file, where maps have two columns."""
    return next(n for n in range(len(parquet.schema)) if parquet.schema.column(n).path == name)


def _within(events: pa.Table, after: int, upto: int) -> pa.Table:
    entry = events["entry"]
    return events.filter(pc.and_(pc.greater(entry, after), pc.less_equal(entry, upto)))


def _tail(source: TraceSource, part: TracePartition) -> Iterator[pa.Table]:
    """Read the events that were not archived when the partitions were made."""
    tail: list[tuple[int, bytes]] = []

    def files() -> list[DataFile]:
        view = _snapshot(source)
        tail[:] = view.tail
        return view.files

    for parquet, last in _open_files(files, part.after):
        yield from _row_groups(parquet, last, part.after, part.upto)
    yield events_of([each for each in tail if part.after < each[0] <= part.upto])


def _snapshot(source: TraceSource) -> ArchiveView:
    stream = TraceStream(source.redis_url, source.broker)
    try:
        view = read_snapshot(_archive(source), stream)
    finally:
        stream.close()
    if view.lost_batches:
        raise DataLoss(f"{view.lost_batches} batches of {source.broker} were trimmed before they were archived")
    return view


def position_after(source: TraceSource, after: int, upto: int, most: int) -> int:
    """Return a position after about `most` events of the range: the end of an entry or of a row group."""
    rows = 0
    for place, events in sorted(_event_counts(source, after, upto)):
        rows += events
        if rows >= most:
            return place
    return upto


def _event_counts(source: TraceSource, after: int, upto: int) -> Iterable[tuple[int, int]]:
    """Yield the positions at which entries and row groups of the range end, with the number of events in each."""
    view = _snapshot(source)
    for parquet, last in _open_files(lambda: view.files, after):
        for number, (_, greatest) in enumerate(_row_group_positions(parquet, last)):
            if after < greatest <= upto:
                yield greatest, parquet.metadata.row_group(number).num_rows
    for place, batch in view.tail:
        if after < place <= upto:
            yield place, events_of([(place, batch)]).num_rows


def require_available(source: TraceSource, after: int) -> None:
    """Raise DataLoss if events after a position were removed; position 0 means whatever exists."""
    if 0 < after < _archive(source).removed_until:
        raise DataLoss(f"what {source.broker} recorded after {id_of(after)} was removed: it was too old")


def _archive(source: TraceSource) -> BrokerArchive:
    return BrokerArchive(source.archive, source.broker)
