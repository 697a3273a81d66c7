"""Read a consistent snapshot of what a broker has recorded: the files of its archive and the unarchived entries.

The seam between the two is exact while the archiver moves events: the files are those of one commit record, the stream
is read from the entry on at which the record ends, and both are read again if the archiver has committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.data_files import ARCHIVED, HOUR_US, DataFile, start_us, to_archive_schema
from analytics.archive.manifest import SetAside, hours_of, inspect
from analytics.archive.stream_ids import START, position_of
from analytics.archive.trace_stream import TraceStream
from brokerapp.errors import StoreUnavailable
from brokerapp.tracing.decoding import decode

#: Attempts to read between two commits of the archiver: one takes milliseconds, the archiver commits every few seconds.
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """The recorded events of one broker at one moment: files and unarchived entries."""

    seam: int  #: position of the last entry whose events are in the files
    files: list[DataFile]  #: in the order of their events, hour by hour
    tail: list[tuple[int, bytes]]  #: position and batch of each entry after the seam
    lost_batches: int = 0  #: entries after the seam that were trimmed before they were archived
    set_aside: list[SetAside] = field(default_factory=list)  #: files of these hours that are not read
    rows: dict[Path, int] = field(default_factory=dict)  #: number of events of the files, where it is known


#: Time ranges, from and to, in microseconds since the epoch.
Spans = Sequence[tuple[int, int]]


class ArchiveChanged(Exception):
    """The archiver committed while a snapshot was read."""


def read_snapshot(archive: BrokerArchive, stream: TraceStream, spans: Spans | None = None) -> ArchiveView:
    """Read the files that may hold events of these time ranges (None: all), and the unarchived entries.

    Raises StoreUnavailable.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _try_snapshot(archive, stream, spans)
        except (ArchiveChanged, FileNotFoundError):
            continue
    raise StoreUnavailable("the archive cannot be read consistently: it changed during each attempt")


def archived_files(archive: BrokerArchive, spans: Spans | None = None) -> ArchiveView:
    """Return the archived files that may hold events of these time ranges."""
    commit = archive.commit
    seam = position_of(commit.offset if archive.is_published(commit) else commit.previous)
    return _view(archive, commit, seam, spans)


def _try_snapshot(archive: BrokerArchive, stream: TraceStream, spans: Spans | None) -> ArchiveView:
    commit = archive.commit
    whole = archive.is_published(commit)
    offset, ordinal = (commit.offset, commit.ordinal) if whole else (commit.previous, commit.previous_ordinal)
    seam = position_of(offset)
    view = _view(archive, commit, seam, spans)
    tail, lost = _read(stream, offset, ordinal)
    if archive.commit != commit or archive.is_published(commit) != whole:
        raise ArchiveChanged
    return replace(view, tail=tail, lost_batches=lost)


def _view(archive: BrokerArchive, commit: ArchiveCommit, seam: int, spans: Spans | None) -> ArchiveView:
    """Return the files up to the seam that match their manifests, and those that do not."""
    view, committed = ArchiveView(seam, [], []), {Path(each).name for each in commit.files}
    for hour in hours_of(archive.folder):
        if spans is None or _overlaps(start_us(hour), spans):
            found = inspect(hour, committed, seam)
            view.files.extend(found.files)
            view.set_aside.extend(found.set_aside)
            view.rows.update({hour / name: rows for name, rows in found.rows.items()})
    return view


def _overlaps(hour_us: int, spans: Spans) -> bool:
    return any(since < hour_us + HOUR_US and hour_us < until for since, until in spans)


def _read(stream: TraceStream, offset: str, ordinal: int) -> tuple[list[tuple[int, bytes]], int]:
    """Read the entries of the stream after one, up to its current end, and count lost ones."""
    end, tail, lost = position_of(stream.last() or START), [], 0
    while True:
        page = stream.read(offset, ordinal)
        if page.renewed and offset != START:
            offset, ordinal = START, 0
            continue
        lost += page.missed
        ordinal += page.missed + len(page.entries)
        tail += [(place, batch) for id, batch in page.entries if (place := position_of(id)) <= end]
        if not page.entries or position_of(page.entries[-1][0]) >= end:
            return tail, lost
        offset = page.entries[-1][0]


def events_of(batches: list[tuple[int, bytes]]) -> pa.Table:
    """Decode the events of these entries to the schema of files; unreadable entries are skipped."""
    return pa.concat_tables([ARCHIVED.empty_table(), *_tables(batches)])


def _tables(batches: list[tuple[int, bytes]]) -> Iterator[pa.Table]:
    for place, batch in batches:
        try:
            yield to_archive_schema(decode(batch), place)
        except (pa.ArrowException, ValueError):  # the archiver counts it
            continue
