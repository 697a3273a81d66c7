"""Runs of analyses: start, cancel, record how they go, and how a page shows one."""

from __future__ import annotations

import json
import logging
import uuid
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.utils import timezone

from brokerapp.errors import StoreUnavailable
from console import figures
from console.models import AnalysisRun
from console.workers import ask

logger = logging.getLogger(__name__)

#: The group of the channel layer that hears when any run moves on.
GROUP = "sluice.runs"
State = AnalysisRun.State

#: States in words.
LABELS = {
    State.QUEUED: "Waiting for a worker",
    State.STARTING: "Starting Spark",
    State.RUNNING: "Running",
    State.DONE: "Done",
    State.FAILED: "Failed",
    State.CANCELLED: "Cancelled",
}


def start(kind: str, title: str, parameters: dict[str, Any], asked_by: str) -> AnalysisRun:
    """Ask a worker for an analysis; the run that will tell how it goes."""
    from console.analyses import with_routing  # needs the catalogue of analytics, which a web worker may do without

    run_id = uuid.uuid4()
    request = {"kind": kind, **parameters}
    run = AnalysisRun.objects.create(id=run_id, kind=kind, title=title, request=request, asked_by=asked_by)
    try:
        ask("analytics.tasks.analyse", str(run_id), with_routing(request), queue="spark", task_id=str(run_id))
    except StoreUnavailable as error:
        changed(str(run_id), State.FAILED, {"reason": str(error)})
        run.refresh_from_db()
    return run


def cancel(run: AnalysisRun, by: str) -> None:
    """Stop a run wherever it stands."""
    changed(str(run.id), State.CANCELLED, {"reason": f"Cancelled by {by}."})
    ask("analytics.tasks.cancel", str(run.id))


def changed(run_id: str, state: str, info: dict[str, Any]) -> bool:
    """Record that a run reached a state; False when it is unknown or over already.

    `info` may hold stage (text), progress (0 to 1), reason, sentence and result (path under the folder of results).
    """
    now = timezone.now()
    fields: dict[str, Any] = {"state": state, "changed": now}
    fields |= {name: info[name] for name in ("stage", "progress", "reason", "sentence", "result") if name in info}
    if state in AnalysisRun.FINAL:
        fields["finished"] = now
    if state == State.DONE:
        fields |= {"progress": 1.0, "result": info.get("result", f"{run_id}/result.json")}
    unfinished = AnalysisRun.objects.filter(id=run_id).exclude(state__in=AnalysisRun.FINAL)
    # A state that comes late or twice must not wake a run that is over: the condition is in the update itself.
    is_new = unfinished.update(**fields) == 1
    if state in (State.STARTING, State.RUNNING):
        AnalysisRun.objects.filter(id=run_id, started=None).update(started=now)
    if is_new:
        notify(run_id)
    return is_new


def result_of(run: AnalysisRun) -> dict[str, Any] | None:
    """What a finished run found; None when its file is gone."""
    root: Path = settings.SLUICE.results
    path = (root / run.result).resolve()
    if not run.result or not path.is_relative_to(root) or not path.is_file():
        return None
    return json.loads(path.read_text())


def cells(run_id: str, rows: tuple[str, ...]) -> dict[str, Any]:
    """The live cells of one run (by id), or of the rows of the list of runs."""
    if not rows:
        return {name: text for run in _find([run_id]) for name, text in cells_of(run).items()}
    return {f"{run.id}#{name}": text for run in _find(rows) for name, text in cells_of(run).items()}


def _find(ids: list[str] | tuple[str, ...]) -> list[AnalysisRun]:
    valid = []
    for each in ids:
        try:
            valid.append(uuid.UUID(each))
        except ValueError:
            continue
    return list(AnalysisRun.objects.filter(id__in=valid))


def cells_of(run: AnalysisRun) -> dict[str, Any]:
    """How one run stands, in texts."""
    end = run.finished or timezone.now()
    return {
        "state": run.state,
        "label": LABELS[State(run.state)],
        "stage": "" if run.is_final else run.stage,
        "progress": round(run.progress, 3),
        "reason": run.reason,
        "took": figures.span((end - run.created).total_seconds()),
        "final": run.is_final,
    }


def notify(run_id: str) -> None:
    """Tell sockets that a run, or a job on messages, moved on."""
    try:
        async_to_sync(get_channel_layer().group_send)(GROUP, {"type": "run.changed", "run": run_id})
    except Exception:  # any driver's error: the notice is a courtesy, sockets read runs every few seconds anyway
        logger.warning("nobody was told that run %s moved on: the store does not answer", run_id)
