"""Execute one run of an analysis, from the request to the stored result, as a client of Spark."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.footer_stats import oldest_version, recording_start_us, rows_within
from analytics.archive.read_locks import read_lock
from analytics.archive.trace_stream import NODE_DELAY_US, TraceStream
from analytics.model.version_limitations import limitation_notes
from analytics.readers.completeness import Completeness
from analytics.requests.catalogue import analysis_for
from analytics.requests.errors import AnalysisFailed, RunCancelled, SparkOutOfMemory, SparkStopped
from analytics.requests.question import RunQuestion
from analytics.requests.request import AnalysisRequest, TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.results import storage
from analytics.results.storage import JobResult
from analytics.spark.event_counts import UnreadableEvents
from analytics.spark.event_frames import EventReader
from analytics.spark.jvm import HEAP
from analytics.spark.run_registry import RunRegistry
from analytics.spark.server import ran_out_of_memory
from analytics.spark.session import SparkUnavailable, connect, fetch, fetch_within, interrupt_session, is_alive
from analytics.spark.watchdog import Watchdog
from analytics.sql.access import DataAccess
from analytics.tables.catalog import recording_start
from analytics.tables.reader import TableReader
from analytics.tables.storage import FolderStorage
from brokerapp.errors import StoreUnavailable
from brokerapp.model.definition_codec import from_json
from brokerapp.system.environment import Environment

#: Callback with the progress of a run: `stage`, a description; `progress`, the share that is done (0 to 1); `rows`, the
#: number of events in the files that it reads, if known.
ProgressReport = Callable[..., None]

_LONGEST_REASON = 300
#: Spark's conditions for a data file that it cannot read.
_UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE")
#: Java's messages for a full disk or quota.
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


class UnreadableFile(AnalysisFailed):
    """Spark could not read a file of the archive."""


class RunExecution:
    """Executes one run. Raises AnalysisFailed, with a reason that pages show, and RunCancelled."""

    def __init__(self, run_id: str, request: AnalysisRequest, environment: Environment, report: ProgressReport) -> None:
        self._run_id, self._request, self._environment, self._report = run_id, request, environment, report
        self._analysis = analysis_for(request)
        self._job: Any = import_module(self._analysis.module)
        self._runs = RunRegistry(environment)
        self._step, self._title, self._part = 0, "", 0.0
        self._rows: dict[str, int] = {}
        self._recorded_since_us: int | None = None
        self._began = time.time()
        self._completeness = Completeness()
        self._tables: TableReader | None = None

    def run(self) -> dict[str, Any]:
        """Execute the run and return its stored result."""
        started = time.monotonic()
        self._unarchived = self._reachable_stream()
        window, fresh_until_us = self._window()
        with Watchdog(self._environment) as watchdog:
            try:
                findings = self._run_on_archive(window, fresh_until_us)
            except (AnalysisFailed, PySparkException) as error:
                raise (watchdog.failure or error) from None
        return storage.save_result(
            self._environment.results,
            self._run_id,
            findings,
            window=window,
            fresh_until_us=fresh_until_us,
            definition=analysis_for(self._request).version,
            seconds=time.monotonic() - started,
            began_us=self._recorded_since_us,
            completeness=self._completeness.to_json(),
            levels=None if self._tables is None else self._tables.levels.to_json(window.up_to(fresh_until_us)),
        )

    def _run_on_archive(self, window: TimeWindow, fresh_until_us: int | None) -> JobResult:
        session = self._session()
        with read_lock(self._environment.archive):
            self._tables = TableReader(
                session,
                FolderStorage(self._environment.tables),
                self._environment.archive,
                self._completeness,
                None if self._unarchived is None else self._unarchived[1],
            )
            tabled = self._tables.first_computed_us() if self._analysis.reads_tables else None
            self._recorded_since_us = recording_start(recording_start_us(self._environment.archive), tabled)
            rows = rows_within(self._environment.archive, window)
            self._rows = {} if rows is None else {"rows": rows}
            findings = self._run_job_without_damage(session, window.up_to(fresh_until_us))
            missing = limitation_notes(self._request.kind, oldest_version(self._environment.archive, window))
            return replace(findings, notes=(*findings.notes, *missing))

    def _reachable_stream(self) -> tuple[str, str] | None:
        """Return URL and broker of the stream with unarchived events; None if the store does not answer."""
        place = self._environment.redis_url, self._environment.broker_name
        stream = TraceStream(*place)
        try:
            stream.last()
        except StoreUnavailable:
            return None
        finally:
            stream.close()
        return place

    def _window(self) -> tuple[TimeWindow, int | None]:
        """Return the window of the request and the moment up to which its events can be read (None: unknown).

        With the store at hand, a window that ends now is cut where all events are known. Of a window that ended just
        now, wait for the events that nodes have not sent yet.
        """
        now_us = time.time_ns() // 1000
        if self._unarchived is None:
            archive = BrokerArchive(self._environment.archive, self._environment.broker_name)
            return self._request.window_at(now_us), archive.fresh_until_us
        known_us = now_us - NODE_DELAY_US
        window = self._request.window_at(known_us)
        if known_us < window.until_us <= now_us:
            time.sleep((window.until_us - known_us) / 1e6)
            known_us = window.until_us
        return window, known_us

    def _session(self) -> SparkSession:
        try:
            return connect(self._environment)
        except SparkUnavailable as error:
            raise SparkStopped(f"Spark is not available: {error}") from error

    def _run_job_without_damage(self, session: SparkSession, window: TimeWindow) -> JobResult:
        """Run the job; when Spark cannot read a file, run it again without the files whose checksums are wrong."""
        try:
            return self._run_job(session, window)
        except UnreadableFile:
            if not self._completeness.verify():
                raise
        self._step = 0
        return self._run_job(session, window)

    def _run_job(self, session: SparkSession, window: TimeWindow) -> JobResult:
        self._runs.record_session(self._run_id, session.session_id)
        session.registerProgressHandler(self._progress)
        session.addTag(self._run_id)
        over = False  # whether Spark has finished its work for the run
        try:
            findings = self._job.run(self._question(session, window), self._collect)
            over = True
        except PySparkException as error:
            over = True
            if self._runs.is_cancelled(self._run_id):
                raise RunCancelled from None
            raise _failure(error, session, self._environment, self._began) from None
        except UnreadableEvents as error:  # no task had begun
            over = True
            raise UnreadableFile(f"{type(error).__name__}: {error}"[:_LONGEST_REASON]) from None
        finally:
            session.removeTag(self._run_id)
            session.removeProgressHandler(self._progress)
            if not over:  # for example a time limit: the server must not continue in vain
                _interrupt(session, self._run_id)
            self._runs.clear_session(self._run_id)
        return findings

    def _question(self, session: SparkSession, window: TimeWindow) -> RunQuestion:
        routing, trial, access = self._request.routing, self._request.trial, self._request.access
        reader = EventReader(session, self._environment.archive, self._unarchived, self._completeness)
        return RunQuestion(
            window=window,
            read=reader.events,
            count=reader.counts,
            parameters=self._analysis.values(self._request.parameters),
            routing=None if routing is None else from_json(routing),
            trial=None if trial is None else WhatIfRequest.from_json(trial),
            began_us=self._recorded_since_us,
            tables=self._tables,
            access=None if access is None else DataAccess.from_json(access),
            rows=self._rows.get("rows", 0),
        )  # fmt: skip

    def _collect(self, title: str, frame: DataFrame, max_bytes: int | None = None) -> pa.Table:
        """Compute a frame as the next step of the run, unless the run was cancelled or the rows take more bytes."""
        if self._runs.is_cancelled(self._run_id):
            raise RunCancelled
        self._title, self._part, self._step = title, 0.0, self._step + 1
        self._report_step("")
        return fetch(frame) if max_bytes is None else fetch_within(frame, max_bytes)

    # Spark calls with these very keywords, and an exception in here would fail the query.
    def _progress(self, stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        tasks, finished = sum(each.num_tasks for each in stages), sum(each.num_completed_tasks for each in stages)
        if tasks and not done:
            # Stages are announced one by one, so the sum grows; what is shown must not fall.
            self._part = max(self._part, finished / tasks)
            self._report_step(f": {finished} of {tasks} tasks")

    def _report_step(self, detail: str) -> None:
        steps = self._job.STEPS
        stage = f"{self._step} of {steps}: {self._title}{detail}"
        self._report(stage=stage, progress=(self._step - 1 + self._part) / steps, **self._rows)


def interrupt_run(run_id: str, environment: Environment, session_id: str | None = None) -> bool:
    """Interrupt Spark's operations for a run of another process, in a session (default: its last); whether any ran."""
    runs = RunRegistry(environment)
    last = runs.session_of(run_id)
    session_id = session_id or last
    if session_id is None:
        return False
    try:
        return bool(interrupt_session(environment, session_id, run_id))
    except Exception:  # whatever the client's libraries raise: a server that does not answer does no work for the run
        return False
    finally:
        if session_id == last:
            runs.clear_session(run_id)


