"""brokerctl's verbs for the hourly and daily tables of recorded traffic: their state, and rebuilding a period."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import RequestRefused
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb
from brokerapp.management.verbs.whatif_verb import MOMENT
from brokerapp.system.environment import Environment

if TYPE_CHECKING:
    from analytics.tables.storage import FolderStorage


def add_table_verbs(verbs: Subparsers) -> None:
    """Add the verbs to brokerctl's."""
    add_verb(verbs, "tables", "show the hourly and daily tables of recorded traffic")
    parser = add_verb(verbs, "rebuild-tables", "compute tables of recorded traffic again")
    parser.add_argument("--since", required=True, help=MOMENT)
    parser.add_argument("--until", default="", help="end of the time range, in the same form (default: now)")
    parser.add_argument("--wait", action="store_true", help="compute them here instead of in a worker")


async def tables(admin: BrokerAdmin, args: Namespace) -> Answer:
    """Show the state of the tables of all brokers in the archive."""
    # Here, with what reads files: other verbs need not wait for it.
    from analytics.model.wording import pluralize
    from analytics.tables.status import current_hours_status, status_json

    environment, storage = _storage(args)
    now_us = time.time_ns() // 1000
    found = status_json(storage, environment.archive, now_us, environment.hourly_table_days)
    lines = [
        f"{each['broker']}: computed up to {_time(each['computed_until_us'])}, {pluralize(each['hours'], 'hour')}, "
        f"{pluralize(each['days'], 'day')}, {pluralize(each['events'], 'event')}, "
        f"{pluralize(each['bytes'], 'byte')}; pending: {pluralize(each['pending_hours'], 'hour')} with "
        f"{pluralize(each['pending_events'], 'event')}"
        for each in found["brokers"]
    ]
    if build := found["last_build"]:
        outcome = (
            f"failed: {build['error']}"
            if build["error"]
            else f"{pluralize(build['hours'], 'hour')} in {build['seconds']} s"
        )
        lines.append(f"last build: {_time(build['finished_us'])}, {outcome}")
    named = replace(environment, broker_name=admin.broker, redis_url=admin.redis_url)
    current = current_hours_status(named, now_us)
    if current is not None:
        behind = "unknown" if current.behind_seconds is None else f"{current.behind_seconds:.0f} s"
        lines.append(
            f"current hours: counted up to {_time(current.counted_until_us)}, {behind} behind, "
            f"{pluralize(current.events, 'event')} in {pluralize(current.hours, 'hour')}"
        )
    state = {**found, "current": None if current is None else asdict(current)}
    return state, lines or ["no recorded traffic"]


async def rebuild_tables(_admin: BrokerAdmin, args: Namespace) -> Answer:
    """Have the hours of a time range computed again: by a worker within ten minutes, or here."""
    from analytics.model.wording import pluralize
    from analytics.requests.time_ranges import read_time_range
    from analytics.tables.status import request_rebuild

    environment, storage = _storage(args)
    window = read_time_range(args.since, args.until, time.time_ns() // 1000)
    if window is None:
        raise RequestRefused("--since is empty: expected " + MOMENT)
    hours = request_rebuild(storage, environment.archive, window.since_us, window.until_us)
    if not args.wait:
        return {"hours": hours}, [f"{pluralize(hours, 'hour')} will be computed again within ten minutes"]
    from analytics.spark.tables.update import update_tables  # loads pyspark

    done = update_tables(environment, float("inf"))
    return {"hours": hours, "computed": done.hours}, [
        f"{pluralize(done.hours, 'hour')} of {pluralize(done.events, 'event')} computed"
    ]


def _storage(args: Namespace) -> tuple[Environment, FolderStorage]:
    from analytics.tables.storage import FolderStorage

    environment = Environment.read()
    environment = environment if args.data is None else replace(environment, data=args.data.resolve())
    return environment, FolderStorage(environment.tables)


def _time(us: int | None) -> str:
    return "never" if us is None else f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M} UTC"
