"""Stretches of the stream of events, by place: what was recorded after one entry and up to another, read at any time.

An event's place never changes while the archiver moves it from the stream to a file, and one file into another. So a
stretch that is cut into parts, by hour and at the seam (snapshot.py), reads the same whenever, and wherever, its
parts are
read: each takes what it finds of its own places. Pure of Spark; spark_source.py makes a table of it.
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

#: Looks at an hour that is being compacted.
_LOOKS = 20
#: No moment is earlier, or later.
FIRST_US, LAST_US = -(1 << 62), 1 << 62


class DataLoss(BrokerError):
    """Events that were to be read are gone."""

    code = "data-loss"


@dataclass(frozen=True, slots=True)
class TraceSource:
    """Where a broker's events are. What reads them is sent to other processes, so it holds nothing open."""

    archive: Path
    redis_url: str
    broker: str
    since_us: int = FIRST_US
    until_us: int = LAST_US


@dataclass(frozen=True, slots=True)
class TracePartition:
    """Of an hour, or ("") of what was not archived when the parts were cut: the events after and up to these places."""

    hour: str
    after: int
    upto: int


def end_of(source: TraceSource) -> int:
    """The place of the last entry that there is."""
    stream = TraceStream(source.redis_url, source.broker)
    try:
        return max(position_of(stream.last() or START), position_of(_archive(source).commit.offset))
    finally:
        stream.close()


def partitions_of(source: TraceSource, after: int, upto: int) -> list[TracePartition]:
    """Return the stretch after a place and up to another, in parts."""
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
    """Return the events of a part, as files have them."""
    pieces = _of_hour(source, part) if part.hour else _tail(source, part)
    for events in pieces:
        wanted = between(events, (source.since_us, source.until_us))
        if wanted.num_rows:
            yield wanted


def _of_hour(source: TraceSource, part: TracePartition) -> Iterator[pa.Table]:
    archive = _archive(source)
    list_files = partial(_sound_files, archive, archive.folder / part.hour, part.after)
    for parquet, last in _opened(list_files, part.after):
        yield from _row_groups(parquet, last, part.after, part.upto)


def _sound_files(archive: BrokerArchive, hour: Path, after: int) -> list[DataFile]:
    """Return the files of an hour. Raises DataLoss when one that follows a place is missing or damaged."""
    found = inspect(hour, {Path(each).name for each in archive.commit.files})
    for each in found.aside:
        if each.reason != FOREIGN and (position_in(each.file) or 0) > after:
            raise DataLoss(f"{each.path} of {archive.broker} cannot be read: {each.reason}, {each.detail}")
    return found.files


def _opened(list_files: Callable[[], list[DataFile]], after: int) -> list[tuple[pq.ParquetFile, int]]:
    """Files of one moment: once they are open it does not matter that others take their place."""
    for _ in range(_LOOKS):
        try:
            return [(pq.ParquetFile(each.path), each.last) for each in list_files() if each.last > after]
        except FileNotFoundError:
            continue
    raise DataLoss("an hour that was to be read was removed meanwhile: it was too old")


def _row_groups(parquet: pq.ParquetFile, last: int, after: int, upto: int) -> Iterator[pa.Table]:
    for number, (least, greatest) in enumerate(_places(parquet, last)):
        if greatest > after and least <= upto:
            events = to_archive_schema(parquet.read_row_group(number), last)
            yield events if after < least and greatest <= upto else _within(events, after, upto)


def _places(parquet: pq.ParquetFile, last: int) -> Iterator[tuple[int, int]]:
    """Return the first and the last place of each row group."""
    names = parquet.schema_arrow.names
    column = _leaf(parquet, "entry") if "entry" in names else None
    for number in range(parquet.num_row_groups):
        statistics = column is not None and parquet.metadata.row_group(number).column(column).statistics
        yield (statistics.min, statistics.max) if statistics else (last, last)


def _leaf(parquet: pq.ParquetFile, name: str) -> int:
    """Which of a file's columns this is: maps have two."""
    return next(n for n in range(len(parquet.schema)) if parquet.schema.column(n).path == name)


def _within(events: pa.Table, after: int, upto: int) -> pa.Table:
    entry = events["entry"]
    return events.filter(pc.and_(pc.greater(entry, after), pc.less_equal(entry, upto)))


def _tail(source: TraceSource, part: TracePartition) -> Iterator[pa.Table]:
    """Read the events that were not archived when the partitions were made."""
    tail: list[tuple[int, bytes]] = []

    def files() -> list[DataFile]:
        view = _look(source)
        tail[:] = view.tail
        return view.files

    for parquet, last in _opened(files, part.after):
        yield from _row_groups(parquet, last, part.after, part.upto)
    yield events_of([each for each in tail if part.after < each[0] <= part.upto])


def _look(source: TraceSource) -> ArchiveView:
    stream = TraceStream(source.redis_url, source.broker)
    try:
        view = read_snapshot(_archive(source), stream)
    finally:
        stream.close()
    if view.lost:
        raise DataLoss(f"{view.lost} batches of {source.broker} were trimmed before anybody kept them")
    return view


def position_after(source: TraceSource, after: int, upto: int, most: int) -> int:
    """A place up to which about so many events follow; they end where an entry, or a row group of a file, does."""
    rows = 0
    for place, events in sorted(_sizes(source, after, upto)):
        rows += events
        if rows >= most:
            return place
    return upto


def _sizes(source: TraceSource, after: int, upto: int) -> Iterable[tuple[int, int]]:
    """Places within the stretch, and how many events lie before each, as far as they are in one piece."""
    view = _look(source)
    for parquet, last in _opened(lambda: view.files, after):
        for number, (_, greatest) in enumerate(_places(parquet, last)):
            if after < greatest <= upto:
                yield greatest, parquet.metadata.row_group(number).num_rows
    for place, batch in view.tail:
        if after < place <= upto:
            yield place, events_of([(place, batch)]).num_rows


def require_available(source: TraceSource, after: int) -> None:
    """Raise DataLoss when some of what follows a place was removed; not of the beginning, 0: it is what there is."""
    if 0 < after < _archive(source).removed:
        raise DataLoss(f"what {source.broker} recorded after {id_of(after)} was removed: it was too old")


def _archive(source: TraceSource) -> BrokerArchive:
    return BrokerArchive(source.archive, source.broker)