def _interrupt(session: SparkSession, run_id: str) -> None:
    with contextlib.suppress(Exception):  # as above
        session.interruptTag(run_id)


def _failure(error: PySparkException, session: SparkSession, environment: Environment, began: float) -> AnalysisFailed:
    """Convert an error of Spark to a failure with a reason: kind of error, condition, and first line."""
    if not is_alive(session):
        again = "It restarts automatically."
        if ran_out_of_memory(environment, since=began):
            full = f"Spark ran out of memory (its heap is {HEAP})."
            return SparkOutOfMemory(f"{full} {again} Choose a shorter time range.")
        return SparkStopped(f"The Spark server stopped during the run. {again} Run the analysis again.")
    if any(words in str(error) for words in _DISK_FULL):
        return AnalysisFailed("Spark ran out of disk space. Free disk space, then run the analysis again.")
    condition = error.getCondition()
    message = (error.getMessage() or str(error)).strip().partition("\n")[0]
    parts = (type(error).__name__, condition, message.removeprefix(f"[{condition}]").strip())
    is_unreadable = (condition or "").startswith(_UNREADABLE) or UnreadableEvents.__name__ in str(error)
    kind = UnreadableFile if is_unreadable else AnalysisFailed
    return kind(": ".join(filter(None, parts))[:_LONGEST_REASON])
