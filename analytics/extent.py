"""How much of the archive a window touches, from the footers of its files: told while a run waits for its result."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.files import hour_folders
from analytics.request import Window

#: Footers that are read at most, each a fraction of a millisecond: beyond, the number is not worth the wait.
MAX_FILES = 2000


def rows_within(archive: Path, window: Window) -> int | None:
    """Events in the files of the window's hours, of all brokers; None when these are too many to be counted."""
    rows = 0
    for number, path in enumerate(_files(archive, window)):
        if number == MAX_FILES:
            return None
        try:
            rows += pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowInvalid):
            continue  # compacted away meanwhile
    return rows


def began_us(archive: Path) -> int | None:
    """When the first event was recorded of which the archive has any, of all brokers; microseconds since the epoch."""
    first = (hours[0] for broker in archive.glob("broker=*") if (hours := hour_folders(broker)))
    return min((at for hour in first for path in hour.glob("*.parquet") for at in _earliest(path)), default=None)


def _earliest(path: Path) -> Iterator[int]:
    """Of each row group, from its statistics."""
    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid):
        return  # compacted away meanwhile
    column = footer.schema.names.index("ts")
    for number in range(footer.num_row_groups):
        known = footer.row_group(number).column(column).statistics
        if known is not None and known.has_min_max:
            yield round(known.min.timestamp() * 1e6)


def _files(archive: Path, window: Window) -> Iterator[Path]:
    first, last = (
        datetime.fromtimestamp(us / 1e6, UTC).strftime("day=%Y-%m-%d/hour=%H")
        for us in (window.since_us, window.until_us - 1)
    )
    for broker in sorted(archive.glob("broker=*")):
        for day in sorted(broker.glob("day=*")):
            if first[:14] <= day.name <= last[:14]:
                hours = (hour for hour in day.glob("hour=*") if first <= f"{day.name}/{hour.name}" <= last)
                yield from (path for hour in hours for path in hour.glob("*.parquet"))
