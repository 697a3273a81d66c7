"""Make backups when they are due or asked for, keep as many as the schedule says, and notice those that were lost."""

from __future__ import annotations

import logging
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from brokerapp.backup.passphrase import check_new, find_passphrase
from brokerapp.errors import BackupRefused, BrokerError, RequestRefused
from brokerapp.system.process_lock import make_private_directory
from console.analyses.reports.schedule import MissedRunPolicy, ReportSchedule, plan
from console.backups.installation import back_up
from console.backups.records.models import BackupRun, BackupSchedule, backup_folder, data_folder_id
from console.broker.restored_copy import is_copy
from console.broker.task_queue import enqueue

logger = logging.getLogger(__name__)

TASK = "console.back_up"
State = BackupRun.State
#: How long a backup may take, and wait for a worker.
LONGEST, WAITING = timedelta(hours=6), timedelta(hours=1)
#: Failed backups that the list keeps.
KEPT_FAILURES = 20
SUFFIX = ".backup"


def timing_of(schedule: BackupSchedule) -> ReportSchedule | None:
    """Return when backups are made; None for on demand only."""
    return ReportSchedule(schedule.cron, schedule.zone) if schedule.cron else None


def set_due(schedule: BackupSchedule, now: datetime) -> None:
    """Set when a backup is due next, after the schedule changed."""
    timing = timing_of(schedule)
    schedule.due = timing.next(now, 1)[0] if timing else None


def start_due(now: datetime) -> BackupRun | None:
    """Start the backup that is due, if any, and set when the next one is. A copy makes none on schedule."""
    fail_lost(now)
    schedule = BackupSchedule.objects.filter(pk=BackupSchedule.ONLY, due__lte=now).first()
    timing = timing_of(schedule) if schedule is not None else None
    if schedule is None or timing is None or schedule.due is None or is_copy():
        return None
    decided = plan(timing, schedule.due, now, MissedRunPolicy.ONCE)
    # The condition keeps two processes apart that look at the same moment.
    if not BackupSchedule.objects.filter(pk=schedule.pk, due=schedule.due).update(due=decided.next) or not decided.run:
        return None
    if BackupRun.objects.filter(state=State.RUNNING).exists():
        return None
    return start("", schedule.with_archive)


def start(asked_by: str, with_archive: bool) -> BackupRun:
    """Have a worker make a backup. Raises RequestRefused while one is being made."""
    with transaction.atomic():
        if BackupRun.objects.select_for_update().filter(state=State.RUNNING).exists():
            raise RequestRefused("A backup is already running. Wait until it is done.")
        run = BackupRun.objects.create(
            asked_by=asked_by, with_archive=with_archive, step="Waiting for a worker", data_folder=data_folder_id()
        )
    try:
        enqueue(TASK, run.pk)
    except BrokerError as error:
        _fail(run, str(error))
        raise
    return run


def make(run_id: int) -> str:
    """Make a backup that was started; return its state."""
    claimed = BackupRun.objects.filter(pk=run_id, state=State.RUNNING, pid=None)
    if not claimed.update(pid=os.getpid(), host=socket.gethostname(), step="Started"):
        return "nothing to do"
    run = BackupRun.objects.get(pk=run_id)

    def report(line: str) -> None:
        BackupRun.objects.filter(pk=run.pk).update(step=f"{line[:1].upper()}{line[1:200]}")

    try:
        folder = backup_folder()
        make_private_directory(folder)
        passphrase = find_passphrase()
        if passphrase is not None:
            check_new(passphrase)
        file = folder / file_name(settings.SLUICE.broker_name, run.created)
        result = back_up(settings.SLUICE, file, passphrase, report, with_archive=run.with_archive)
    except (BrokerError, OSError) as error:
        _fail(run, str(error))
        return State.FAILED
    except Exception:  # ours: all the same there is no backup, and people have to know
        logger.exception("a backup failed")
        _fail(run, "internal error; details are in the log of the worker")
        return State.FAILED
    run.state, run.finished, run.path, run.step = State.DONE, timezone.now(), str(result.path), ""
    run.bytes, run.pause_ms, run.is_encrypted = result.bytes, result.pause_ms, passphrase is not None
    run.left_out = list(result.manifest.left_out)
    run.save()
    remove_old(BackupSchedule.load().keep)
    return State.DONE


def file_name(broker: str, moment: datetime) -> str:
    """Return the name of a backup's file."""
    name = "".join(each if each.isalnum() or each in "-_." else "_" for each in broker)
    return f"{name}-{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}{SUFFIX}"


def _fail(run: BackupRun, reason: str) -> None:
    logger.error("the backup failed: %s", reason)
    run.state, run.finished, run.reason, run.step = State.FAILED, timezone.now(), reason, ""
    run.save(update_fields=["state", "finished", "reason", "step"])


def fail_lost(now: datetime) -> int:
    """Fail backups whose process is gone, or that take too long; return how many."""
    lost, here = 0, data_folder_id()
    BackupRun.objects.filter(state=State.RUNNING).exclude(data_folder=here).delete()  # of a database that was restored
    for run in BackupRun.objects.filter(state=State.RUNNING):
        waits = run.pid is None
        if (waits and now - run.created > WAITING) or now - run.created > LONGEST or (not waits and _is_gone(run)):
            _fail(run, "No worker took it in time." if waits else "Its worker process ended before it was done.")
            lost += 1
    return lost


def _is_gone(run: BackupRun) -> bool:
    """Return whether the process of a backup, if it is of this machine, has ended."""
    if run.host != socket.gethostname() or run.pid is None:
        return False
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def remove_old(keep: int) -> int:
    """Remove the oldest successful backups beyond so many, and old failures; return how many."""
    done = list(BackupRun.objects.filter(state=State.DONE)[keep:])
    for run in done:
        remove(run)
    for run in BackupRun.objects.filter(state=State.FAILED)[KEPT_FAILURES:]:
        run.delete()
    return len(done)


def remove(run: BackupRun) -> None:
    """Remove a backup with its file; that of the installation which this one was restored from stays."""
    try:
        if run.path and run.data_folder == data_folder_id():
            Path(run.path).unlink(missing_ok=True)
    except OSError as error:
        raise BackupRefused(f"{run.path} cannot be deleted: {error.strerror}") from error
    run.delete()
