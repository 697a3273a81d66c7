"""Show backups and their schedule; start, download and delete backups."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.backup.passphrase import FILE_VARIABLE, find_passphrase
from brokerapp.errors import BackupRefused, BrokerError
from console.access.permissions import Permission, permission_required, require_everywhere
from console.analyses.reports.forms import TimingForm
from console.backups import backup_changes
from console.backups.backup_runs import timing_of
from console.backups.forms import MAX_KEPT, BackupScheduleForm
from console.backups.records.models import BackupRun, BackupSchedule, backup_folder
from console.broker.restored_copy import is_copy
from console.topology.refusals import sentence_of

#: Query parameter: the number of a backup whose progress and end the page tells.
WATCHED = "run"
#: Name of a backup in commands, while there is none.
EXAMPLE = "NAME.backup"


@require_GET
@permission_required(Permission.BACKUP)
def backups(request: HttpRequest) -> HttpResponse:
    """Show the schedule and all backups."""
    require_everywhere(request, Permission.BACKUP)
    return render(request, "backups/backups.html", _context(request.GET.get(WATCHED, "")))


def _context(watched: str) -> dict[str, Any]:
    """Return what the page shows. `watched`: the number of the backup whose progress and end it tells."""
    runs, schedule = list(BackupRun.objects.all()), BackupSchedule.load()
    running = next((each for each in runs if each.state == BackupRun.State.RUNNING), None)
    shown = running or next((each for each in runs if str(each.pk) == watched), None)
    latest = next((each for each in runs if each.has_file), None)
    return {
        "watched": shown, "address": _address(shown), "example": latest.path if latest else backup_folder() / EXAMPLE,
        "runs": runs, "schedule": schedule, "timing": timing_of(schedule),
        "folder": backup_folder(), "disk": _is_same_disk(),
        "encryption": _encryption(), "is_running": running is not None,
        "is_copy": is_copy(), "file_variable": FILE_VARIABLE,
    }  # fmt: skip


def _address(run: BackupRun | None) -> str:
    """Return the address of the page that tells the progress and the end of a backup."""
    return f"{reverse('backups')}?{WATCHED}={run.pk}" if run else reverse("backups")


def _encryption() -> dict[str, Any]:
    """Return whether backups are encrypted, or why the passphrase cannot be used."""
    try:
        return {"is_on": find_passphrase() is not None}
    except BackupRefused as refused:
        return {"is_on": False, "error": sentence_of(refused)}


def _is_same_disk() -> bool:
    """Return whether backups are on the file system of the data, with which they would be lost."""
    folder, data = backup_folder(), settings.SLUICE.data
    there = next((each for each in (folder, *folder.parents) if each.exists()), data)
    return data.exists() and there.stat().st_dev == data.stat().st_dev


@require_POST
@permission_required(Permission.BACKUP)
def start(request: HttpRequest) -> HttpResponse:
    """Start a backup."""
    run = None
    try:
        run = backup_changes.start(request, with_archive="with_archive" in request.POST)
    except BrokerError as refused:
        messages.error(request, sentence_of(refused))
    return redirect(_address(run))


@require_http_methods(["GET", "POST"])
@permission_required(Permission.BACKUP)
def edit_schedule(request: HttpRequest) -> HttpResponse:
    """Change when backups are made, and how many are kept."""
    require_everywhere(request, Permission.BACKUP)
    form = BackupScheduleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        backup_changes.save_schedule(request, form)
        messages.success(request, "Backup schedule saved.")
        return redirect("backups")
    context = {**TimingForm.page_context(form), "max_kept": MAX_KEPT, "comes_with_rule": backup_changes.needs_rule()}
    return render(request, "backups/schedule.html", context, status=400 if request.method == "POST" else 200)


@require_GET
@permission_required(Permission.BACKUP)
def download(request: HttpRequest, backup_id: int) -> HttpResponse:
    """Send the file of a backup."""
    return backup_changes.download(request, backup_changes.get_backup_or_404(request, backup_id))


@require_POST
@permission_required(Permission.BACKUP)
def delete(request: HttpRequest, backup_id: int) -> HttpResponse:
    """Delete a backup with its file."""
    run = backup_changes.get_backup_or_404(request, backup_id)
    try:
        backup_changes.remove(request, run)
        messages.success(request, "Backup deleted.")
    except BackupRefused as refused:
        messages.error(request, sentence_of(refused))
    return redirect("backups")
