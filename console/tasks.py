"""Celery tasks that touch what the console owns, or that a page starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from console import audit_retention, runs
from console.alerts import sending
from console.models import AnalysisRun
from console.repair import jobs
from console.repair.work import rouse_lost, work

#: A run of which nothing was heard for so long has lost its worker. Spark reports at least once a minute.
SILENCE = timedelta(minutes=10)


@shared_task(name="console.run_changed")
def run_changed(run_id: str, state: str, info: dict[str, Any] | None = None) -> bool:
    """An analysis reached a state; ignored when its run is over already."""
    return runs.changed(run_id, state, info or {})


@shared_task(name="console.start_scheduled")
def start_scheduled(kind: str, window: str, schedule: str = "schedule") -> str:
    """Start an analysis of the window that ends now; the id of its run."""
    from console.analyses import request_for  # needs the catalogue of analytics, which a web worker may do without

    title, parameters = request_for(kind, {"window": window})
    return str(runs.start(kind, title, parameters, asked_by=schedule).id)


@shared_task(name="console.reap")
def reap() -> int:
    """Fail runs whose worker is gone, how many; let other workers go on with jobs on messages."""
    silent = AnalysisRun.objects.filter(
        state__in=[AnalysisRun.State.STARTING, AnalysisRun.State.RUNNING], changed__lt=timezone.now() - SILENCE
    )
    reason = {"reason": "Its worker was lost: nothing was heard of it for ten minutes."}
    jobs.forget_old()
    rouse_lost()
    return sum(runs.changed(str(run.id), AnalysisRun.State.FAILED, reason) for run in silent)


@shared_task(name="console.work")
def work_on(job_id: str) -> str:
    """Do a slice of a job on messages; its state then."""
    return work(job_id)


@shared_task(name="console.forget_audit")
def forget_audit() -> int:
    """Delete entries of the audit trail that are older than SLUICE_AUDIT_DAYS, which leaves an entry; how many."""
    return audit_retention.forget(settings.SLUICE.audit_days)


@shared_task(name="console.demo")
def demo(**options: Any) -> str:
    """Run the demo business against the broker; what it did."""
    from console.demo import run_here

    return str(run_here(**options))


@shared_task(name="console.deliver_alert")
def deliver_alert(delivery_id: int) -> str:
    """Tell somebody outside about an alert, once; what came of it."""
    return sending.deliver(delivery_id)
