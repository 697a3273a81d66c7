"""Merge the many small files of a past hour into few large ones.

    archive.work/broker=B/new                           the folder that will replace an hour's
    archive.work/broker=B/replaced/day=D.hour=H.<ns>    a replaced folder, and when (nanoseconds since the epoch)

The hour's new folder is built outside the archive, from links to the files that stay and the merged file. Then the two
folders exchange their names atomically: a reader that lists the hour sees each event once. A process killed before or
after leaves a folder that is not needed: the incomplete new one, or the old one. A reader that listed the old files and
has not opened them yet does not find them. A lock (read_locks.py) prevents that for analyses; others find the files
under `replaced` for a while.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from analytics.archive import atomic_files, bloom_index, manifest
from analytics.archive.data_files import (
    ARCHIVED,
    HOUR_US,
    DataFile,
    data_files,
    hour_folders,
    read_parts,
    start_us,
)
from analytics.archive.stream_ids import id_of

#: Events of a file that is not merged any further: 25 to 50 MB.
FULL_FILE_EVENTS = 5_000_000
#: Events of a row group: the unit in which tasks of Spark read, and the events in memory here.
ROW_GROUP_EVENTS = 500_000
#: Microseconds after the end of an hour in which late events may arrive.
LATE_EVENTS_US = 600_000_000
#: Seconds for which files that were replaced can still be read under their hidden names.
REPLACED_KEPT_SECONDS = 3600

#: Columns with few distinct values, by their names in a file. Dictionaries for ids, times and other values that differ
#: from event to event make a file larger and slower to write: zstd finds their repetitions by itself.
_DICTIONARY_COLUMNS = (
    "kind", "destination", "original", "consumer", "reason", "weight", "entry", "ps.key_value.key", "pn.key_value.key",
)  # fmt: skip
#: Columns whose minimum and maximum let readers skip row groups. Ids are found by the index.
_STATISTICS_COLUMNS = ("ts", "kind", "destination", "original", "consumer", "size", "born", "reason", "weight", "entry")
COMPRESSION = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": list(_DICTIONARY_COLUMNS),
    "write_statistics": list(_STATISTICS_COLUMNS),
    "write_batch_size": 1 << 16,  # values that are encoded at once; 1024 by default, which takes 10% longer
}


def next_merge_group(hour: Path) -> list[DataFile]:
    """Return the next files of an hour to merge: adjacent ones that together are not too large; [] for none."""
    group: list[DataFile] = []
    events = 0
    found = manifest.inspect(hour)
    for file in found.files:
        count = found.rows.get(file.path.name)
        if count is None:  # not in the manifest: the footer says it, which takes longer to read
            count = pq.read_metadata(file.path).num_rows
        if count >= FULL_FILE_EVENTS or events + count > FULL_FILE_EVENTS:
            if len(group) > 1:
                return group
            group, events = [], 0
        if count < FULL_FILE_EVENTS:
            group.append(file)
            events += count
    return group if len(group) > 1 else []


def complete_hours(broker: Path, now_us: int) -> list[Path]:
    """Return the hours in which no more events are expected, newest first."""
    hours = reversed(hour_folders(broker))
    return [each for each in hours if start_us(each) + HOUR_US + LATE_EVENTS_US <= now_us]


def compact(
    hour: Path, group: Sequence[DataFile], work: Path, indexed: Sequence[str], at: Callable[[str], None]
) -> None:
    """Merge these files of the hour into one, and replace the hour's folder."""
    new, old = work / "new", work / "replaced" / f"{hour.parent.name}.{hour.name}.{time.time_ns()}"
    shutil.rmtree(new, ignore_errors=True)
    for folder in (new, old.parent):
        atomic_files.make_folder(folder)
    # A name that no other file ever had: readers cache what they read of a file by its name.
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
        manifest.create(hour)
    manifest.add(hour, [manifest.entry_of(new / name, replaces=tuple(sorted(replaced)))])
    at("before-exchange")
    atomic_files.exchange(new, hour)
    at("exchanged")
    manifest.finish_replacement(hour)
    at("settled")
    new.rename(old)
    at("put-away")


def _merge(group: Sequence[DataFile], target: Path, indexed: Sequence[str]) -> np.ndarray:
    """Write the events of these files to one; return the hashes of their keys."""
    keys = [np.empty(0, np.uint64)]
    with pq.ParquetWriter(target, ARCHIVED, **COMPRESSION) as writer:
        for events in read_parts((each.path for each in group), ROW_GROUP_EVENTS):
            together = events.unify_dictionaries().combine_chunks()  # a dictionary each, not one for each small file
            writer.write_table(together, row_group_size=ROW_GROUP_EVENTS)
            keys.append(bloom_index.event_keys(together, indexed))
    found = np.sort(np.concatenate(keys))  # np.unique hashes them, which takes several times as long
    return found[np.append(True, found[1:] != found[:-1])[: len(found)]]


def delete_replaced(work: Path, now: float) -> None:
    """Delete folders that were replaced so long ago that no reader uses them."""
    for old in (work / "replaced").glob("day=*"):
        if int(old.suffix[1:]) / 1e9 < now - REPLACED_KEPT_SECONDS:
            shutil.rmtree(old)
