"""Read numbers and times of events from the footers of data files, without reading their rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.archive.data_files import hour_folders
from analytics.requests.request import TimeWindow
from brokerapp.tracing.schema import VERSION_KEY

#: Footers that are read at most, each a fraction of a millisecond: beyond, the number is not worth the wait.
MAX_FILES = 2000
#: What `footer_of` raises when a file was compacted away meanwhile.
READ_ERRORS = (OSError, pa.ArrowInvalid)


@dataclass(frozen=True, slots=True)
class FooterStats:
    """Number, period and schema version of the events in a data file, as its footer says."""

    rows: int
    first_us: int | None  #: when the first happened, microseconds since the epoch; None when it does not say
    last_us: int | None
    version: int  #: of the events, see brokerapp/tracing/schema.py

    def is_within(self, window: TimeWindow) -> bool:
        """Return whether all of them happened in the window."""
        known = self.first_us is not None and self.last_us is not None
        return known and window.since_us <= self.first_us and self.last_us < window.until_us


def read_footer(path: Path) -> FooterStats:
    """Read the footer of a data file, once unless the file changes. Raises one of GONE."""
    found = path.stat()
    return _footer_of(path, found.st_size, found.st_mtime_ns)


@lru_cache(2 * MAX_FILES)
def _footer_of(path: Path, _size: int, _mtime_ns: int) -> FooterStats:
    footer = pq.read_metadata(path)
    version = int((footer.metadata or {}).get(VERSION_KEY, b"1"))
    column = footer.schema.names.index("ts")
    groups = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
    if not groups or not all(each is not None and each.has_min_max for each in groups):
        return FooterStats(footer.num_rows, None, None, version)
    first, last = min(each.min for each in groups), max(each.max for each in groups)
    return FooterStats(footer.num_rows, _micros(first), _micros(last), version)


def rows_within(archive: Path, window: TimeWindow) -> int | None:
    """Count the events in the files of the window's hours, of all brokers; None if there are too many files."""
    rows = 0
    for number, path in enumerate(_files(archive, window)):
        if number == MAX_FILES:
            return None
        try:
            rows += read_footer(path).rows
        except READ_ERRORS:
            continue
    return rows


def oldest_version(archive: Path, window: TimeWindow) -> int | None:
    """Return the lowest version of the files of the window's hours, of all brokers; None when there is none.

    At most MAX_FILES files are read.
    """
    return min((found for path in islice(_files(archive, window), MAX_FILES) for found in _version(path)), default=None)


def _version(path: Path) -> Iterator[int]:
    with contextlib.suppress(*READ_ERRORS):
        yield read_footer(path).version


def recording_start_us(archive: Path) -> int | None:
    """Return the time of the first archived event of all brokers, in microseconds since the epoch."""
    first = (hours[0] for broker in archive.glob("broker=*") if (hours := hour_folders(broker)))
    return min((at for hour in first for path in hour.glob("*.parquet") for at in _earliest(path)), default=None)


def _earliest(path: Path) -> Iterator[int]:
    try:
        first = read_footer(path).first_us
    except READ_ERRORS:
        return
    if first is not None:
        yield first


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)


def _files(archive: Path, window: TimeWindow) -> Iterator[Path]:
    first, last = (
        datetime.fromtimestamp(us / 1e6, UTC).strftime("day=%Y-%m-%d/hour=%H")
        for us in (window.since_us, window.until_us - 1)
    )
    for broker in sorted(archive.glob("broker=*")):
        for day in sorted(broker.glob("day=*")):
            if first[:14] <= day.name <= last[:14]:
                hours = (hour for hour in day.glob("hour=*") if first <= f"{day.name}/{hour.name}" <= last)
                yield from (path for hour in hours for path in hour.glob("*.parquet"))
