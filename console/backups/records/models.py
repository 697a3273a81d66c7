"""Models of the schedule of backups, and of the backups that the console made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import models

from brokerapp.backup.configuration import RESTORED_VARIABLES


class BackupSchedule(models.Model):
    """When backups are made, and how many are kept. There is one row, which the first change creates."""

    ONLY = 1  #: its primary key

    cron = models.CharField(max_length=100, blank=True)  #: a crontab line; none: only when somebody asks
    zone = models.CharField(max_length=64, default="UTC")
    keep = models.PositiveSmallIntegerField(default=7)  #: successful backups that are kept
    with_archive = models.BooleanField(default=False)  #: whether recorded traffic is in them
    due = models.DateTimeField(null=True)  #: the first moment that nobody has acted on yet
    changed = models.DateTimeField(auto_now=True)

    @classmethod
    def load(cls) -> BackupSchedule:
        """Return the schedule; without one the defaults, which are not saved."""
        return cls.objects.filter(pk=cls.ONLY).first() or cls(pk=cls.ONLY)


class BackupRun(models.Model):
    """One backup that was asked for, by the schedule or by a user."""

    class State(models.TextChoices):
        """The states of a backup; the last two are final."""

        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    asked_by = models.CharField(max_length=150, blank=True)  #: nobody: the schedule
    with_archive = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True)
    path = models.CharField(max_length=1000, blank=True)  #: of the file, once there is one
    bytes = models.BigIntegerField(default=0)
    pause_ms = models.FloatField(default=0)  #: for how long writes were held
    is_encrypted = models.BooleanField(default=False)
    left_out = models.JSONField(default=list)  #: what is not in it, as sentences
    reason = models.TextField(blank=True)  #: why it failed
    step = models.CharField(max_length=200, blank=True)  #: what it did last
    host = models.CharField(max_length=255, blank=True)  #: where it runs, and by which process
    pid = models.IntegerField(null=True)
    heartbeat = models.DateTimeField(null=True)  #: when its process last said that it works
    #: Inode of the data folder it is of: a database that was restored has a row that was running elsewhere.
    data_folder = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["-created", "-id"]
        indexes = [models.Index(fields=["state"])]
        constraints = [
            models.UniqueConstraint(fields=["state"], condition=models.Q(state="running"), name="backup_running_once")
        ]

    def __str__(self) -> str:
        return f"backup of {self.created:%Y-%m-%d %H:%M} UTC"

    @property
    def file(self) -> Path:
        """Return the file of a backup."""
        return Path(self.path)

    @property
    def has_file(self) -> bool:
        """Return whether its file is where it was written."""
        return bool(self.path) and self.file.is_file()

    @property
    def is_of_original(self) -> bool:
        """Return whether it was made before the backup was restored from which this installation comes."""
        restored = restored_at()
        return restored is not None and self.created < restored

    @property
    def is_of_this_host(self) -> bool:
        """Return whether this installation made it on this host, so that its file may be deleted here.

        The inode alone says too little: roots of file systems, which containers mount, all have the same one.
        """
        return self.data_folder == data_folder_id() and not self.is_of_original

    @property
    def duration(self) -> timedelta | None:
        """Return how long it took; None while it is running."""
        return self.finished - self.created if self.finished else None

    @classmethod
    def failures_since_success(cls) -> models.QuerySet[BackupRun]:
        """Return the backups that failed since the last successful one, the latest first."""
        success = cls.objects.filter(state=cls.State.DONE).first()
        failed = cls.objects.filter(state=cls.State.FAILED)
        return failed.filter(created__gt=success.created) if success else failed


def data_folder_id() -> int:
    """Return what tells the data folder from the one that a database was restored from."""
    data: Path = settings.SLUICE.data
    return data.stat().st_ino if data.exists() else 0


def restored_at() -> datetime | None:
    """Return when the data folder was restored from a backup, by the file that a restore writes; None: it was not."""
    try:
        return datetime.fromtimestamp((settings.SLUICE.data / RESTORED_VARIABLES).stat().st_mtime, UTC)
    except FileNotFoundError:
        return None


def backup_folder() -> Path:
    """Return the folder for backups."""
    folder: Path = settings.SLUICE.backups
    return folder
