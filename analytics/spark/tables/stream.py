"""Keep the current hourly tables up to date with Structured Streaming: `python -m analytics.spark.tables.stream`.

A process of its own starts a query that reads new events through the data source `sluice` and adds them to the rows of
the current hours (analytics/tables/current_hours.py), by the same transforms as builds. A build still computes each
hour when it is complete, and its tables replace these rows.

The stored rows say up to which entry events are counted. Spark's checkpoint starts empty with each query: a second
record of the position could differ from the first after a crash.
"""

from __future__ import annotations

import logging
import shutil
import signal
import sys
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.stream_ids import id_of, position_of
from analytics.spark.data_source import SluiceSource
from analytics.spark.session import connect, fetch
from analytics.spark.tables.rows import Collect
from analytics.tables.catalog import TableCatalog
from analytics.tables.current_hours import CurrentHours, read_current_hours, write_current_hours
from analytics.tables.definitions import HOUR_US
from analytics.tables.measures import COLUMNS, rows_of_hours
from analytics.tables.storage import FolderStorage
from brokerapp.errors import BrokerError
from brokerapp.system.environment import Environment

#: Seconds between two batches: tables are to be current within a minute, and a batch costs as much for few events as
#: for thousands.
TRIGGER_SECONDS = 20
#: Events of a batch at most, about: they are in the memory of one process while they are counted.
BATCH_EVENTS = 200_000
#: Microseconds that the query catches up at most after a pause: builds compute what is older.
CATCH_UP_US = 6 * HOUR_US
#: Microseconds before an hour from which entries may have events of the hour: clocks of nodes differ a little.
CLOCK_SKEW_US = 60_000_000
#: Seconds before a query that failed is started again.
RETRY_SECONDS = 10.0
#: Seconds between checks of the query.
_POLL_SECONDS = 2.0
#: Flows are split at the notes of all logs.
_ALL_CUTS = 1_000_000
#: Seconds to wait for a batch that an earlier query is counting.
LOCK_SECONDS = 60.0
_LOCK = "_lock-current"

log = logging.getLogger(__name__)


class StreamReplaced(BrokerError):
    """Another query counts the current hours."""

    code = "stream-replaced"


@dataclass(frozen=True, slots=True)
class BatchCounter:
    """Adds the events of a batch to the stored rows. Spark calls it in a process of its own."""

    tables: Path
    archive: Path
    broker: str
    writer: str
    collect: Collect = fetch

    def __call__(self, frame: DataFrame, _number: int) -> None:
        """Count the events of a batch that are not counted yet. Raises StreamReplaced."""
        storage = FolderStorage(self.tables)
        catalog = TableCatalog(storage, BrokerArchive(self.archive, self.broker))
        with storage.lock(_LOCK) as is_free:
            current = read_current_hours(catalog)
            if not is_free or current is None or current.writer != self.writer:
                raise StreamReplaced("another query counts the current hours")
            new = self.collect(frame.where(F.col("entry") > current.position).select("entry", *COLUMNS))
            if not new.num_rows:
                return
            times = new["ts"].cast(pa.int64())
            last, newest_us = pc.max(new["entry"]).as_py(), pc.max(times).as_py()
            events = new.filter(pc.greater_equal(times, current.since_us))
            rows = rows_of_hours(lambda: [events], self.broker, _ALL_CUTS)
            counted = current.with_counted(rows, last, newest_us, time.time_ns() // 1000)
            write_current_hours(catalog, counted.without_closed(catalog))


class TableStream:
    """Runs the query of one broker."""

    def __init__(
        self, environment: Environment, trigger_seconds: float = TRIGGER_SECONDS, collect: Collect = fetch
    ) -> None:
        self._environment, self._trigger_seconds, self._collect = environment, trigger_seconds, collect
        archive = BrokerArchive(environment.archive, environment.broker_name)
        self._storage = FolderStorage(environment.tables)
        self._catalog = TableCatalog(self._storage, archive)

    def start(self, session: SparkSession, now_us: int) -> StreamingQuery:
        """Start the query where the stored rows end; any earlier one stops at its next batch."""
        current = self._take_over(now_us)
        environment = self._environment
        checkpoints = environment.spark / "table-stream"
        shutil.rmtree(checkpoints, ignore_errors=True)
        session.dataSource.register(SluiceSource)
        events = (
            session.readStream.format("sluice")
            .option("archive", str(environment.archive))
            .option("redis", environment.redis_url)
            .option("broker", environment.broker_name)
            .option("startingOffsets", id_of(current.position))
            .option("maxEventsPerTrigger", str(BATCH_EVENTS))
            .load()
        )
        count = BatchCounter(
            environment.tables, environment.archive, environment.broker_name, current.writer, self._collect
        )
        return (
            events.writeStream.queryName("sluice-tables")
            .foreachBatch(count)
            .option("checkpointLocation", str(checkpoints / current.writer))
            .trigger(processingTime=f"{self._trigger_seconds} seconds")
            .start()
        )

    def _take_over(self, now_us: int) -> CurrentHours:
        """Store the name of a new query in the rows, so that it alone goes on counting."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            with self._storage.lock(_LOCK) as is_free:
                if is_free:
                    found = resumed(read_current_hours(self._catalog), now_us, self._catalog.archive.removed_until)
                    current = replace(found.without_closed(self._catalog), writer=str(uuid.uuid4()))
                    write_current_hours(self._catalog, current)
                    return current
            if time.monotonic() > deadline:
                raise StreamReplaced("another query has been counting a batch for too long")
            time.sleep(_POLL_SECONDS)


def resumed(stored: CurrentHours | None, now_us: int, removed_until: int = 0) -> CurrentHours:
    """Return the rows to continue with: the stored ones, or from the start of this hour where builds are nearer.

    `removed_until`: the position up to which the archive has removed events.
    """
    oldest = max(position_of(f"{(now_us - CATCH_UP_US) // 1000}-0"), removed_until)
    if stored is not None and stored.position >= oldest:
        return stored
    since_us = now_us // HOUR_US * HOUR_US
    return CurrentHours(position_of(f"{(since_us - CLOCK_SKEW_US) // 1000}-0"), since_us)


def run(environment: Environment, stopping: Event) -> None:
    """Keep the query running until `stopping` is set."""
    stream = TableStream(environment)
    while not stopping.is_set():
        try:
            query = stream.start(connect(environment), time.time_ns() // 1000)
            try:
                while query.isActive and not stopping.wait(_POLL_SECONDS):
                    pass
                if (failure := query.exception()) is not None:
                    raise failure
            finally:
                query.stop()
        except (PySparkException, BrokerError, OSError) as error:
            log.warning("%s; starting the query again", f"{type(error).__name__}: {error}".partition("\n")[0][:500])
            stopping.wait(RETRY_SECONDS)


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s tables: %(message)s")
    environment, stopping = Environment.read(), Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(environment, stopping)
    return 0


if __name__ == "__main__":
    sys.exit(main())
