"""Moves trace events from the store's stream to the Parquet archive; started as `python -m analytics.archive.archiver`.

Exactly once across a kill at any point: the place in the stream stands in the archive's own commit record
(broker_archive.py),
and the stream is trimmed only after what it held is in place. One archiver at a time, by a lock on a file.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event

import pyarrow as pa

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.data_files import ARCHIVED, to_archive_schema
from analytics.archive.format_file import FORMATS, read_format
from analytics.archive.housekeeping import ArchiveLimits, Housekeeping
from analytics.archive.stream_ids import START, position_of
from analytics.archive.trace_stream import NODE_DELAY_US, TraceStream
from analytics.rollups.counters import count_events
from analytics.rollups.store import HOUR, RollupStore
from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.system import atomic_files
from brokerapp.system.environment import Environment
from brokerapp.tracing.decoding import decode

#: How long events wait in the stream.
FLUSH_SECONDS = 5.0
#: Events that go into one append: bounds memory (about 150 bytes each) and the size of files.
FLUSH_EVENTS = 500_000
#: Seconds between looks for what is to be compacted or removed.
HOUSEKEEPING_SECONDS = 60.0
#: Names the step at which a test ends this process, as STEP or STEP:N for the N-th time it is reached.
FAULT_VARIABLE = "SLUICE_ARCHIVER_FAULT"

log = logging.getLogger(__name__)


class Archiver:
    """Moves events from a stream to an archive, a pass at a time."""

    def __init__(self, stream: TraceStream, archive: BrokerArchive, at: Callable[[str], None]) -> None:
        self._stream, self._archive, self._on_step = stream, archive, at
        self._commit = archive.recover()
        atomic_files.make_folder(archive.folder)
        self._rollups, self._rollups_cleaned_at = RollupStore(archive.folder), time.time()
        missed = archive.events_after(self._rollups.position)  # what was archived but not counted
        self._rollups.add(map(count_events, missed), position_of(self._commit.offset))

    def close(self) -> None:
        """Close the rollup database."""
        self._rollups.close()

    def flush(self) -> bool:
        """Archive what the stream holds, at most FLUSH_EVENTS; whether nothing was left."""
        now_us = time.time_ns() // 1000
        tables, commit, drained = self._collect()
        if commit != self._commit:
            events = pa.concat_tables(tables)
            self._commit = self._archive.append(events, commit)
            self._on_step("before-rollups")
            self._rollups.add([count_events(events)], position_of(commit.offset))
            self._on_step("before-trim")
        if commit.offset != START:
            self._stream.trim(commit.offset)
            self._on_step("trimmed")
        if drained:
            self._archive.write_freshness(now_us - NODE_DELAY_US)
            self._delete_old_rollups(now_us / 1e6)
        return drained

    def _delete_old_rollups(self, now: float) -> None:
        """Delete rollups past their retention, once an hour."""
        if now >= self._rollups_cleaned_at + HOUR:
            self._rollups.delete_expired(now)
            self._rollups_cleaned_at = now

    def _collect(self) -> tuple[list[pa.Table], ArchiveCommit, bool]:
        """Read events after the last commit; return them, the commit to archive them, and whether none is left."""
        commit, tables, events = self._commit, [ARCHIVED.empty_table()], 0
        while events < FLUSH_EVENTS:
            page = self._stream.read(commit.offset, commit.ordinal)
            if page.renewed:
                log.warning("the store was emptied: what it held after %s is lost", commit.offset)
                commit = replace(commit, offset=START, ordinal=0, gaps=commit.gaps + 1)
                continue
            if page.missed:
                log.warning("%d batches after %s were trimmed before they were archived", page.missed, commit.offset)
                commit = replace(
                    commit, gaps=commit.gaps + 1, lost_batches=commit.lost_batches + page.missed,
                    ordinal=commit.ordinal + page.missed,
                )  # fmt: skip
            if not page.entries:
                return tables, commit, True
            for id, batch in page.entries:
                table = _events(id, batch)
                commit = replace(
                    commit, offset=id, ordinal=commit.ordinal + 1, events=commit.events + table.num_rows,
                    unreadable_batches=commit.unreadable_batches + (not table.num_rows),
                )  # fmt: skip
                tables.append(table)
                events += table.num_rows
        return tables, commit, False


def _events(id: str, batch: bytes) -> pa.Table:
    """Return the events of one batch. One that cannot be read has none: it must not stop those behind it."""
    try:
        return to_archive_schema(decode(batch), position_of(id))
    except (pa.ArrowException, ValueError) as error:
        log.error("trace batch %s cannot be read: %s", id, error)
        return ARCHIVED.empty_table()


def run(archiver: Archiver, housekeeping: Housekeeping, stopping: Event) -> None:
    """Archive and run housekeeping until `stopping` is set, then flush once more."""
    due = 0.0
    while not stopping.is_set():
        try:
            drained = archiver.flush()
        except StoreUnavailable as error:
            log.warning("%s; trying again", error)
            drained = True
        if drained and time.monotonic() >= due:
            more = housekeeping.step(time.time_ns() // 1000)
            due = time.monotonic() + (0 if more else HOUSEKEEPING_SECONDS)
        if drained:
            stopping.wait(FLUSH_SECONDS)
    archiver.flush()


def fault_injector(text: str) -> Callable[[str], None]:
    """Return a callback that kills this process at the step that the text names; for tests."""
    step, _, times = text.partition(":")
    left = int(times or 1)

    def at(reached: str) -> None:
        nonlocal left
        left -= reached == step
        if reached == step and not left:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s archiver: %(message)s")
    environment = Environment.read()
    at = fault_injector(os.environ.get(FAULT_VARIABLE, ""))
    archive = BrokerArchive(environment.archive, environment.broker_name, at, environment.indexed)
    atomic_files.make_folder(archive.folder)
    with (archive.folder / "_lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.error("another archiver writes to %s", archive.folder)
            return 1
        try:
            FORMATS.check(read_format(archive.folder))
        except ConfigurationRefused as refused:
            log.error("%s", refused)
            return 1
        stopping = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        stream = TraceStream(environment.redis_url, environment.broker_name)
        try:
            bounds = ArchiveLimits(environment.archive_days, environment.archive_bytes)
            run(Archiver(stream, archive, at), Housekeeping(archive, bounds, environment.indexed, at), stopping)
        except StoreUnavailable as error:
            log.warning("%s; what it holds is archived at the next start", error)
        finally:
            stream.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
