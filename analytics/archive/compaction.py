"""Compaction: many small files of a past hour become few large ones.

    archive.work/broker=B/new                           what is to take an hour's place
    archive.work/broker=B/replaced/day=D.hour=H.<ns>    what was replaced, and when (nanoseconds since the epoch)

The hour's new folder is built beside the archive, where no reader looks, of links to the files that stay and the one
that replaces the others. Then the two folders change their names at once: whoever lists the hour sees all that is in
it, once. A process killed before or after leaves a folder that nobody needs: what the new one was to be, or the old
one. Whoever listed the old files and has not opened them yet does not find them; a lease (read_locks.py) keeps that
from
analyses, and others find them under `replaced` for a while.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.archive import atomic_files, bloom_index, manifest
from analytics.archive.data_files import (
    ARCHIVED,
    HOUR_US,
    DataFile,
    data_files,
    hour_folders,
    start_us,
    to_archive_schema,
)
from analytics.archive.stream_ids import id_of

#: Events of a file that is not made larger any more: some 25 to 50 MB.
ENOUGH = 5_000_000
#: Events of a row group: what a task of Spark reads at a time, and what is in memory here.
ROW_GROUP = 500_000
#: How long after an hour's end its late events are in.
SETTLED_US = 600_000_000
#: Seconds for which files that were replaced can still be read under their hidden names.
KEPT_SECONDS = 3600

#: Columns with few different values, as they are named in a file. With dictionaries for ids, times and what else
#: differs from event to event a file is larger and takes longer to write: zstd finds their repetitions by itself.
_FEW = (
    "kind", "destination", "original", "consumer", "reason", "weight", "entry", "ps.key_value.key", "pn.key_value.key",
)  # fmt: skip
#: Columns whose least and greatest value help readers to skip row groups. Ids are found by the index.
_ORDERED = ("ts", "kind", "destination", "original", "consumer", "size", "born", "reason", "weight", "entry")
COMPRESSION = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": list(_FEW),
    "write_statistics": list(_ORDERED),
}


def next_group(hour: Path) -> list[DataFile]:
    """Files of an hour that are to become one: neighbours that together are not too large; none when all is well."""
    group: list[DataFile] = []
    events = 0
    for file in manifest.inspect(hour).files:
        count = pq.read_metadata(file.path).num_rows
        if count >= ENOUGH or events + count > ENOUGH:
            if len(group) > 1:
                return group
            group, events = [], 0
        if count < ENOUGH:
            group.append(file)
            events += count
    return group if len(group) > 1 else []


def settled_hours(broker: Path, now_us: int) -> list[Path]:
    """Hours of which nothing more is expected, newest first."""
    hours = reversed(hour_folders(broker))
    return [each for each in hours if start_us(each) + HOUR_US + SETTLED_US <= now_us]


def compact(
    hour: Path, group: Sequence[DataFile], work: Path, indexed: Sequence[str], at: Callable[[str], None]
) -> None:
    """Let these files of the hour be one."""
    new, old = work / "new", work / "replaced" / f"{hour.parent.name}.{hour.name}.{time.time_ns()}"
    shutil.rmtree(new, ignore_errors=True)
    for folder in (new, old.parent):
        atomic_files.make_folder(folder)
    # A name that was never another's: readers remember what they read of a file by its name.
    name = f"part-{id_of(group[-1].last)}_{sum(each.appends for each in group)}.parquet"
    keys = _merge(group, new / name, indexed)
    at("merged")
    replaced = {each.path.name for each in group}
    stay = [each.path for each in data_files(hour) if each.path.name not in replaced]
    for path in stay:
        os.link(path, new / path.name)
    bloom_index.copy(hour, new, {path.name for path in stay})
    bloom_index.add(new, name, keys)
    for path in new.iterdir():
        atomic_files.sync(path)
    atomic_files.sync(new)
    if manifest.read(hour) is None:
        manifest.adopt(hour)
    manifest.add(hour, [manifest.entry_of(new / name, replaces=tuple(sorted(replaced)))])
    at("before-exchange")
    atomic_files.exchange(new, hour)
    at("exchanged")
    manifest.settle(hour)
    at("settled")
    new.rename(old)
    at("put-away")


def _merge(group: Sequence[DataFile], target: Path, indexed: Sequence[str]) -> np.ndarray:
    """Write what is in these files to one; the keys of what they hold."""
    keys = [np.empty(0, np.uint64)]
    with pq.ParquetWriter(target, ARCHIVED, **COMPRESSION) as writer:
        for events in _row_groups(group):
            writer.write_table(events, row_group_size=ROW_GROUP)
            keys.append(bloom_index.keys_of(events, indexed))
    return np.unique(np.concatenate(keys))


def _row_groups(group: Sequence[DataFile]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    events = 0
    for file in group:
        parquet = pq.ParquetFile(file.path)
        for number in range(parquet.num_row_groups):
            waiting.append(to_archive_schema(parquet.read_row_group(number), file.last))
            events += waiting[-1].num_rows
            if events >= ROW_GROUP:
                yield pa.concat_tables(waiting)
                waiting, events = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def forget_replaced(work: Path, now: float) -> None:
    """Remove what was replaced so long ago that nobody reads it any more."""
    for old in (work / "replaced").glob("day=*"):
        if int(old.suffix[1:]) / 1e9 < now - KEPT_SECONDS:
            shutil.rmtree(old)


def replaced_file(path: Path, work: Path) -> Path | None:
    """Return the current path of a file that compaction replaced, if it still exists."""
    folder = f"{path.parent.parent.name}.{path.parent.name}"
    return next(iter((work / "replaced").glob(f"{folder}.*/{path.name}")), None)
