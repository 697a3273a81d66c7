"""Read and replace the manifests of the tables, and find hours of the archive that are not computed yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from analytics.archive import manifest as archive_manifest
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.compaction import LATE_EVENTS_US
from analytics.archive.data_files import hour_folders, start_us
from analytics.tables import day_manifest
from analytics.tables.day_manifest import DayManifest, HourRecord, SourceFile
from analytics.tables.definitions import DAY_US, HOUR_US, HOURLY
from analytics.tables.storage import TableStorage

_HOURS_A_DAY = 24


@dataclass(frozen=True, slots=True)
class HourSource:
    """The archived files of one hour, as they are now."""

    start_us: int
    folder: Path
    paths: tuple[Path, ...]
    record: HourRecord  #: what an hour that is computed from them is recorded with

    @property
    def rows(self) -> int:
        """Return the number of events."""
        return self.record.rows


class TableCatalog:
    """The tables of one broker, and the archive that they are made from."""

    def __init__(self, storage: TableStorage, archive: BrokerArchive) -> None:
        self.storage, self.archive, self.broker = storage, archive, archive.broker
        self._merged: list[tuple[int, int, HourRecord]] = []
        self.prefix = f"broker={quote(archive.broker, safe='')}"

    @staticmethod
    def all_of(storage: TableStorage, archive: Path) -> list[TableCatalog]:
        """Return the tables of each broker that has an archive or tables."""
        known = {each.broker for each in BrokerArchive.archives_in(archive)}
        stored = (unquote(each.removeprefix("broker=")) for each in storage.names() if each.startswith("broker="))
        return [TableCatalog(storage, BrokerArchive(archive, broker)) for broker in sorted({*known, *stored})]

    def days(self) -> list[int]:
        """Return the starts of the days that have tables, in microseconds since the epoch."""
        return [us_of(each) for each in self.storage.names(self.prefix) if each.startswith("day=")]

    def day(self, start_us: int) -> DayManifest:
        """Return the manifest of a day; an empty one without tables."""
        try:
            return DayManifest.from_json(self.storage.read(self.name(start_us, day_manifest.NAME)))
        except FileNotFoundError:
            return DayManifest()

    def replace_day(self, start_us: int, day: DayManifest) -> None:
        """Replace the manifest of a day atomically: its files are the current ones from then on."""
        self.storage.replace(self.name(start_us, day_manifest.NAME), day.to_json())

    def name(self, day_us: int, file: str) -> str:
        """Return the name of a file of a day in the storage."""
        return f"{self.prefix}/day={datetime.fromtimestamp(day_us / 1e6, UTC):%Y-%m-%d}/{file}"

    def first_us(self) -> int | None:
        """Return the start of the first hour that is archived or computed; None without any."""
        archived = [start_us(each) for each in hour_folders(self.archive.folder)[:1]]
        computed = [day + min(hours) * HOUR_US for day in self.days()[:1] if (hours := self.day(day).hours)]
        return min((*archived, *computed), default=None)

    def first_recorded_us(self) -> int | None:
        """Return the start of the first hour that was computed from events; None without any."""
        for day_us in self.days():
            hours = self.day(day_us).hours
            if recorded := [hour for hour, each in hours.items() if each.rows]:
                return day_us + min(recorded) * HOUR_US
        return None

    def complete_until_us(self, now_us: int) -> int:
        """Return the end of the last hour in which no more events are expected, and that is archived as a whole."""
        fresh = self.archive.fresh_until_us
        known = now_us if fresh is None else min(now_us, fresh)
        return (known - LATE_EVENTS_US) // HOUR_US * HOUR_US

    def pending(self, now_us: int, since_us: int = 0) -> Iterator[HourSource]:
        """Yield the hours of the days from `since_us` on that are to be computed, the oldest first.

        Hours of which only the files were merged are noted; `store_merged` stores the new names of their files.
        """
        first, until = self.first_us(), self.complete_until_us(now_us)
        if first is None:
            return
        committed = {Path(each).name for each in self.archive.commit.files}
        for day_us in range(max(first, since_us) // DAY_US * DAY_US, until, DAY_US):
            day = self.day(day_us)
            if day.hours and HOURLY not in day.files:  # past its retention: a day is merged from all its hours
                continue
            for hour in range(_HOURS_A_DAY):
                start, record = day_us + hour * HOUR_US, day.hours.get(hour)
                if start >= until or (record and not record.needs_source and self.is_unchanged(start, record)):
                    continue
                source = self.source(start, committed)
                if day_manifest.needs_computing(record, source.record.files):
                    yield source
                elif record is not None and not record.needs_source:
                    self._merged.append((day_us, hour, day_manifest.with_source(record, source.record)))

    def store_merged(self) -> None:
        """Store what `pending` found of hours whose files were merged, so that they need not be compared again."""
        by_day: dict[int, dict[int, HourRecord]] = {}
        for day_us, hour, record in self._merged:
            by_day.setdefault(day_us, {})[hour] = record
        self._merged.clear()
        for day_us, hours in by_day.items():
            day = self.day(day_us)
            known = {hour: each for hour, each in hours.items() if hour in day.hours}
            self.replace_day(day_us, replace(day, hours={**day.hours, **known}))

    def source(self, start: int, committed: set[str] | None = None) -> HourSource:
        """Return the archived files of an hour."""
        folder = self.folder_of(start)
        state = self._state(folder)  # before the files: a later change is noticed
        if not folder.is_dir() and state is None:
            return HourSource(start, folder, (), HourRecord())
        names = {Path(each).name for each in self.archive.commit.files} if committed is None else committed
        found, entries = archive_manifest.inspect(folder, names), archive_manifest.read(folder) or {}
        files = tuple(
            SourceFile(
                each.path.name,
                found.rows.get(each.path.name, 0),
                entries[each.path.name].crc32 if each.path.name in entries else None,
            )
            for each in found.files
        )
        aside = tuple(asdict(each) for each in found.set_aside)
        record = HourRecord(files, source_state=state, set_aside=aside)
        return HourSource(start, folder, tuple(each.path for each in found.files), record)

    def is_unchanged(self, start: int, record: HourRecord) -> bool:
        """Return whether the archive's manifest of an hour is as it was when the hour was computed, or deleted."""
        state = self._state(self.folder_of(start))
        return state is None or state == record.source_state

    def is_current(self, start: int, record: HourRecord) -> bool:
        """Return whether the tables have all archived events of an hour."""
        if record.is_stale or record.version not in day_manifest.READABLE:
            return False
        return self.is_unchanged(start, record) or not day_manifest.needs_computing(
            record, self.source(start).record.files
        )

    def folder_of(self, start: int) -> Path:
        """Return the folder of an hour in the archive."""
        return self.archive.folder / f"{datetime.fromtimestamp(start / 1e6, UTC):day=%Y-%m-%d/hour=%H}"

    @staticmethod
    def _state(folder: Path) -> tuple[int, int] | None:
        try:
            found = archive_manifest.path_of(folder).stat()
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns


def first_recorded_us(catalogs: Iterable[TableCatalog]) -> int | None:
    """Return the start of the first hour with events in the tables of these brokers; None without any."""
    return min((at for each in catalogs if (at := each.first_recorded_us()) is not None), default=None)


def recording_start(archived_us: int | None, tabled_us: int | None) -> int | None:
    """Return when recording began: tables know the hour only, and reach further back than the archive."""
    if archived_us is None or tabled_us is None:
        return tabled_us if archived_us is None else archived_us
    return tabled_us if tabled_us + HOUR_US <= archived_us else archived_us


def us_of(name: str) -> int:
    """Return the start of a day's folder, in microseconds since the epoch."""
    return int(datetime.strptime(name, "day=%Y-%m-%d").replace(tzinfo=UTC).timestamp()) * 1_000_000
