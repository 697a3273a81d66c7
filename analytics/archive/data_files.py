"""Define the data files of an archive: their names, and their schema across versions.

broker=B/day=YYYY-MM-DD/hour=HH/part-<id>.parquet         appended; <id>: the last stream entry in it
broker=B/day=YYYY-MM-DD/hour=HH/part-<id>_<n>.parquet     merged from n such files
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.archive.stream_ids import position_of
from brokerapp.tracing.arrow_schema import SCHEMA, current
from brokerapp.tracing.schema import VERSION, VERSION_KEY

#: Schema of the files: the columns of events, without the broker (it is in the path), and the stream entry.
ARCHIVED = pa.schema(
    [*(field for field in SCHEMA if field.name != "broker"), pa.field("entry", pa.int64())],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
#: The file with the position up to which retention removed events.
REMOVED = "_removed"
HOUR_US = 3_600_000_000
_NAME = re.compile(r"part-(\d+-\d+)(?:_(\d+))?\.parquet")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of the archive."""

    path: Path
    last: int  #: position of the last stream entry in it
    appends: int = 1  #: number of appended files that it was merged from

    @property
    def folder(self) -> Path:
        """Return the folder of its hour."""
        return self.path.parent


def hour_folders(broker: Path) -> list[Path]:
    """Return the folders of a broker's hours, oldest first."""
    return sorted(broker.glob("day=*/hour=*"), key=lambda each: each.parts[-2:])


def start_us(hour: Path) -> int:
    """Return the start of a folder's hour, in microseconds since the epoch."""
    text = f"{hour.parent.name.removeprefix('day=')} {hour.name.removeprefix('hour=')}"
    return int(datetime.strptime(text, "%Y-%m-%d %H").replace(tzinfo=UTC).timestamp()) * 1_000_000


def data_files(hour: Path) -> list[DataFile]:
    """Return the files of an hour, in the order of their events."""
    return sorted(_files(hour), key=lambda each: (each.last, each.path.name))


def _files(hour: Path) -> Iterator[DataFile]:
    for path in hour.iterdir():
        if found := _NAME.fullmatch(path.name):
            yield DataFile(path, position_of(found[1]), int(found[2] or 1))


def position_in(name: str) -> int | None:
    """Return the position of the last stream entry in a file, from its name; None for another kind of file."""
    found = _NAME.fullmatch(name)
    return position_of(found[1]) if found else None


def appends_in(name: str) -> int:
    """Return from how many appended files a file was merged, from its name; 1 for one that was not."""
    found = _NAME.fullmatch(name)
    return int(found[2] or 1) if found else 1


def to_archive_schema(events: pa.Table, last: int) -> pa.Table:
    """Convert events of any version to the current schema; `last` is the position of events that have none."""
    return _to_schema(events, last, ARCHIVED)


def _to_schema(events: pa.Table, last: int, schema: pa.Schema) -> pa.Table:
    if "entry" in schema.names and "entry" not in events.schema.names:
        events = events.append_column("entry", pa.repeat(pa.scalar(last, pa.int64()), events.num_rows))
    return current(events, schema)


def read_parts(paths: Iterable[Path], events: int, columns: Sequence[str] = ARCHIVED.names) -> Iterator[pa.Table]:
    """Read columns of some files, of any version, in tables of about so many events. Raises footer_stats.READ_ERRORS.

    Events of files without stream entries have the last one of their file.
    """
    schema = pa.schema([ARCHIVED.field(each) for each in columns])
    waiting: list[pa.Table] = []
    count = 0
    for path in paths:
        # Small files: buffers read ahead cost more than they save.
        with pq.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
            for number in range(file.num_row_groups):
                found = file.read_row_group(number, columns, use_threads=False)
                if not found.schema.equals(schema):  # each conversion of an equal column takes time, too
                    found = _to_schema(found, position_in(path.name) or 0, schema)
                waiting.append(found)
                count += found.num_rows
                if count >= events:
                    yield pa.concat_tables(waiting)
                    waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def between(events: pa.Table, *spans: tuple[int, int]) -> pa.Table:
    """Filter the events of these time ranges; the end of each is exclusive."""
    ts = events["ts"].cast(pa.int64())
    return events.filter(
        reduce(pc.or_, (pc.and_(pc.greater_equal(ts, since), pc.less(ts, until)) for since, until in spans))
    )
