"""Bring the tables of an installation up to date with Spark, and delete what is past its retention."""

from __future__ import annotations

import time

from pyspark.errors import PySparkException

from analytics.archive.read_locks import read_lock
from analytics.spark.session import connect, fetch
from analytics.spark.tables.rows import spark_rows
from analytics.tables.builder import BuildResult, TableBuilder, is_worthwhile
from analytics.tables.catalog import TableCatalog
from analytics.tables.status import LastBuild, hourly_since_us, write_last_build
from analytics.tables.storage import FolderStorage
from brokerapp.errors import BrokerError
from brokerapp.system.environment import Environment

#: Seconds after which a build stops, so that analyses need not wait for its worker; the next one continues.
BUILD_SECONDS = 120.0


class TablesLocked(BrokerError):
    """Another process computes the tables."""

    code = "tables-locked"


def update_tables(
    environment: Environment, seconds: float = BUILD_SECONDS, only_worthwhile: bool = False
) -> BuildResult:
    """Compute pending hours of all brokers, for so many seconds; return what was done.

    `only_worthwhile`: leave few pending events for later. Raises TablesLocked and SparkUnavailable.
    """
    storage, began = FolderStorage(environment.tables), time.monotonic()
    now_us = time.time_ns() // 1000
    since_us = hourly_since_us(now_us, environment.hourly_table_days)
    with storage.lock() as is_free:
        if not is_free:
            raise TablesLocked("tables are being computed by another process")
        catalogs = TableCatalog.all_of(storage, environment.archive)
        for catalog in catalogs:
            TableBuilder(catalog, lambda *_: {}).delete_expired(
                now_us, environment.hourly_table_days, environment.daily_table_days
            )
        done = BuildResult()
        try:
            for catalog in catalogs:
                if only_worthwhile and not is_worthwhile(catalog.pending(now_us, since_us), now_us):
                    catalog.store_merged()
                    continue
                with read_lock(environment.archive):
                    rows_of = spark_rows(connect(environment), fetch)
                    builder = TableBuilder(catalog, rows_of)
                    found = builder.build(now_us, since_us, began + seconds)
                done = BuildResult(done.hours + found.hours, done.events + found.events, done.is_done and found.is_done)
        except (PySparkException, BrokerError, OSError) as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
            write_last_build(storage, _last(began, done, reason))
            raise
        if done.hours:
            write_last_build(storage, _last(began, done))
    return done


def _last(began: float, done: BuildResult, error: str = "") -> LastBuild:
    seconds = round(time.monotonic() - began, 3)
    return LastBuild(time.time_ns() // 1000, seconds, done.hours, done.events, error)
