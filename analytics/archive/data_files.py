"""The data files of an archive: what their names say, and what they hold, whatever version wrote them.

broker=B/day=YYYY-MM-DD/hour=HH/part-<id>.parquet         appended; <id>: the last stream entry in it
broker=B/day=YYYY-MM-DD/hour=HH/part-<id>_<n>.parquet     made of n such files
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from analytics.archive.stream_ids import position_of
from brokerapp.tracing.schema import SCHEMA, VERSION, VERSION_KEY, current

#: What files have: the columns of events but for the broker, which the path has, and the stream entry they came with.
ARCHIVED = pa.schema(
    [*(field for field in SCHEMA if field.name != "broker"), pa.field("entry", pa.int64())],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
#: The file that says up to which place events were removed because they were too old.
REMOVED = "_removed"
HOUR_US = 3_600_000_000
_NAME = re.compile(r"part-(\d+-\d+)(?:_(\d+))?\.parquet")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of the archive."""

    path: Path
    last: int  #: place of the last stream entry in it
    appends: int = 1  #: how many appended files it was made of

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
    """Return the files of an hour, in the order of what they hold."""
    return sorted(_files(hour), key=lambda each: (each.last, each.path.name))


def _files(hour: Path) -> Iterator[DataFile]:
    for path in hour.iterdir():
        if found := _NAME.fullmatch(path.name):
            yield DataFile(path, position_of(found[1]), int(found[2] or 1))


def position_in(name: str) -> int | None:
    """Return the place of the last stream entry in a file of this name; None when no data file has such a name."""
    found = _NAME.fullmatch(name)
    return position_of(found[1]) if found else None


def to_archive_schema(events: pa.Table, last: int) -> pa.Table:
    """Events of any version as files have them now; `last` is the place of those that do not say theirs."""
    if "entry" not in events.schema.names:
        events = events.append_column("entry", pa.repeat(pa.scalar(last, pa.int64()), events.num_rows))
    return current(events, ARCHIVED)


def between(events: pa.Table, *spans: tuple[int, int]) -> pa.Table:
    """Filter the events of these time ranges; the end of each is exclusive."""
    ts = events["ts"].cast(pa.int64())
    return events.filter(
        reduce(pc.or_, (pc.and_(pc.greater_equal(ts, since), pc.less(ts, until)) for since, until in spans))
    )
