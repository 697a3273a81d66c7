"""Starts and cancels runs of analyses, records their states and formats them for pages."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from analytics.requests.catalogue import SQL
from analytics.spark.run_progress import RunProgress
from analytics.spark.run_registry import RunRegistry
from brokerapp.errors import RequestRefused, StoreUnavailable
from brokerapp.system import extras
from console.analyses import run_queue
from console.analyses.models import AnalysisRun
from console.analyses.questions import describe_parameters
from console.audit import trail
from console.broker.task_queue import enqueue, revoke
from console.ui.formatting import number_format
from console.ui.formatting.uuids import valid_ids

logger = logging.getLogger(__name__)

#: The group of the channel layer that hears when any run moves on.
GROUP = "sluice.runs"
State = AnalysisRun.State
#: States of a run that a worker has.
ACTIVE = (State.STARTING, State.RUNNING)

#: States in words.
LABELS = {
    State.QUEUED: "Queued",
    State.STARTING: "Starting",
    State.RUNNING: "Running",
    State.DONE: "Done",
    State.FAILED: "Failed",
    State.CANCELLED: "Cancelled",
}


#: Runs of one person that may wait: what is beyond is a mistake in a loop somewhere.
MAX_WAITING = 20
#: How often a run of a report is begun at most. Whoever asked for another one sees that it failed, and may ask again.
MOST_TRIES = 3
#: What a run is told whose worker, or whose Spark server, ended: it is no state of a run.
LOST = "lost"
#: What `changed` may be told beside the state.
INFO_FIELDS = ("stage", "progress", "reason", "sentence", "result", "worker", "rows")


def start(
    kind: str,
    title: str,
    parameters: dict[str, Any],
    asked_by: str,
    edition_id: int | None = None,
    trial: dict[str, Any] | None = None,
    access: dict[str, Any] | None = None,
) -> AnalysisRun:
    """Queue an analysis, as part of a report's edition or by itself, and return its run.

    `trial`: what is to be judged, where the analysis judges. `access`: what the user of an SQL statement may see.

    Raises RequestRefused when too many of this person wait, and where the extra `analytics` is not installed.
    """
    extras.require(extras.ANALYTICS, "Analyses need")
    if kind == SQL and access is None and edition_id is None:
        raise RequestRefused("SQL queries are not started as other analyses: use the page or the API for SQL.")
    if edition_id is None and AnalysisRun.objects.filter(asked_by=asked_by, state=State.QUEUED).count() >= MAX_WAITING:
        raise RequestRefused(
            f"{asked_by} already has {MAX_WAITING} queued analyses. Cancel some, or wait until they finish."
        )
    request = {"kind": kind, **parameters}
    run = AnalysisRun.objects.create(
        kind=kind,
        title=title,
        request=request,
        asked_by=asked_by,
        edition_id=edition_id,
        trial=trial,
        access=access,
    )
    send_next()
    run.refresh_from_db()
    return run


def send_next() -> None:
    """Send the next queued runs to workers, up to the limits."""
    from console.analyses.run_requests import (
        request_of,  # needs the catalogue of analytics, which a web worker may do without
    )

    refused = 0
    for run in run_queue.claim_next(settings.SLUICE):
        try:
            request = request_of(run)
            enqueue("analytics.tasks.analyse", str(run.id), request, queue="spark", task_id=str(run.id))
        except StoreUnavailable as error:
            _record(str(run.id), State.FAILED, {"reason": str(error)})
        except RequestRefused as error:  # its owner lost the permission
            _record(str(run.id), State.FAILED, {"reason": str(error)})
            refused += 1
        notify(str(run.id))
    if refused:  # others may have their turns
        send_next()


def cancel(run: AnalysisRun, by: str) -> None:
    """Cancel a run in any state. The only place that cancels; raises StoreUnavailable."""
    on_state_changed(str(run.id), State.CANCELLED, {"reason": f"Cancelled by {by}."})
    _stop(str(run.id))


def _stop(run_id: str) -> None:
    """Stop a run that is over wherever it may still be: queued, in a worker, or in Spark. Raises StoreUnavailable."""
    RunRegistry(settings.SLUICE).cancel(run_id)
    revoke(run_id)  # directly: workers of short tasks may be busy
    enqueue("analytics.tasks.sweep", run_id, queue="spark")


def on_state_changed(run_id: str, state: str, info: dict[str, Any]) -> bool:
    """Record that a run reached a state; return False when it is unknown or already over.

    `info` may hold reason, sentence, result (path under the folder of results), worker, stage, progress (0 to 1) and
    rows. The state may be LOST.
    """
    if state == LOST:
        return on_worker_lost(run_id, info.get("reason", ""))
    is_new = _record(run_id, state, info)
    if is_new:
        notify(run_id)
        if state in AnalysisRun.FINAL:
            send_next()
    return is_new


def _record(run_id: str, state: str, info: dict[str, Any]) -> bool:
    now = timezone.now()
    fields: dict[str, Any] = {"state": state, "changed": now}
    fields |= {name: info[name] for name in INFO_FIELDS if name in info}
    if state in AnalysisRun.FINAL:
        fields["finished"] = now
        reported = (_progress([run_id]) or {}).get(run_id, {})
        fields |= {name: reported[name] for name in ("stage", "progress", "rows") if reported.get(name)}
    if state == State.DONE:
        fields |= {"progress": 1.0, "reason": "", "result": info.get("result", f"{run_id}/result.json")}
    unfinished = AnalysisRun.objects.filter(id=run_id).exclude(state__in=AnalysisRun.FINAL)
    # A state that comes late or twice must not wake a run that is over: the condition is in the update itself.
    is_new = unfinished.update(**fields) == 1
    if state in (State.STARTING, State.RUNNING):
        AnalysisRun.objects.filter(id=run_id, started=None).update(started=now)
    return is_new


def on_worker_lost(run_id: str, reason: str) -> bool:
    """Queue a lost run of a report again, unless it had MOST_TRIES attempts; fail other lost runs.

    Return whether the run is over.
    """
    open_runs = AnalysisRun.objects.filter(id=run_id, sent__isnull=False).exclude(state__in=AnalysisRun.FINAL)
    again = open_runs.filter(edition__isnull=False, tries__lt=MOST_TRIES - 1).update(
        state=State.QUEUED, sent=None, started=None, worker="", stage="", progress=0, reason=reason,
        tries=F("tries") + 1, changed=timezone.now(),
    )  # fmt: skip
    if again:
        logger.warning("run %s is tried again: %s", run_id, reason)
        send_next()
        notify(run_id)
        return False
    tries = AnalysisRun.objects.filter(id=run_id).values_list("tries", flat=True).first()
    return on_state_changed(run_id, State.FAILED, {"reason": f"{reason} Attempts: {tries + 1}." if tries else reason})


def on_worker_started(worker: str, moment: datetime) -> int:
    """End the runs that a worker had before it restarted; return how many."""
    found = AnalysisRun.objects.filter(state__in=ACTIVE, worker=worker, started__lt=moment)
    reason = "The worker was restarted during the run."
    return sum(_stop_if(on_worker_lost(str(run.id), reason), str(run.id)) for run in list(found))


def fail_lost_runs(silence: timedelta, patience: timedelta) -> int:
    """Fail runs without an update for `silence`, and runs that no worker started within `patience`; return how many."""
    now = timezone.now()
    silent = list(AnalysisRun.objects.filter(state__in=ACTIVE, changed__lt=now - silence))
    progress = _progress([str(run.id) for run in silent])
    latest = (now - silence).timestamp()
    # A store that does not answer says nothing of the runs: whether they are lost is judged the next time.
    silent = [run for run in silent if progress is not None and progress.get(str(run.id), {}).get("at", 0) < latest]
    untaken = AnalysisRun.objects.filter(state=State.QUEUED, sent__lt=now - patience)
    ended = [
        *(_fail_and_stop(str(run.id), f"Worker lost: no update for {_minutes(silence)}.")
          for run in silent),
        *(_fail_and_stop(str(run.id), f"No Spark worker started it within {_minutes(patience)}.")
          for run in untaken),
    ]  # fmt: skip
    send_next()
    return sum(ended)


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:.0f} min"


def _fail_and_stop(run_id: str, reason: str) -> bool:
    """Fail a run and stop it, as its worker may still be active; it is not started again."""
    is_new = on_state_changed(run_id, State.FAILED, {"reason": reason})
    _stop_if(True, run_id)
    return is_new


def _stop_if(is_over: bool, run_id: str) -> bool:
    """Stop a run that is over; return whether it is. A store that does not respond is logged."""
    if not is_over:
        return False
    try:
        _stop(run_id)
    except StoreUnavailable as error:
        logger.warning("run %s could not be stopped: %s", run_id, error)
    return True


def result_of(run: AnalysisRun) -> dict[str, Any] | None:
    """Read the result of a finished run; None when its file was deleted."""
    root: Path = settings.SLUICE.results
    path = (root / run.result).resolve()
    if not run.result or not path.is_relative_to(root) or not path.is_file():
        return None
    return json.loads(path.read_text())


def window_of(result: dict[str, Any]) -> tuple[datetime, datetime]:
    """Return the time range of a result."""
    window = result["window"]
    return tuple(datetime.fromtimestamp(window[end] / 1e6, UTC) for end in ("since_us", "until_us"))


def describe_cost(run: AnalysisRun) -> str:
    """Describe the duration of a finished run, as an estimate for the next one; "" for other runs."""
    if run.finished is None:
        return ""
    window = describe_parameters(
        run.kind, {name: run.request[name] for name in ("window", "since_us", "until_us") if name in run.request}
    )
    of = f" of the {window[0].lower()}{window[1:]}" if window.startswith("Last") else f" of {window}" if window else ""
    read = number_format.pluralize_count(run.rows, "recorded event") if run.rows else "all recorded events"
    seconds = (run.finished - (run.started or run.created)).total_seconds()
    return f"Last run: {number_format.format_duration(int(seconds))} for {read}{of}."


def recording_start_of(result: dict[str, Any]) -> datetime | None:
    """Return when recording began, if that is within the time range of a result; figures cover the time since."""
    us = result.get("began_us")
    return datetime.fromtimestamp(us / 1e6, UTC) if us and us > result["window"]["since_us"] else None


def missing_events_of(result: dict[str, Any]) -> str:
    """Describe the events that a result does not include; "" when complete or unknown."""
    return (result.get("completeness") or {}).get("sentence", "")


def completeness_of(result: dict[str, Any]) -> str:
    """Return whether a result is complete, in words; "" for results of earlier versions."""
    found = result.get("completeness")
    return "" if found is None else "Complete" if found["complete"] else "Incomplete"


def _progress(run_ids: list[str]) -> dict[str, dict[str, Any]] | None:
    if not run_ids:
        return {}
    return _progress_reader(settings.SLUICE.redis_url, settings.SLUICE.broker_name).read(run_ids)


@cache
def _progress_reader(redis_url: str, broker: str) -> RunProgress:
    return RunProgress(redis_url, broker)


def load_progress(runs: Iterable[AnalysisRun]) -> None:
    """Set state, stage, progress and rows of runs that a worker has, as it reported them last. Nothing is saved."""
    active = {str(run.id): run for run in runs if run.state in ACTIVE}
    for run_id, info in (_progress(list(active)) or {}).items():
        run = active[run_id]
        run.state, run.stage, run.progress = State.RUNNING, info["stage"], info["progress"]
        run.rows = info.get("rows", run.rows)


def cells(run_id: str, rows: tuple[str, ...], known: Callable[[AnalysisRun], bool]) -> dict[str, Any]:
    """Return the live cells of one run (by id), or of rows of the list, for runs that `known` accepts."""
    line, found = run_queue.waiting_ids(), filter(known, _find(rows or [run_id]))
    if not rows:
        return {name: text for run in found for name, text in cells_of(run, line).items()}
    return {f"{run.id}#{name}": text for run in found for name, text in cells_of(run, line).items()}


def _find(ids: list[str] | tuple[str, ...]) -> list[AnalysisRun]:
    return list(AnalysisRun.objects.filter(id__in=valid_ids(ids)))


def cells_of(run: AnalysisRun, line: list[str] | None = None) -> dict[str, Any]:
    """Format a run for a page; `line` is run_queue.waiting_ids() where it was already read."""
    load_progress([run])
    end = run.finished or timezone.now()
    return {
        "state": run.state,
        "label": LABELS[State(run.state)],
        "stage": _stage(run, line),
        "rows": f"{run.rows:,} recorded events in the time range" if run.rows and not run.is_final else "",
        "progress": round(run.progress, 3),
        "reason": run.reason,
        "took": number_format.format_duration((end - run.created).total_seconds()),
        "final": run.is_final,
    }


def _stage(run: AnalysisRun, line: list[str] | None) -> str:
    if run.is_final or run.state != State.QUEUED:
        return "" if run.is_final else run.stage
    place = run_queue.queue_position(str(run.id), run_queue.waiting_ids() if line is None else line)
    return f"{place}, attempt {run.tries + 1} of {MOST_TRIES}. {run.reason}" if run.tries else place


def notify(run_id: str) -> None:
    """Notify sockets that a run, or a job on messages, changed."""
    try:
        async_to_sync(get_channel_layer().group_send)(GROUP, {"type": "run.changed", "run": run_id})
    except Exception:  # any driver's error: the notice is a courtesy, sockets read runs every few seconds anyway
        logger.warning("pages were not notified of a change of run %s: the store does not answer", run_id)


def pin(request: HttpRequest, run: AnalysisRun, pinned: bool) -> None:
    """Pin or unpin a run, with an audit entry. Pinned runs are exempt from cleanup."""
    action = "pin run" if pinned else "unpin run"
    with trail.recording(request, action, run.title, before={"run": str(run.id), "pinned": run.pinned}) as change:
        run.pinned = pinned
        run.save(update_fields=["pinned"])
        change.after = {"run": str(run.id), "pinned": pinned}
