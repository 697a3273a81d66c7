"""Record what the tables of a day were made from, and decide which hours are to be computed. Pure.

    tables/broker=B/day=YYYY-MM-DD/manifest.json

An hour is computed again if it has events that were not counted: a late file, or one that was put back or repaired. It
is not if its files were merged (compaction), or if files were lost or deleted since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from analytics.archive.data_files import appends_in, position_in
from analytics.tables.definitions import VERSION

NAME = "manifest.json"
#: Versions of tables that runs read. Hours whose events are no longer archived keep their version.
READABLE = frozenset({VERSION})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file of the archive that was counted."""

    file: str
    rows: int
    crc32: int | None = None  #: None: not known (an archive of an early version)

    @property
    def appends(self) -> int:
        """Return from how many appended files it was merged; 1 for one that was not."""
        return appends_in(self.file)

    @property
    def last(self) -> int | None:
        """Return the position of the last entry of the stream in it."""
        return position_in(self.file)


@dataclass(frozen=True, slots=True)
class HourRecord:
    """What one hour was computed from, and when."""

    files: tuple[SourceFile, ...] = ()  #: in the order of their events
    version: int = VERSION
    computed_us: int = 0  #: microseconds since the epoch
    source_state: tuple[int, int] | None = None  #: size and modification time of the archive's manifest then
    set_aside: tuple[Mapping[str, Any], ...] = ()  #: files that were not read (archive.manifest.SetAside as a dict)
    is_stale: bool = False  #: whether an operator requested that it is computed again

    @property
    def rows(self) -> int:
        """Return the number of events that were counted."""
        return sum(each.rows for each in self.files)

    @property
    def needs_source(self) -> bool:
        """Return whether the hour is to be computed again even if its files are unchanged, while these exist."""
        return self.is_stale or self.version != VERSION


@dataclass(frozen=True, slots=True)
class DayManifest:
    """The tables of one day of a broker: hours that were computed, and the current files."""

    hours: Mapping[int, HourRecord] = field(default_factory=dict)  #: by hour of the day
    #: Level -> table -> file; tables without rows have none.
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    bytes: int = 0  #: of all files

    @property
    def is_complete(self) -> bool:
        """Return whether all hours of the day are computed and the day is merged."""
        return len(self.hours) == 24 and not any(each.is_stale for each in self.hours.values())

    def to_json(self) -> bytes:
        """Return the manifest as stored."""
        return json.dumps(
            {
                "hours": {str(hour): asdict(each) for hour, each in sorted(self.hours.items())},
                "files": self.files,
                "bytes": self.bytes,
            },
            separators=(",", ":"),
        ).encode()

    @staticmethod
    def from_json(data: bytes) -> DayManifest:
        """Read a stored manifest."""
        fields = json.loads(data)
        return DayManifest(
            {int(hour): _hour(each) for hour, each in fields["hours"].items()}, fields["files"], fields["bytes"]
        )


def _hour(fields: Mapping[str, Any]) -> HourRecord:
    state = fields["source_state"]
    return HourRecord(
        **{
            **fields,
            "files": tuple(SourceFile(**each) for each in fields["files"]),
            "source_state": None if state is None else (state[0], state[1]),
            "set_aside": tuple(fields["set_aside"]),
        }
    )


def needs_computing(record: HourRecord | None, current: Iterable[SourceFile]) -> bool:
    """Return whether an hour is to be computed from these files, by what it was computed from (None: never)."""
    now = tuple(current)
    if record is None:
        return True
    if record.needs_source:
        return bool(now) or not record.rows
    return not _were_counted(record.files, now)


def _were_counted(counted: tuple[SourceFile, ...], now: tuple[SourceFile, ...]) -> bool:
    """Return whether the events of these files were all counted: each file, or the files that it was merged from."""
    known = {each.file: each for each in counted}
    for each in now:
        before = known.get(each.file)
        if before is None and not _is_merged_from(each, counted):
            return False
        if before is not None and before != each and None not in (before.crc32, each.crc32):
            return False
    return True


def _is_merged_from(merged: SourceFile, counted: tuple[SourceFile, ...]) -> bool:
    """Return whether a file was merged from adjacent counted files that end with the same entry of the stream."""
    ends = [index for index, each in enumerate(counted) if each.last == merged.last]
    for end in ends:
        appends = rows = 0
        for each in reversed(counted[: end + 1]):
            appends, rows = appends + each.appends, rows + each.rows
            if appends >= merged.appends:
                break
        if (appends, rows) == (merged.appends, merged.rows):
            return True
    return False


def with_source(record: HourRecord, found: HourRecord) -> HourRecord:
    """Return the record of an hour with its current files; those that were lost since remain listed."""
    files = found.files if found.rows == record.rows else record.files
    return replace(record, files=files, source_state=found.source_state)


def mark_stale(manifest: DayManifest, hours: Iterable[int]) -> DayManifest:
    """Return the manifest with a request to compute these hours again."""
    marked = {hour: replace(manifest.hours[hour], is_stale=True) for hour in hours if hour in manifest.hours}
    return replace(manifest, hours={**manifest.hours, **marked})
