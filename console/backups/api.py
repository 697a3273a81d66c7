"""REST API of backups and their schedule."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from brokerapp.errors import RequestRefused
from console.access.permissions import require_everywhere
from console.access.roles import Permission
from console.analyses.reports.forms import BY_CRON, NEVER
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.backups import backup_changes
from console.backups.forms import MAX_KEPT, BackupScheduleForm
from console.backups.records.models import BackupRun, BackupSchedule
from console.broker.restored_copy import is_copy

router = Router(tags=["backups"])


class BackupOut(Schema):
    """A backup."""

    id: int
    state: str = Field(description="running, done or failed")
    file: str = Field(description="Name of the file in the folder for backups; empty: none yet")
    bytes: int
    is_encrypted: bool
    with_archive: bool = Field(description="Whether recorded traffic is in it")
    left_out: list[str] = Field(description="What is not in it")
    pause_ms: float = Field(description="Time for which writes to the stores were held")
    reason: str = Field(description="Why it failed")
    asked_by: str = Field(description="User who started it; empty: the schedule")
    created: datetime
    finished: datetime | None

    @staticmethod
    def resolve_file(run: BackupRun) -> str:
        """Return the name of the file."""
        return run.file.name if run.path else ""


class BackupIn(RequestBody):
    """A backup to make."""

    with_archive: bool = Field(False, description="Include recorded traffic and results of analyses")


class BackupScheduleOut(Schema):
    """When backups are made, and how many are kept."""

    cron: str = Field(description="Crontab expression; empty: on demand only")
    zone: str
    keep: int
    with_archive: bool
    due: datetime | None = Field(description="Time of the next backup; none for a copy, which makes none by itself")

    @staticmethod
    def resolve_due(schedule: BackupSchedule) -> datetime | None:
        """Return when the next backup is made."""
        return None if is_copy() else schedule.due


class BackupScheduleIn(RequestBody):
    """When backups are made, and how many are kept."""

    cron: str = Field("", description="Crontab expression, such as 0 2 * * *; empty: on demand only")
    zone: str = Field("UTC", description="Time zone, such as Europe/Berlin")
    keep: Annotated[int, Field(ge=1, le=MAX_KEPT)] = 7
    with_archive: bool = False


@operation(router, "GET", "", Permission.BACKUP, response=list[BackupOut])
def list_backups(request: HttpRequest) -> Any:
    """List the backups, the latest first."""
    require_everywhere(request, Permission.BACKUP)
    return BackupRun.objects.all()


@operation(router, "POST", "", Permission.BACKUP, response={202: BackupOut})
def start_backup(request: HttpRequest, wanted: BackupIn) -> Any:
    """Start a backup. It is complete when its state is done."""
    return Status(202, backup_changes.start(request, with_archive=wanted.with_archive))


@operation(router, "GET", "/schedule", Permission.BACKUP, response=BackupScheduleOut)
def get_backup_schedule(request: HttpRequest) -> Any:
    """Return the schedule of backups."""
    require_everywhere(request, Permission.BACKUP)
    return BackupSchedule.load()


@operation(router, "PUT", "/schedule", Permission.BACKUP, response=BackupScheduleOut)
def change_backup_schedule(request: HttpRequest, wanted: BackupScheduleIn) -> Any:
    """Change when backups are made, and how many are kept."""
    rhythm = BY_CRON if wanted.cron else NEVER
    form = BackupScheduleForm({**wanted.model_dump(exclude={"with_archive"}), "rhythm": rhythm,
                               **({"with_archive": "on"} if wanted.with_archive else {})})  # fmt: skip
    if not form.is_valid():
        raise RequestRefused("; ".join(_refusal(name, why) for name, why in form.errors.items()))
    return backup_changes.save_schedule(request, form)


def _refusal(field: str, reasons: list[str]) -> str:
    """Return why a field is refused. What is wrong with cron or zone, of which the form's is made, names itself."""
    said = " ".join(map(str, reasons))
    return said if field == "rhythm" else f"{field}: {said}"


@operation(router, "GET", "/{int:backup_id}", Permission.BACKUP, response=BackupOut)
def get_backup(request: HttpRequest, backup_id: int) -> Any:
    """Return a backup."""
    return backup_changes.get_backup_or_404(request, backup_id)


@operation(router, "GET", "/{int:backup_id}/file", Permission.BACKUP, response={200: Any})
def download_backup(request: HttpRequest, backup_id: int) -> HttpResponse:
    """Return the file of a backup."""
    return backup_changes.download(request, backup_changes.get_backup_or_404(request, backup_id))


@operation(router, "DELETE", "/{int:backup_id}", Permission.BACKUP, response={204: None})
def delete_backup(request: HttpRequest, backup_id: int) -> Any:
    """Delete a backup with its file."""
    backup_changes.remove(request, backup_changes.get_backup_or_404(request, backup_id))
    return Status(204, None)
