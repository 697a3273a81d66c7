"""Merge the many small files of a past hour into few large ones.

    archive.work/broker=B/new                           the folder that will replace an hour's
    archive.work/broker=B/merging/day=D.hour=H.parquet  a merged file that is being written
    archive.work/broker=B/replaced/day=D.hour=H.<ns>    a replaced folder, and when (nanoseconds since the epoch)

The hour's new folder is built outside the archive, from links to the files that stay and the merged file. Then the two
folders exchange their names atomically: a reader that lists the hour sees each event once. A process killed before or
after leaves a folder that is not needed: the incomplete new one, or the old one. A reader that listed the old files and
has not opened them yet does not find them. A lock (read_locks.py) prevents that for analyses; others find the files
under `replaced` for a while.

To open hundreds of small files takes longer than to write the merged one. So the archiver adds what it appends to the
merged file as well, while it has the events in memory (PendingMerges). Files of an earlier process are read.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.archive import bloom_index, manifest
from analytics.archive.data_files import (
    ARCHIVED,
    HOUR_US,
    DataFile,
    data_files,
    hour_folders,
    read_parts,
    start_us,
)
from analytics.archive.footer_stats import read_footer
from analytics.archive.stream_ids import id_of
from analytics.model.measures import FAILURES
from brokerapp.system import atomic_files
from brokerapp.tracing.schema import VERSION, VERSION_KEY

#: Events of a file that is not merged any further: 25 to 50 MB.
FULL_FILE_EVENTS = 5_000_000
#: Events of a row group, or a few more: the unit in which tasks of Spark read, and the events that are in memory here,
#: 120 bytes each.
ROW_GROUP_EVENTS = 500_000
#: Microseconds after the end of an hour in which late events may arrive.
LATE_EVENTS_US = 600_000_000
#: Hours of which merged files are written while they are appended to: the current one, the one before it until late
#: events have arrived, and one more for clocks that differ.
PENDING_HOURS = 3
#: Small tables that wait for their row group before they become one: each has some kilobytes of overhead.
_WAITING_TABLES = 512
#: Seconds for which files that were replaced can still be read under their hidden names.
REPLACED_KEPT_SECONDS = 3600
#: Kinds of events that a merged file has in row groups of their own, because some analyses read nothing else.
RARE_KINDS = pa.array(FAILURES)
#: The folder of merged files that are being written.
MERGING = "merging"

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


class MergedFile:
    """Writes the events of several files of an hour to one file.

    Failures have row groups of their own, after the others: to find the few among all events, readers skip the row
    groups in whose dictionary of kinds there are none (RARE_KINDS).
    """

    def __init__(self, target: Path, version: int = VERSION) -> None:
        self.names: list[str] = []
        self.events = 0
        schema = ARCHIVED.with_metadata({VERSION_KEY: str(version).encode()})
        self._target, self._writer = target, pq.ParquetWriter(target, schema, **COMPRESSION)
        self._common, self._rare = _RowGroups(self._writer), _RowGroups(self._writer)
        self._keys = [np.empty(0, np.uint64)]

    def add(self, name: str, events: pa.Table, keys: np.ndarray) -> None:
        """Add the events of a file and the hashes of their keys."""
        self.names.append(name)
        self.events += events.num_rows
        is_rare = pc.is_in(events["kind"], value_set=RARE_KINDS)
        if pc.any(is_rare).as_py():
            self._rare.add(events.filter(is_rare))
            events = events.filter(pc.invert(is_rare))
        self._common.add(events)
        self._keys.append(keys)

    def finish(self, path: Path) -> np.ndarray:
        """Write the rest, give the file its path, and return the hashes of the keys, each once."""
        self._common.write_waiting()
        self._rare.write_waiting()
        self._writer.close()
        self._target.rename(path)
        found = np.sort(np.concatenate(self._keys))  # np.unique hashes them, which takes several times as long
        return found[np.append(True, found[1:] != found[:-1])[: len(found)]]

    def discard(self) -> None:
        """Delete the unfinished file."""
        self._writer.close()
        self._target.unlink(missing_ok=True)


class _RowGroups:
    """Collects events until there are enough for a row group of the file."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._waiting: list[pa.Table] = []
        self._events = 0

    def add(self, events: pa.Table) -> None:
        """Add events, and write all that wait when they are enough."""
        self._waiting.append(events)
        self._events += events.num_rows
        if self._events >= ROW_GROUP_EVENTS:
            self.write_waiting()
        elif len(self._waiting) >= _WAITING_TABLES:
            self._waiting = [_as_one(self._waiting)]

    def write_waiting(self) -> None:
        """Write the events that wait as one row group."""
        if self._events:
            events = _with_own_kinds(_as_one(self._waiting))
            self._writer.write_table(events, row_group_size=events.num_rows)  # no small group for the last few
        self._waiting, self._events = [], 0


