"""Start and remove backups, and change their schedule, for pages and the API: check permissions, write the audit log.

A backup holds everything: it needs the permission for all destinations.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone

from console.access.permissions import Permission, require_everywhere
from console.alerts.delivery.models import AlertRule
from console.audit import trail
from console.audit.models import AuditEntry
from console.backups import backup_runs
from console.backups.forms import BackupScheduleForm
from console.backups.records.models import BackupRun, BackupSchedule
from console.ui.downloads import FileDownload

#: The alert rule that comes with the first schedule.
RULE_NAME, RULE_METRIC = "Failed backups", "failed-backups"


def get_backup_or_404(request: HttpRequest, backup_id: int) -> BackupRun:
    """Return a backup. Raises Http404, PermissionDenied."""
    require_everywhere(request, Permission.BACKUP)
    found: BackupRun = get_object_or_404(BackupRun, pk=backup_id)
    return found


def start(request: HttpRequest, *, with_archive: bool) -> BackupRun:
    """Start a backup. Raises RequestRefused, StoreUnavailable, PermissionDenied."""
    require_everywhere(request, Permission.BACKUP)
    with trail.recording(request, "start backup", "backup") as change:
        run = backup_runs.start(request.user.get_username(), with_archive)
        change.after = {"with_archive": with_archive}
    return run


def remove(request: HttpRequest, run: BackupRun) -> None:
    """Delete a backup with its file. Raises BackupRefused, PermissionDenied."""
    require_everywhere(request, Permission.BACKUP)
    if run.state == BackupRun.State.RUNNING:
        raise Http404("A backup that is running cannot be deleted.")
    with trail.recording(request, "delete backup", run.file.name or str(run)):
        backup_runs.remove(run)


def download(request: HttpRequest, run: BackupRun) -> FileDownload:
    """Return the file of a backup, and record that it is read. Raises Http404 where it is missing."""
    if not run.has_file:
        raise Http404(f"The file {run.file.name} of this backup was moved or deleted.")
    trail.record(request, "download backup", run.file.name, AuditEntry.Outcome.DONE)
    return FileDownload(run.file.open("rb"), as_attachment=True, filename=run.file.name)


def save_schedule(request: HttpRequest, form: BackupScheduleForm) -> BackupSchedule:
    """Save the schedule of a valid form; the first one comes with an alert rule. Raises PermissionDenied."""
    require_everywhere(request, Permission.BACKUP)
    before = audit_fields(BackupSchedule.load())
    schedule = form.apply()
    with trail.recording(request, "change backup schedule", "backups", before) as change:
        backup_runs.set_due(schedule, timezone.now())
        schedule.save()
        change.after = audit_fields(schedule)
        if schedule.cron and needs_rule():
            AlertRule.objects.create(
                name=RULE_NAME, metric=RULE_METRIC, threshold=0, pattern=">", author=request.user.get_username()
            )
    return schedule


def needs_rule() -> bool:
    """Return whether a schedule comes with an alert rule, as there is none yet about backups."""
    return not AlertRule.objects.filter(metric=RULE_METRIC).exists()


def audit_fields(schedule: BackupSchedule) -> dict[str, Any]:
    """Return a schedule as the audit log shows it."""
    return {
        "schedule": str(backup_runs.timing_of(schedule) or "on demand"),
        "keep": schedule.keep,
        "with_archive": schedule.with_archive,
    }
