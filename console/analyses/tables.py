"""Read the state of the tables of recorded traffic for pages and the API, and have periods computed again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from analytics.tables.catalog import TableCatalog
from analytics.tables.definitions import TABLES, MeasureTable
from analytics.tables.status import (
    CurrentHoursStatus,
    LastBuild,
    TablesStatus,
    current_hours_status,
    hourly_since_us,
    last_build,
    request_rebuild,
    tables_status,
)
from analytics.tables.storage import FolderStorage
from brokerapp.errors import RequestRefused
from brokerapp.system import extras
from console.audit import trail
from console.broker.task_queue import enqueue

UPDATE_TASK = "analytics.tasks.update_tables"


@dataclass(frozen=True, slots=True)
class TablesState:
    """The tables of all brokers in the archive, the last build, and retention in days (0: unlimited).

    `current`: the hours that are counted from the stream; None: switched off.
    """

    brokers: list[TablesStatus]
    last_build: LastBuild | None
    hourly_days: float
    daily_days: float
    current: CurrentHoursStatus | None = None
    definitions: tuple[MeasureTable, ...] = tuple(TABLES.values())


def tables_state() -> TablesState:
    """Read the state of the tables."""
    ours, now_us = settings.SLUICE, time.time_ns() // 1000
    storage, since = _storage(), hourly_since_us(now_us, ours.hourly_table_days)
    brokers = [tables_status(each, now_us, since) for each in TableCatalog.all_of(storage, ours.archive)]
    current = current_hours_status(ours, now_us)
    return TablesState(brokers, last_build(storage), ours.hourly_table_days, ours.daily_table_days, current)


def rebuild(request: HttpRequest, since: datetime, until: datetime) -> int:
    """Have the hours that overlap a time range computed again; return how many. Raises RequestRefused."""
    extras.require(extras.ANALYTICS, "Tables of recorded traffic need")
    since_us, until_us = (int(each.timestamp() * 1_000_000) for each in (since, until))
    if since >= until:
        raise RequestRefused("the start of the time range must be before its end")
    with trail.recording(request, "rebuild", "tables of recorded traffic") as change:
        hours = request_rebuild(_storage(), settings.SLUICE.archive, since_us, until_us)
        change.after = {"since": since.isoformat(), "until": until.isoformat(), "hours": hours}
        if hours:
            enqueue(UPDATE_TASK, False, queue="spark")
    return hours


def levels_of(result: Mapping[str, Any]) -> str:
    """Describe which levels of tables a result was read from; "" for results of earlier versions."""
    levels = result.get("levels")
    if levels is None:
        return ""
    parts = [
        f"{levels[name]:,} {noun}{'' if levels[name] == 1 else 's'}"
        for name, noun in (("daily", "daily table"), ("hourly", "hourly table"))
        if levels[name]
    ]
    if not parts:
        return "Events"
    return ", ".join([*parts, *(("events for the rest",) if levels["raw_seconds"] else ())])


def _storage() -> FolderStorage:
    return FolderStorage(settings.SLUICE.tables)


def moment_of(us: int | None) -> datetime | None:
    """Return microseconds since the epoch as a time."""
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)
