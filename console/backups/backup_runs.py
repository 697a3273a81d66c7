"""Make backups when they are due or asked for, keep as many as the schedule says, and notice those that were lost."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from brokerapp.backup.passphrase import check_new, find_passphrase
from brokerapp.errors import BackupRefused, BrokerError, RequestRefused
from brokerapp.system.process_lock import make_private_directory
from console.analyses.reports.schedule import MissedRunPolicy, ReportSchedule, plan
from console.backups.installation import back_up
from console.backups.records.models import BackupRun, BackupSchedule, backup_folder, data_folder_id
from console.broker.restored_copy import is_copy
from console.broker.task_queue import enqueue
from console.topology.refusals import sentence_of

logger = logging.getLogger(__name__)

TASK = "console.back_up"
State = BackupRun.State
#: How long a backup may wait for a worker.
WAITING = timedelta(hours=1)
#: Seconds between two signs of life of the process that makes a backup, and for how long they may fail to come: a
#: database that is migrated or restarted does not take them for minutes.
HEARTBEAT_SECONDS, SILENCE = 30.0, timedelta(minutes=10)
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
    try:
        return start("", schedule.with_archive)
    except RequestRefused:  # one is running
        return None


def start(asked_by: str, with_archive: bool) -> BackupRun:
    """Have a worker make a backup. Raises RequestRefused while one is being made."""
    fail_lost(timezone.now())
    try:
        with transaction.atomic():
            run = BackupRun.objects.create(
                asked_by=asked_by, with_archive=with_archive, step="Waiting for a worker", data_folder=data_folder_id()
            )
    except IntegrityError:  # another one is running, or was started at this moment
        raise RequestRefused("A backup is already running. Wait until it is done.") from None
    try:
        enqueue(TASK, run.pk)
    except BrokerError as error:
        _fail(run, sentence_of(error))
        raise
    return run


def make(run_id: int) -> str:
    """Make a backup that was started; return its state."""
    claimed = BackupRun.objects.filter(pk=run_id, state=State.RUNNING, pid=None)
    mine = {"pid": os.getpid(), "host": socket.gethostname(), "heartbeat": timezone.now()}
    if not claimed.update(**mine, data_folder=data_folder_id(), step="Started"):
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
        file = new_file(folder, settings.SLUICE.broker_name, run.created)
        with _heartbeats(run.pk):
            result = back_up(settings.SLUICE, file, passphrase, report, with_archive=run.with_archive)
    except (BrokerError, OSError) as error:
        _fail(run, sentence_of(error))
        return State.FAILED
    except Exception:  # ours: all the same there is no backup, and people have to know
        logger.exception("a backup failed")
        _fail(run, "Internal error. Details are in the log of the worker.")
        return State.FAILED
    run.state, run.finished, run.path, run.step = State.DONE, timezone.now(), str(result.path), ""
    run.bytes, run.pause_ms, run.is_encrypted = result.bytes, result.pause_ms, passphrase is not None
    run.left_out = list(result.manifest.left_out)
    run.save()
    logger.info("the backup %s is complete: %s bytes, requested by %s", run.path, run.bytes, run.asked_by or "schedule")
    remove_old(BackupSchedule.load().keep)
    return State.DONE


def new_file(folder: Path, broker: str, moment: datetime) -> Path:
    """Return a path for a backup that no file has; names sort by time, also among those of former versions.

    Several may be made within a second, also by installations that share the folder and the broker's name.
    """
    name = "".join(each if each.isalnum() or each in "-_." else "_" for each in broker)
    while True:
        file = folder / f"{name}-{moment.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}{SUFFIX}"
        if not file.exists():
            return file
        moment += timedelta(microseconds=1)


def _fail(run: BackupRun, reason: str) -> None:
    logger.error("the backup failed: %s", reason)
    run.state, run.finished, run.reason, run.step = State.FAILED, timezone.now(), reason, ""
    run.save(update_fields=["state", "finished", "reason", "step"])


@contextmanager
def _heartbeats(run_id: int) -> Iterator[None]:
    """Record that a backup is being made for as long as the context is open."""
    ended = threading.Event()

    def beat() -> None:
        try:
            while not ended.wait(HEARTBEAT_SECONDS):
                try:
                    BackupRun.objects.filter(pk=run_id).update(heartbeat=timezone.now())
                except DatabaseError as error:
                    logger.warning("the heartbeat of backup %s cannot be written: %s", run_id, error)
                    connection.close()
        finally:
            connection.close()  # that of this thread

    thread = threading.Thread(target=beat, name="backup heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def fail_lost(now: datetime) -> int:
    """Fail backups that no worker took, or whose process is gone or silent; return how many.

    Hosts that share the database see the backups of each other: processes are looked up on their own host only.
    """
    lost = 0
    for run in BackupRun.objects.filter(state=State.RUNNING):
        if run.is_of_original and run.data_folder != data_folder_id():  # it was running when that was backed up
            run.delete()
        elif reason := _reason_lost(run, now):
            _fail(run, reason)
            lost += 1
    return lost


def _reason_lost(run: BackupRun, now: datetime) -> str:
    """Return why a backup that is recorded as running is lost; empty: it is not."""
    if run.pid is None:
        return "No worker took it in time." if now - run.created > WAITING else ""
    if run.host == socket.gethostname() and not _is_running(run.pid):
        return "Its worker process ended before it was done."
    if now - (run.heartbeat or run.created) > SILENCE:
        return f"Nothing was heard of its worker process on {run.host} for {SILENCE.seconds // 60} minutes."
    return ""


def _is_running(pid: int) -> bool:
    """Return whether a process of this host is running."""
    try:
        os.kill(pid, 0)
    except PermissionError:  # it is of another user
        return True
    except ProcessLookupError:
        return False
    return True


def remove_old(keep: int) -> int:
    """Remove the oldest successful backups beyond so many, and old failures; return how many.

    Backups of all hosts that share the database count. Those of another host are left to that one, which has the files.
    """
    old = BackupRun.objects.filter(state=State.DONE)[keep:]
    done = [run for run in old if run.is_of_this_host or run.is_of_original]
    for run in done:
        remove(run)
    for run in BackupRun.objects.filter(state=State.FAILED)[KEPT_FAILURES:]:
        run.delete()
    return len(done)


def remove(run: BackupRun) -> None:
    """Remove a backup with its file; that of another host, or of the original of this installation, stays."""
    try:
        if run.path and run.is_of_this_host:
            Path(run.path).unlink(missing_ok=True)
    except OSError as error:
        raise BackupRefused(f"{run.path} cannot be deleted: {error.strerror}") from error
    run.delete()
