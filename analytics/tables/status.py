"""Summarize the state of the tables for operators, and request that a period is computed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import start_us
from analytics.archive.manifest import hours_of, inspect
from analytics.archive.stream_ids import id_of, position_of
from analytics.archive.trace_stream import TraceStream
from analytics.tables.catalog import TableCatalog
from analytics.tables.current_hours import read_current_hours
from analytics.tables.day_manifest import mark_stale
from analytics.tables.definitions import DAILY, DAY_US, HOUR_US, HOURLY, TRAFFIC, VERSION
from analytics.tables.storage import FolderStorage, TableStorage
from brokerapp.errors import RequestRefused, StoreUnavailable
from brokerapp.system.environment import Environment

#: The file that says how the last build went.
_LAST_BUILD = "last_build.json"


@dataclass(frozen=True, slots=True)
class LastBuild:
    """How the last build of all brokers' tables went. Times are microseconds since the epoch."""

    finished_us: int
    seconds: float
    hours: int  #: hours computed
    events: int  #: events counted
    error: str = ""  #: why it failed; "" if it did not


@dataclass(frozen=True, slots=True)
class TablesStatus:
    """The tables of one broker. Times are microseconds since the epoch."""

    broker: str
    version: int
    computed_until_us: int | None  #: all hours before are computed; None: no hour is
    hours: int  #: hours with hourly rows
    days: int  #: days with daily rows
    bytes: int
    events: int  #: events that the hourly and daily rows were made from
    files_set_aside: int  #: files of the archive that could not be read when their hours were computed
    pending_hours: int  #: complete hours that are not computed, or have changed since
    pending_events: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def tables_status(catalog: TableCatalog, now_us: int, since_us: int = 0) -> TablesStatus:
    """Read the state of a broker's tables; hours of days before `since_us` are not expected."""
    hours = days = size = events = aside = 0
    last: int | None = None
    for day_us in catalog.days():
        day = catalog.day(day_us)
        hours += len(day.hours) if HOURLY in day.files else 0
        days += DAILY in day.files
        size += day.bytes
        events += sum(each.rows for each in day.hours.values())
        aside += sum(len(each.set_aside) for each in day.hours.values())
        last = day_us + (max(day.hours) + 1) * HOUR_US if day.hours else last
    pending = list(catalog.pending(now_us, since_us))
    until = min([each.start_us for each in pending] + ([] if last is None else [last]), default=None)
    return TablesStatus(
        broker=catalog.broker,
        version=VERSION,
        computed_until_us=until if last is not None else None,
        hours=hours,
        days=days,
        bytes=size,
        events=events,
        files_set_aside=aside,
        pending_hours=len(pending),
        pending_events=sum(each.rows for each in pending),
    )


@dataclass(frozen=True, slots=True)
class CurrentHoursStatus:
    """The rows of hours that are counted from the stream. Times are microseconds since the epoch."""

    counted_until_us: int | None  #: time of the last entry whose events are counted; None: none is
    behind_seconds: float | None  #: age of the oldest entry that is not counted; 0: none; None: unknown
    hours: int = 0
    events: int = 0


def current_hours_status(environment: Environment, now_us: int) -> CurrentHoursStatus | None:
    """Read how far the current hours are counted; None where they are not counted from the stream."""
    if not environment.streams_tables:
        return None
    archive = BrokerArchive(environment.archive, environment.broker_name)
    current = read_current_hours(TableCatalog(FolderStorage(environment.tables), archive))
    if current is None or not current.updated_us:
        return CurrentHoursStatus(None, None)
    stream = TraceStream(environment.redis_url, environment.broker_name)
    try:
        oldest = _oldest_uncounted(archive, stream, current.position)
    except StoreUnavailable:
        behind = None
    else:
        behind = 0.0 if oldest is None else max(0.0, round(now_us / 1e6 - _seconds(oldest), 1))
    finally:
        stream.close()
    events = sum(current.rows[TRAFFIC.name]["events"].to_pylist())
    return CurrentHoursStatus(int(_seconds(current.position) * 1e6), behind, len(current.starts), events)


def _oldest_uncounted(archive: BrokerArchive, stream: TraceStream, position: int) -> int | None:
    """Return the position of the first entry after this one, to a few seconds where it is archived; None without."""
    first = stream.first_after(id_of(position))  # before the files: an entry is archived before it is removed
    since_us = _seconds(position) * 1e6 - HOUR_US
    hours = [each for each in hours_of(archive.folder) if start_us(each) >= since_us]
    archived = [file.last for each in hours for file in inspect(each).files if file.last > position]
    return min([*archived, *(() if first is None else (position_of(first),))], default=None)


def _seconds(position: int) -> float:
    """Return when an entry was written, in seconds since the epoch."""
    return int(id_of(position).partition("-")[0]) / 1000


def hourly_since_us(now_us: int, hourly_days: float) -> int:
    """Return the start of the first day whose hourly rows are within their retention; 0 for an unlimited one."""
    return int(now_us - hourly_days * DAY_US) // DAY_US * DAY_US if hourly_days else 0


def last_build(storage: TableStorage) -> LastBuild | None:
    """Return how the last build went; None before the first one."""
    try:
        return LastBuild(**json.loads(storage.read(_LAST_BUILD)))
    except FileNotFoundError:
        return None


def write_last_build(storage: TableStorage, build: LastBuild) -> None:
    """Store how a build went."""
    storage.replace(_LAST_BUILD, json.dumps(asdict(build)).encode())


def request_rebuild(storage: TableStorage, archive: Path, since_us: int, until_us: int) -> int:
    """Mark the computed hours that overlap a time range, so that the next build computes them again; return how many.

    Hours whose events are no longer archived are kept. Raises RequestRefused.
    """
    if not 0 <= since_us < until_us:
        raise RequestRefused(f"since_us must be less than until_us, got {since_us} and {until_us}")
    marked = 0
    with storage.lock() as is_free:
        if not is_free:
            raise RequestRefused("tables are being computed: try again when the build has finished")
        for catalog in TableCatalog.all_of(storage, archive):
            for day_us in catalog.days():
                if day_us + DAY_US <= since_us or day_us >= until_us:
                    continue
                day = catalog.day(day_us)
                hours = [
                    hour
                    for hour in day.hours
                    if since_us < day_us + (hour + 1) * HOUR_US
                    and day_us + hour * HOUR_US < until_us
                    and catalog.folder_of(day_us + hour * HOUR_US).is_dir()
                ]
                if hours and HOURLY in day.files:
                    catalog.replace_day(day_us, mark_stale(day, hours))
                    marked += len(hours)
    return marked


def status_json(storage: TableStorage, archive: Path, now_us: int, hourly_days: float) -> Mapping[str, Any]:
    """Return the state of all brokers' tables, and how the last build went, as plain values."""
    since, build = hourly_since_us(now_us, hourly_days), last_build(storage)
    return {
        "brokers": [tables_status(each, now_us, since).to_json() for each in TableCatalog.all_of(storage, archive)],
        "last_build": None if build is None else asdict(build),
    }
