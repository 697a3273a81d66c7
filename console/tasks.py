"""Define Celery tasks that use the console's database or that pages start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from celery import shared_task
from celery.signals import celeryd_after_setup
from django.conf import settings
from django.utils import timezone

from console.accounts import credential_notices
from console.alerts.delivery import alert_delivery
from console.analyses import run_retention, run_service
from console.analyses.models import AnalysisRun
from console.audit import retention
from console.broker.restored_copy import is_copy
from console.messages.jobs import job_service
from console.messages.jobs.worker import run_slice, wake_lost_jobs
from console.messages.search import search_service
from console.messages.search import worker as message_search

#: A run of which nothing was heard for so long has lost its worker. Spark reports at least once a minute.
SILENCE = timedelta(minutes=10)
#: A run that was given to workers and that none took for so long is not waited for any more.
PATIENCE = timedelta(minutes=60)
#: Seconds after which a backup is killed: large stores on slow disks take hours.
BACKUP_LIMIT = 6 * 60 * 60
#: What tasks that come every few seconds import.
_OFTEN = ("console.analyses.questions", "console.analyses.reports.editions", "console.analyses.reports.delivery")


@shared_task(name="console.run_changed")
def run_changed(run_id: str, state: str, info: dict[str, Any] | None = None) -> bool:
    """Update an analysis run with its state; ignored for a finished run."""
    is_new = run_service.on_state_changed(run_id, state, info or {})
    if is_new and state in AnalysisRun.FINAL:
        process_reports()
    return is_new


@shared_task(name="console.look_at_reports")
def process_reports() -> None:
    """Start due reports, finish those whose analyses are done, and send their emails."""
    from console.analyses.reports import (
        delivery,  # need much that a short task can do without
        editions,  # need much that a short task can do without
    )

    editions.finish_complete_editions()
    if not is_copy():
        editions.start_due_editions(timezone.now())
        delivery.enqueue_due(timezone.now())


@shared_task(name="console.mail_edition")
def mail_edition(edition_id: int) -> str:
    """Send an edition of a report by email once; return the result."""
    from console.analyses.reports import delivery

    return delivery.deliver(edition_id)


@shared_task(name="console.mail_credential_notice")
def mail_credential_notice(entry_id: int) -> str:
    """Mail a user that their password, second factor or tokens changed; return the address."""
    return credential_notices.send_notice(entry_id)


@shared_task(name="console.reap")
def fail_lost_runs() -> int:
    """Fail runs whose worker was lost, and resume jobs and searches; return the number of runs."""
    job_service.purge_old()
    wake_lost_jobs()
    search_service.wake_lost_searches()
    return run_service.fail_lost_runs(SILENCE, PATIENCE)


@shared_task(name="console.worker_started")
def worker_started(worker: str, seconds: float) -> int:
    """Fail the runs of a worker's former process; return their number."""
    return run_service.on_worker_started(worker, datetime.fromtimestamp(seconds, UTC))


@shared_task(name="console.work")
def run_job_slice(job_id: str) -> str:
    """Process a slice of a job; return its state."""
    return run_slice(job_id)


@shared_task(name="console.search_on")
def run_search_slice(search_id: str) -> str:
    """Process a slice of a message search; return its state."""
    return message_search.run_slice(search_id)


@shared_task(name="console.forget_audit")
def purge_audit() -> int:
    """Delete audit entries older than SLUICE_AUDIT_DAYS and record it; return their number."""
    return retention.purge(settings.SLUICE.audit_days)


@shared_task(name="console.demo")
def demo(**options: Any) -> str:
    """Run the demo workload; return its result."""
    from console.ops.demo import run_here

    return str(run_here(**options))


@shared_task(name="console.deliver_alert")
def deliver_alert(delivery_id: int) -> str:
    """Send a notification of an alert once; return the result."""
    return alert_delivery.deliver(delivery_id)


@shared_task(name="console.look_at_backups")
def process_backups() -> None:
    """Start the backup that is due, and notice those whose worker was lost."""
    from console.backups import backup_runs  # needs much that a short task can do without

    backup_runs.start_due(timezone.now())


@shared_task(name="console.back_up", time_limit=BACKUP_LIMIT)
def back_up(run_id: int) -> str:
    """Make a backup; return its state."""
    from console.backups import backup_runs

    return backup_runs.make(run_id)


@shared_task(name="console.update_traffic_ranges")
def update_traffic_ranges() -> int:
    """Update the expected traffic of destinations whose ranges end soon; return their number."""
    from console.traffic_ranges import range_updates  # needs numpy, which short tasks can do without

    return range_updates.update_ranges()


@shared_task(name="console.forget_runs")
def purge_runs() -> int:
    """Delete runs older than SLUICE_RESULT_DAYS and old editions; return their number."""
    from console.analyses.reports import editions

    return run_retention.purge_runs(settings.SLUICE.result_days) + editions.purge_editions(timezone.now())


@celeryd_after_setup.connect
def _load_once(instance: Any, **_: Any) -> None:
    """Before children are forked: else each of them loads it, in front of its first task."""
    if "default" in instance.app.amqp.queues.consume_from:
        for each in _OFTEN:
            import_module(each)