def _as_one(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the events of these tables with one dictionary for each column, not one for each table."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _with_own_kinds(events: pa.Table) -> pa.Table:
    """Return the events with a dictionary of the kinds that they have and no others: readers skip row groups by it."""
    column = events.schema.get_field_index("kind")
    own = events["kind"].cast(pa.string()).dictionary_encode()
    return events.set_column(column, events.schema.field(column), own.cast(events.schema.field(column).type))


class PendingMerges:
    """The merged files of the last hours, to which events are added as they are appended to the archive."""

    def __init__(self, work: Path) -> None:
        self._folder = work / MERGING
        self._merges: dict[Path, MergedFile] = {}

    def add(self, hour: Path, name: str, events: pa.Table, keys: np.ndarray) -> None:
        """Add the events of a file that was appended to an hour."""
        merge = self._merges.get(hour)
        if merge is None:
            while len(self._merges) >= PENDING_HOURS:
                self._discard(next(iter(self._merges)))
            atomic_files.make_folder(self._folder)
            merge = self._merges[hour] = MergedFile(self._folder / f"{hour.parent.name}.{hour.name}.parquet")
        if merge.events < FULL_FILE_EVENTS:  # beyond, files are large enough to be read quickly
            merge.add(name, events, keys)

    def take(self, hour: Path, group: Sequence[DataFile]) -> MergedFile | None:
        """Return the merged file of an hour if it has the events of exactly these files; drop it otherwise."""
        merge = self._merges.get(hour)
        if merge is not None and merge.names == [each.path.name for each in group]:
            return self._merges.pop(hour)
        self._discard(hour)
        return None

    def clear(self) -> None:
        """Discard all, also what an earlier process left."""
        for hour in [*self._merges]:
            self._discard(hour)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _discard(self, hour: Path) -> None:
        if merge := self._merges.pop(hour, None):
            merge.discard()


def compact(
    hour: Path, group: Sequence[DataFile], work: Path, indexed: Sequence[str], at: Callable[[str], None],
    pending: PendingMerges,
) -> None:  # fmt: skip
    """Merge these files of the hour into one, and replace the hour's folder."""
    new, old = work / "new", work / "replaced" / f"{hour.parent.name}.{hour.name}.{time.time_ns()}"
    shutil.rmtree(new, ignore_errors=True)
    for folder in (new, old.parent):
        atomic_files.make_folder(folder)
    replaced = {each.path.name for each in group}
    name = _merged_name(group)
    merge = pending.take(hour, group) or _merge(group, new / f".{name}.tmp", indexed)
    keys = merge.finish(new / name)
    at("merged")
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


def _merged_name(group: Sequence[DataFile]) -> str:
    """Return a name that no other file ever had: readers cache what they read of a file by its name.

    A file that is rewritten alone would keep its name; it gets a leading zero.
    """
    end, appends = id_of(group[-1].last), str(sum(each.appends for each in group))
    while any(each.path.name == f"part-{end}_{appends}.parquet" for each in group):
        appends = f"0{appends}"
    return f"part-{end}_{appends}.parquet"


def _merge(group: Sequence[DataFile], target: Path, indexed: Sequence[str]) -> MergedFile:
    """Read the events of these files into one, of the version of the oldest events in it."""
    merge = MergedFile(target, min(read_footer(each.path).version for each in group))
    for events in read_parts((each.path for each in group), ROW_GROUP_EVENTS):
        merge.add("", events, bloom_index.event_keys(events, indexed))
    return merge


def delete_replaced(work: Path, now: float) -> None:
    """Delete folders that were replaced so long ago that no reader uses them."""
    for old in (work / "replaced").glob("day=*"):
        if int(old.suffix[1:]) / 1e9 < now - REPLACED_KEPT_SECONDS:
            shutil.rmtree(old)
