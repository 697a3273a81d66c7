"""The archive of one broker: Parquet files by day and hour, and the commit record that makes them exact.

    archive/broker=B/day=YYYY-MM-DD/hour=HH/part-<id>.parquet    <id>: the last stream entry in it; UTC
    archive/broker=B/day=.../hour=HH/_keys2                      the index (bloom_index.py)
    archive/broker=B/_commit.json                                the commit record
    archive/broker=B/_format.json                                the format of all this (format_file.py)
    archive/broker=B/_manifests/                                 which files there should be (manifest.py)
    archive/broker=B/_as_of                                      the time up to which all events are archived
    archive/broker=B/_removed                                    the last position of which events were removed
    archive/broker=B/_readers                                    the lock of readers (read_locks.py)

An append may span several hours, so several files. They appear all or not at all, exactly once:

1. each file is written under a hidden name, `.part-<id>.tmp`, and synced;
2. the commit record is replaced: it names the id and the files. This rename is the commit;
3. the files are renamed to their final names.

If the process is killed before 2, recovery deletes the hidden files, and the stream, which is trimmed only after 3,
still has their events. If it is killed after 2, the record names the files that recovery still has to rename. Readers
ignore hidden files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.archive import bloom_index, manifest
from analytics.archive.compaction import COMPRESSION, PendingMerges
from analytics.archive.data_files import HOUR_US, REMOVED, hour_folders, to_archive_schema
from analytics.archive.format_file import write_format
from analytics.archive.stream_ids import START, position_of
from brokerapp.system import atomic_files
from brokerapp.tracing.schema import VERSION

#: The file with the time up to which all events are archived.
AS_OF = "_as_of"


@dataclass(frozen=True, slots=True)
class ArchiveCommit:
    """The commit record of an archive: it holds everything up to an entry of the trace stream."""

    offset: str = START  #: id of the last archived entry
    ordinal: int = 0  #: how many entries the stream had been given up to it
    previous: str = START  #: the offset before the last append
    previous_ordinal: int = 0
    files: tuple[str, ...] = ()  #: what the last append wrote, relative to the broker's folder
    events: int = 0  #: archived in all
    gaps: int = 0  #: times that entries were missing
    lost_batches: int = 0  #: entries that were trimmed before they could be archived
    unreadable_batches: int = 0  #: entries that are no events
    schema: int = VERSION  #: of the events appended last


def _ignore_step(step: str) -> None:
    """Do nothing at a step of an append; tests pass a function that ends the process there."""


class BrokerArchive:
    """The archive of one broker. One process may append; any may read."""

    def __init__(
        self, root: Path, broker: str, at: Callable[[str], None] = _ignore_step, indexed: tuple[str, ...] = ()
    ) -> None:
        self.broker = broker
        self.folder = root / f"broker={quote(broker, safe='')}"
        #: Where folders are prepared and put away: beside the archive, because some readers look into hidden ones too.
        self.work = root.with_name(f"{root.name}.work") / self.folder.name
        self._on_step = at
        self._indexed = indexed  #: properties by whose values messages are found, beside their ids
        #: Merged files of the hours to which this process appends, for compaction.
        self.pending = PendingMerges(self.work)

    @staticmethod
    def archives_in(root: Path) -> list[BrokerArchive]:
        """Return the archives of all brokers in a folder."""
        return [BrokerArchive(root, unquote(each.name.removeprefix("broker="))) for each in root.glob("broker=*")]

    @property
    def commit(self) -> ArchiveCommit:
        """Read the commit record."""
        try:
            fields = json.loads(self._record.read_bytes())
        except FileNotFoundError:
            return ArchiveCommit()
        return ArchiveCommit(**{**fields, "files": tuple(fields["files"])})

    @property
    def fresh_until_us(self) -> int | None:
        """Return the time before which all events are archived, microseconds since the epoch; None for no archive."""
        try:
            return int((self.folder / AS_OF).read_text())
        except (FileNotFoundError, ValueError):
            return None

    @property
    def removed_until(self) -> int:
        """Return the position of the last entry of which events were removed by retention; 0 for none."""
        try:
            return int((self.folder / REMOVED).read_text())
        except FileNotFoundError:
            return 0

    def write_freshness(self, us: int) -> None:
        """Write the time up to which all events are archived. Not synced, as it is written every few seconds."""
        atomic_files.make_folder(self.folder)
        staged = self.folder / f".{AS_OF}.tmp"
        staged.write_text(str(us))
        staged.rename(self.folder / AS_OF)

    def recover(self) -> ArchiveCommit:
        """Finish a committed append, delete the files of an uncommitted one, and return the commit record.

        An archive that begins here has the present format.
        """
        commit = self.commit
        if commit == ArchiveCommit() and not hour_folders(self.folder):
            write_format(self.folder)
        self._publish(commit)
        self._list_in_manifests(commit)
        for left_over in self.folder.rglob(".*.tmp"):
            left_over.unlink()
        for name in ("new", "gone"):
            shutil.rmtree(self.work / name, ignore_errors=True)
        self.pending.clear()
        return commit

    def append(self, events: pa.Table, commit: ArchiveCommit) -> ArchiveCommit:
        """Add the events and replace the commit record by `commit`, with the names of the files written."""
        atomic_files.make_folder(self.folder)
        files = {}
        for hour, of_hour in _by_hour(to_archive_schema(events, position_of(commit.offset))):
            path = f"{hour}/part-{commit.offset}.parquet"
            self._stage(path, of_hour)
            files[path] = of_hour, bloom_index.event_keys(of_hour, self._indexed)
            self._on_step("staged")
        before = self.commit
        commit = replace(
            commit, previous=before.offset, previous_ordinal=before.ordinal, files=tuple(files), schema=VERSION
        )
        self._on_step("before-commit")
        atomic_files.replace(self._record, json.dumps(asdict(commit)).encode())
        self._on_step("committed")
        self._publish(commit)
        self._list_in_manifests(commit)
        self._on_step("listed")
        for path, (of_hour, keys) in files.items():
            folder, name = (self.folder / path).parent, Path(path).name
            bloom_index.add(folder, name, keys)  # a file that is not in the index is found too, only not as fast
            self.pending.add(folder, name, of_hour, keys)
        return commit

    def events_after(self, place: int) -> Iterator[pa.Table]:
        """Yield the archived events after a position of the stream, roughly in its order."""
        hours = manifest.hours_of(self.folder)
        files = [each for hour in hours for each in manifest.inspect(hour).files if each.last > place]
        for file in sorted(files, key=attrgetter("last")):
            parquet = pq.ParquetFile(file.path)
            for number in range(parquet.num_row_groups):
                events = to_archive_schema(parquet.read_row_group(number), file.last)
                yield events.filter(pc.greater(events["entry"], place))

    def is_published(self, commit: ArchiveCommit) -> bool:
        """Return whether all files of a commit have their final names."""
        return not any(self.staged(path).exists() for path in commit.files)

    def staged(self, path: str) -> Path:
        """Return where a file is, by its path in the broker's folder, until it gets its final name."""
        final = self.folder / path
        return final.with_name(f".{final.stem}.tmp")

    @property
    def _record(self) -> Path:
        return self.folder / "_commit.json"

    def _stage(self, path: str, events: pa.Table) -> None:
        staged = self.staged(path)
        atomic_files.make_folder(staged.parent)
        pq.write_table(events, staged, **COMPRESSION)
        atomic_files.sync(staged)
        atomic_files.sync(staged.parent)

    def _publish(self, commit: ArchiveCommit) -> None:
        """Give the files of a commit their final names, as far as they do not have them yet."""
        for path in commit.files:
            staged, final = self.staged(path), self.folder / path
            if staged.exists():
                staged.rename(final)
                atomic_files.sync(final.parent)
                self._on_step("published")

    def _list_in_manifests(self, commit: ArchiveCommit) -> None:
        """Add the files of a commit to the manifests of their hours."""
        for hour in sorted({Path(path).parent for path in commit.files}):
            if (self.folder / hour).is_dir():
                names = [Path(path).name for path in commit.files if Path(path).parent == hour]
                manifest.list_files(self.folder / hour, names)


def _by_hour(events: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the folder of each hour with its events."""
    if not events.num_rows:
        return
    hours = events["ts"].cast(pa.int64()).to_numpy() // HOUR_US
    first, last = int(hours.min()), int(hours.max())
    different = range(first, last + 1) if first == last else np.unique(hours).tolist()
    for hour in different:
        folder = datetime.fromtimestamp(hour * HOUR_US / 1e6, UTC).strftime("day=%Y-%m-%d/hour=%H")
        yield folder, events if first == last else events.filter(pa.array(hours == hour))
