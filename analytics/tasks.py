"""Celery tasks that run and stop analyses. pyspark is imported only in children of Spark workers.

The console learns of the start and the end of a run by its task `console.run_changed(run_id, state, info)`, and of
progress by a key in the store (analytics/spark/run_progress.py). States in lower case:

    starting    a worker has it and waits for Spark; info: worker (its name in Celery)
    done        info: result (path under the folder of results), sentence
    failed      info: reason
    lost        info: reason; its worker or its Spark server stopped: the console may start the run again
    cancelled   info: reason
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from billiard.exceptions import WorkerLostError
from celery import Task, current_app, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import celeryd_after_setup, task_failure, worker_ready
from celery.worker.request import Request

from analytics.requests.catalogue import ANALYSES
from analytics.requests.errors import AnalysisFailed, RunCancelled, SparkOutOfMemory, SparkStopped
from analytics.requests.request import AnalysisRequest
from analytics.results import storage
from analytics.spark.run_progress import RunProgress
from analytics.spark.run_registry import RunRegistry
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.system import extras
from brokerapp.system.environment import Environment

#: Errors of a full disk or quota.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

log = logging.getLogger(__name__)

#: Upper bound of the time limit in seconds: Celery delivers longer tasks a second time (console.celery).
MAX_SECONDS = 3600
#: Time limits of an analysis in seconds; at the second one its process is killed.
SOFT_LIMIT = min(Environment.read().analysis_seconds, MAX_SECONDS)
HARD_LIMIT = SOFT_LIMIT + 60

#: Warm-up: seconds between attempts while the server starts, number of attempts, and time limit.
WARM_AGAIN, WARM_LOOKS, WARM_LIMIT = 1, 120, 300

RUN_CHANGED = "console.run_changed"
WORKER_STARTED = "console.worker_started"


class WatchedRequest(Request):
    """Reports a run whose process is killed at its time limit."""

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """Report the failure, as a killed process cannot."""
        super().on_timeout(soft, timeout)
        if not soft:
            reason = f"Killed after {_format_limit(timeout)}: it did not stop at its time limit."
            _report_end(self.args[0], "failed", reason)


@shared_task(
    name="analytics.tasks.analyse",
    bind=True,
    Request=WatchedRequest,
    queue="spark",
    acks_late=True,
    soft_time_limit=SOFT_LIMIT,
    time_limit=HARD_LIMIT,
    throws=(AnalysisFailed, RunCancelled),
)
def analyse(self: Task, run_id: str, request: Mapping[str, Any]) -> str | None:
    """Run an analysis and return the path of its result. A run that is delivered twice is computed once."""
    environment = Environment.read()
    if RunRegistry(environment).is_cancelled(run_id):
        return None
    if result := storage.load_result(environment.results, run_id):
        return _report_done(run_id, result)
    _progress(environment).clear(run_id)
    _report_state(run_id, "starting", worker=self.request.hostname or "")
    limit = (self.request.timelimit or (None, None))[1] or SOFT_LIMIT
    try:
        return _report_done(run_id, _execute(run_id, request, environment, limit))
    except RunCancelled:
        _report_state(run_id, "cancelled", reason="Cancelled during the run.")
        raise
    except AnalysisFailed as error:
        _report_state(run_id, "lost" if isinstance(error, SparkStopped) else "failed", reason=str(error))
        if isinstance(error, SparkStopped | SparkOutOfMemory):
            _request_warm_up(current_app)
        raise


@shared_task(name="analytics.tasks.cancel", queue="default")
def cancel(run_id: str) -> None:
    """Stop a run wherever it is: queued, in a worker, or in Spark.

    The console does this itself (console/analyses/run_service.py); the task serves what earlier versions queued.
    """
    runs = RunRegistry(Environment.read())
    if not runs.is_cancelled(run_id):  # else its worker was already told to stop
        runs.cancel(run_id)
        # SIGTERM lets the worker's child stop in Spark what it does for the run.
        current_app.control.revoke(run_id, terminate=True, signal="SIGTERM")
    _report_state(run_id, "cancelled", reason="Cancelled.")
    sweep.delay(run_id)


@shared_task(name="analytics.tasks.sweep", queue="spark")
def sweep(run_id: str, session_id: str | None = None) -> bool:
    """Interrupt what Spark still does for a run; return whether there was anything.

    With a session only its operations: the run may have started again in another one. A task of its own, because only
    Spark workers have pyspark loaded.
    """
    from analytics.spark.run_execution import interrupt_run

    return interrupt_run(run_id, Environment.read(), session_id)


@shared_task(
    name="analytics.tasks.warm_up",
    bind=True,
    queue="spark",
    ignore_result=True,
    max_retries=WARM_LOOKS,
    time_limit=WARM_LIMIT,
)
def warm_up(self: Task) -> None:
    """Warm up Spark, so that the first analysis need not wait.

    While the server does not listen yet the task is retried, so that runs come first.
    """
    from analytics.spark.session import SparkUnavailable
    from analytics.spark.warmup import warm_up

    began = time.monotonic()
    try:
        warm_up(Environment.read())
        log.info("Spark is warmed up: it took %.1f s", time.monotonic() - began)
    except SparkUnavailable as error:
        raise self.retry(countdown=WARM_AGAIN, exc=error) from None
    except AnalysisFailed as error:
        log.warning("Spark was not warmed up: %s", error)


@shared_task(name="analytics.tasks.check_tables", queue="default", ignore_result=True)
def check_tables() -> None:
    """Request an update of the tables if enough is pending. Scheduled; reads manifests only, without Spark."""
    from analytics.tables.builder import has_work

    if extras.is_installed(extras.ANALYTICS) and has_work(Environment.read()):
        request_update()


def request_update(only_worthwhile: bool = True) -> None:
    """Have a Spark worker update the tables."""
    current_app.send_task(update.name, kwargs={"only_worthwhile": only_worthwhile}, queue="spark", expires=SOFT_LIMIT)


@shared_task(
    name="analytics.tasks.update_tables",
    queue="spark",
    ignore_result=True,
    soft_time_limit=SOFT_LIMIT,
    time_limit=HARD_LIMIT,
    throws=(BrokerError,),
)
def update(only_worthwhile: bool = True) -> None:
    """Compute pending hours of the tables for two minutes, and request the rest as another task."""
    from analytics.spark.tables.update import TablesLocked, update_tables  # loads pyspark

    try:
        done = update_tables(Environment.read(), only_worthwhile=only_worthwhile)
    except TablesLocked:
        return  # the process that computes them finds what is pending, too
    if done.hours:
        log.info("tables: computed %d hours of %d events", done.hours, done.events)
    if not done.is_done:
        request_update(only_worthwhile)


def _execute(run_id: str, request: Mapping[str, Any], environment: Environment, limit: float) -> dict[str, Any]:
    """Run the analysis and return the stored result. Raises AnalysisFailed or RunCancelled; `limit` is in seconds."""
    progress, latest = _progress(environment), {}

    def report(**info: Any) -> None:
        if info != latest.get("info"):
            latest["info"] = info
            progress.write(run_id, info)

    try:
        from analytics.spark.run_execution import (
            RunExecution,  # loads pyspark, at a child's first run: its time counts, too
        )

        return RunExecution(run_id, AnalysisRequest.from_dict(request), environment, report).run()
    except (AnalysisFailed, RunCancelled):
        raise
    except RequestRefused as error:
        raise AnalysisFailed(str(error)) from None
    except SoftTimeLimitExceeded:
        raise AnalysisFailed(f"Timed out after {_format_limit(limit)}. Choose a shorter time range.") from None
    except OSError as error:
        log.exception("run %s failed", run_id)
        raise AnalysisFailed(_os_error_reason(error)) from None
    except Exception as error:  # top of the run: the trace goes to the log, the reason to the page
        log.exception("run %s failed", run_id)
        raise AnalysisFailed(f"{type(error).__name__}: {error}".partition("\n")[0][:300]) from None


def _progress(environment: Environment) -> RunProgress:
    return RunProgress(environment.redis_url, environment.broker_name)


def _format_limit(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 else f"{seconds:g} s"


def _os_error_reason(error: OSError) -> str:
    """Return the reason that pages show for an error of the operating system."""
    if error.errno in DISK_FULL:
        return f"No disk space for the result ({error.strerror}). Free disk space, then run the analysis again."
    return f"{type(error).__name__}: {error}".partition("\n")[0][:300]


def _report_done(run_id: str, result: Mapping[str, Any]) -> str:
    path = storage.result_path(run_id)
    _report_state(run_id, "done", result=path, sentence=result["sentence"])
    return path


def _report_state(run_id: str, state: str, **info: Any) -> None:
    current_app.send_task(RUN_CHANGED, args=[run_id, state, info], queue="default")


@task_failure.connect
def _on_child_lost(sender: Task, exception: BaseException, args: Any, **_: Any) -> None:
    """Report a run whose process was killed, as the process cannot."""
    if sender.name == analyse.name and isinstance(exception, WorkerLostError):
        _report_end(args[0], "lost", "The worker process was killed. The host may have run out of memory.")


def _report_end(run_id: str, state: str, reason: str) -> None:
    runs = RunRegistry(Environment.read())
    session_id = runs.session_of(run_id)
    if not runs.is_cancelled(run_id):
        _report_state(run_id, state, reason=reason)
    if session_id is not None:
        sweep.delay(run_id, session_id)


@celeryd_after_setup.connect
def _preload_modules(instance: Any, **_: Any) -> None:
    """Load modules before children are forked: no run waits for them, and children share their memory."""
    if _runs_analyses(instance.app):
        import_module("analytics.spark.warmup")
        for each in ANALYSES.values():
            import_module(each.module)


@worker_ready.connect
def _on_worker_ready(sender: Any, **_: Any) -> None:
    """Report to the console at once that earlier runs of this worker are lost."""
    if _runs_analyses(sender.app):
        sender.app.send_task(WORKER_STARTED, args=[sender.hostname, time.time()], queue="default")
        _request_warm_up(sender.app)


def _request_warm_up(app: Any) -> None:
    if Environment.read().warms_up:
        app.send_task(warm_up.name, queue="spark", expires=WARM_LIMIT)


def _runs_analyses(app: Any) -> bool:
    """Return whether this worker runs analyses."""
    return analyse.name in app.tasks and "spark" in app.amqp.queues.consume_from
