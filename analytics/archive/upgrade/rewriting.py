"""Upgrade an archive to format 2: rewrite files of earlier versions with all columns, hour by hour.

A file is outdated if it lacks a column, or has no record in the index of its hour; an hour also if it has no manifest,
or the index of an earlier version. Files are rewritten as compaction does, into one file for adjacent ones: so an
upgrade that is killed leaves each hour as it was or as it will be, and the next one continues.
"""

from __future__ import annotations

import fcntl
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from analytics.archive import bloom_index, manifest
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.compaction import FULL_FILE_EVENTS, compact, delete_replaced
from analytics.archive.data_files import ARCHIVED, DataFile, hour_folders
from analytics.archive.footer_stats import READ_ERRORS
from analytics.archive.format_file import write_format
from analytics.archive.read_locks import exclusive_lock
from brokerapp.errors import BrokerError
from brokerapp.system import atomic_files

#: Takes a line about the progress.
Report = Callable[[str], None]


#: The format that the files have afterwards.
TARGET = 2


class ArchiveUnreadable(BrokerError):
    """A file of the archive cannot be read, although its checksum is right."""

    code = "archive-unreadable"


class ArchiveInUse(BrokerError):
    """Another process writes to the archive or reads from it."""

    code = "archive-in-use"


@dataclass(frozen=True, slots=True)
class OutdatedHour:
    """An hour with something of an earlier version: the files to be rewritten, if any."""

    folder: Path
    files: frozenset[str]


def outdated_hours(broker: Path) -> list[OutdatedHour]:
    """Return the hours of a broker's archive that are not of the present format, oldest first."""
    found = []
    for hour in hour_folders(broker):
        indexed = bloom_index.indexed_files(hour)
        files = frozenset(
            each.path.name
            for each in manifest.inspect(hour).files
            if each.path.name not in indexed or _lacks_columns(each.path)
        )
        if files or not manifest.path_of(hour).exists() or (hour / bloom_index.NAME_V1).exists():
            found.append(OutdatedHour(hour, files))
    return found


def _lacks_columns(path: Path) -> bool:
    """Return whether a file lacks a column; one that cannot be read is left to those who check the archive."""
    try:
        return not pq.read_schema(path).equals(ARCHIVED)
    except READ_ERRORS:
        return False


def rewrite_archive(
    archive: BrokerArchive, indexed: Sequence[str], report: Report, at: Callable[[str], None] = lambda _: None
) -> None:
    """Rewrite all that is outdated in a broker's archive and record the format. May be repeated at any time.

    Properties of `indexed` go into the index. `at` is called at each step of each hour. Raises ArchiveInUse
    and ArchiveUnreadable.
    """
    with _alone(archive):
        archive.recover()
        delete_replaced(archive.work, math.inf)  # by a run that was killed before it did, as below
        for each in hour_folders(archive.folder):
            manifest.finish_replacement(each)
        hours = outdated_hours(archive.folder)
        for number, hour in enumerate(hours, 1):
            name = f"{hour.folder.parent.name}/{hour.folder.name}"
            report(f"hour {number} of {len(hours)}: {name}, {len(hour.files)} files to rewrite")
            _rewrite(archive, hour, indexed, at)
        write_format(archive.folder, TARGET)


def _rewrite(archive: BrokerArchive, hour: OutdatedHour, indexed: Sequence[str], at: Callable[[str], None]) -> None:
    if manifest.read(hour.folder) is None:
        manifest.create(hour.folder)
    while groups := _groups(hour):
        try:
            compact(hour.folder, groups[0], archive.work, indexed, at, archive.pending)
        except READ_ERRORS as error:
            if not manifest.verify(hour.folder):  # else the damaged file is left out from now on
                raise ArchiveUnreadable(f"{hour.folder} cannot be rewritten: {error}") from error
        delete_replaced(archive.work, math.inf)  # nobody reads it: the space of one hour is enough
    (hour.folder / bloom_index.NAME_V1).unlink(missing_ok=True)
    atomic_files.sync(hour.folder)


def _groups(hour: OutdatedHour) -> list[list[DataFile]]:
    """Return groups of adjacent files that become one: none too large, with an outdated file in each."""
    found = manifest.inspect(hour.folder)
    groups: list[list[DataFile]] = []
    group: list[DataFile] = []
    events = 0
    for file in found.files:
        count = found.rows[file.path.name]
        if group and events + count > FULL_FILE_EVENTS:
            groups.append(group)
            group, events = [], 0
        group.append(file)
        events += count
    return [each for each in (*groups, group) if any(file.path.name in hour.files for file in each)]


@contextmanager
def _alone(archive: BrokerArchive) -> Iterator[None]:
    """Keep archivers and readers out while the context is open. Raises ArchiveInUse."""
    with (archive.folder / "_lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArchiveInUse(f"an archiver writes to {archive.folder}: stop it first") from error
        with exclusive_lock(archive.folder) as is_free:
            if not is_free:
                raise ArchiveInUse(f"an analysis or a page reads {archive.folder}: stop Sluice first")
            yield


def record_current_format(broker: Path) -> int:
    """Record the present format unless something is outdated; return the number of outdated hours.

    An archive that a recent version wrote is of the present format, but for the record of it.
    """
    outdated = len(outdated_hours(broker))
    if not outdated:
        write_format(broker, TARGET)
    return outdated
