"""The archive of one broker: Parquet files by day and hour, and the commit record that makes them exact.

    archive/broker=B/day=YYYY-MM-DD/hour=HH/part-<id>.parquet    <id>: the last stream entry in it; UTC
    archive/broker=B/day=.../hour=HH/_keys2                      the index (bloom_index.py)
    archive/broker=B/_commit.json                                the commit record
    archive/broker=B/_manifests/                                 which files there should be (manifest.py)
    archive/broker=B/_as_of                                      how fresh the archive is
    archive/broker=B/_removed                                    the last place of which events were removed
    archive/broker=B/_readers                                    the lock of who reads (read_locks.py)

What is appended at once may span several hours, so several files. They appear all or not at all, exactly once:

1. each file is written under a hidden name, `.part-<id>.tmp`, and synced;
2. the commit record is replaced: it names the id and the files. This one rename is the moment of truth;
3. the files are renamed to their final names.

Killed before 2, the hidden files are no one's: recovery deletes them, and the stream, which is trimmed only after 3,
still has their events. Killed after 2, the record names the files that recovery still has to rename. Readers ignore
hidden files.
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

from analytics.archive import atomic_files, bloom_index, manifest
from analytics.archive.compaction import COMPRESSION
from analytics.archive.data_files import HOUR_US, REMOVED, to_archive_schema
from analytics.archive.stream_ids import START, position_of
from brokerapp.tracing.schema import VERSION


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


def _nothing(step: str) -> None:
    """Called at each step of an append; tests end the process here."""


class BrokerArchive:
    """The archive of one broker. One process may append; any may read."""

    def __init__(
        self, root: Path, broker: str, at: Callable[[str], None] = _nothing, indexed: tuple[str, ...] = ()
    ) -> None:
        self.broker = broker
        self.folder = root / f"broker={quote(broker, safe='')}"
        #: Where folders are prepared and put away: beside the archive, because some readers look into hidden ones too.
        self.work = root.with_name(f"{root.name}.work") / self.folder.name
        self._at = at
        self._indexed = indexed  #: properties by whose values messages are found, beside their ids

    @staticmethod
    def archives_in(root: Path) -> list[BrokerArchive]:
        """Return the archives of all brokers in a folder."""
        return [BrokerArchive(root, unquote(each.name.removeprefix("broker="))) for each in root.glob("broker=*")]

    @property
    def commit(self) -> ArchiveCommit:
        """The commit record as it stands."""
        try:
            fields = json.loads(self._record.read_bytes())
        except FileNotFoundError:
            return ArchiveCommit()
        return ArchiveCommit(**{**fields, "files": tuple(fields["files"])})

    @property
    def fresh_until_us(self) -> int | None:
        """All events before this moment (microseconds since the epoch) are archived; None when nothing ever was."""
        try:
            return int((self.folder / "_as_of").read_text())
        except (FileNotFoundError, ValueError):
            return None

    @property
    def removed(self) -> int:
        """The place of the last entry of which events were removed because they were too old; 0 for none."""
        try:
            return int((self.folder / REMOVED).read_text())
        except FileNotFoundError:
            return 0

    def write_freshness(self, us: int) -> None:
        """Note how fresh the archive is. Not synced: it is said anew every few seconds."""
        atomic_files.make_folder(self.folder)
        staged = self.folder / "._as_of.tmp"
        staged.write_text(str(us))
        staged.rename(self.folder / "_as_of")

    def recover(self) -> ArchiveCommit:
        """Finish what was committed, remove what was not; the commit record."""
        commit = self.commit
        self._publish(commit)
        self._list(commit)
        for left_over in self.folder.rglob(".*.tmp"):
            left_over.unlink()
        for name in ("new", "gone"):
            shutil.rmtree(self.work / name, ignore_errors=True)
        return commit

    def append(self, events: pa.Table, commit: ArchiveCommit) -> ArchiveCommit:
        """Add the events and make `commit` the record, with the files written."""
        atomic_files.make_folder(self.folder)
        files = {}
        for hour, of_hour in _by_hour(to_archive_schema(events, position_of(commit.offset))):
            path = f"{hour}/part-{commit.offset}.parquet"
            self._stage(path, of_hour)
            files[path] = bloom_index.keys_of(of_hour, self._indexed)
            self._at("staged")
        before = self.commit
        commit = replace(
            commit, previous=before.offset, previous_ordinal=before.ordinal, files=tuple(files), schema=VERSION
        )
        self._at("before-commit")
        atomic_files.replace(self._record, json.dumps(asdict(commit)).encode())
        self._at("committed")
        self._publish(commit)
        self._list(commit)
        self._at("listed")
        for path, keys in files.items():  # a file that is not in the index is found all the same, only not as fast
            bloom_index.add((self.folder / path).parent, Path(path).name, keys)
        return commit

    def events_after(self, place: int) -> Iterator[pa.Table]:
        """Return the archived events that came after a place of the stream, roughly in its order."""
        hours = manifest.hours_of(self.folder)
        files = [each for hour in hours for each in manifest.inspect(hour).files if each.last > place]
        for file in sorted(files, key=attrgetter("last")):
            parquet = pq.ParquetFile(file.path)
            for number in range(parquet.num_row_groups):
                events = to_archive_schema(parquet.read_row_group(number), file.last)
                yield events.filter(pc.greater(events["entry"], place))

    def is_published(self, commit: ArchiveCommit) -> bool:
        """Return whether all that it appended has its final name."""
        return not any(self._staged(path).exists() for path in commit.files)

    @property
    def _record(self) -> Path:
        return self.folder / "_commit.json"

    def _stage(self, path: str, events: pa.Table) -> None:
        staged = self._staged(path)
        atomic_files.make_folder(staged.parent)
        pq.write_table(events, staged, **COMPRESSION)
        atomic_files.sync(staged)
        atomic_files.sync(staged.parent)

    def _publish(self, commit: ArchiveCommit) -> None:
        """Give the files their final names. One that has no hidden name any more got its final one earlier."""
        for path in commit.files:
            staged, final = self._staged(path), self.folder / path
            if staged.exists():
                staged.rename(final)
                atomic_files.sync(final.parent)
                self._at("published")

    def _list(self, commit: ArchiveCommit) -> None:
        """Have the manifests list the files of a commit."""
        for hour in sorted({Path(path).parent for path in commit.files}):
            if (self.folder / hour).is_dir():
                names = [Path(path).name for path in commit.files if Path(path).parent == hour]
                manifest.list_files(self.folder / hour, names)

    def _staged(self, path: str) -> Path:
        final = self.folder / path
        return final.with_name(f".{final.stem}.tmp")


def _by_hour(events: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Return the events by hour folder."""
    if not events.num_rows:
        return
    hours = events["ts"].cast(pa.int64()).to_numpy() // HOUR_US
    first, last = int(hours.min()), int(hours.max())
    different = range(first, last + 1) if first == last else np.unique(hours).tolist()
    for hour in different:
        folder = datetime.fromtimestamp(hour * HOUR_US / 1e6, UTC).strftime("day=%Y-%m-%d/hour=%H")
        yield folder, events if first == last else events.filter(pa.array(hours == hour))
