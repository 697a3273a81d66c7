"""Models of reports (analyses, schedule, recipients) and of their editions."""

from __future__ import annotations

from django.db import models

from console.analyses.reports.schedule import MissedRunPolicy, ReportSchedule


class Report(models.Model):
    """Analyses that are run together, on schedule."""

    name = models.CharField(max_length=80, unique=True)
    questions = models.JSONField(default=list)  #: requests of analyses, in the order of the page
    cron = models.CharField(max_length=100, blank=True)  #: a crontab line; none: only when somebody asks
    zone = models.CharField(max_length=64, default="UTC")  #: the time zone of its schedule and of its texts
    is_on = models.BooleanField(default=True)
    missed = models.CharField(
        max_length=8, choices=[(each.value, each.value) for each in MissedRunPolicy], default="once"
    )
    due = models.DateTimeField(null=True, db_index=True)  #: the first moment that nobody has acted on yet
    roles = models.JSONField(default=list)  #: who is sent it: people in these roles
    addresses = models.CharField(max_length=1000, blank=True)  #: and these, comma separated
    attach = models.BooleanField(default=True)  #: whether its tables come with the mail, as CSV
    document = models.CharField(max_length=4, blank=True)  #: format of the file with the mail; "": none
    keep_days = models.PositiveIntegerField(default=90)  #: editions are kept; 0: for ever
    owner = models.CharField(max_length=150)  #: the user who is told when it fails
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def timing(self) -> ReportSchedule | None:
        """Return the schedule; None for reports on demand."""
        return ReportSchedule(self.cron, self.zone) if self.cron else None


class Edition(models.Model):
    """One issue of a report: its analyses for the time that ends at one moment."""

    class State(models.TextChoices):
        """The states of an edition; the last three are final."""

        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        SKIPPED = "skipped"  #: the one before was still running

    class Mail(models.TextChoices):
        """The state of the email of an edition."""

        NONE = ""  #: nobody is sent it
        DUE = "due"
        SENT = "sent"
        FAILED = "failed"

    report = models.ForeignKey(Report, models.CASCADE, related_name="editions")
    moment = models.DateTimeField()  #: when it was due: its windows end then
    asked_by = models.CharField(max_length=150, blank=True)  #: who pressed `Run now`; nobody: the schedule
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    reason = models.TextField(blank=True)  #: why it failed or was skipped
    parts = models.PositiveSmallIntegerField(default=0)  #: analyses it is made of
    missed = models.PositiveIntegerField(default=0)  #: moments passed over before it, while nothing ran
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True)
    mail = models.CharField(max_length=8, choices=Mail, default=Mail.NONE, blank=True)
    mail_due = models.DateTimeField(null=True)
    mail_attempts = models.PositiveSmallIntegerField(default=0)
    mail_detail = models.TextField(blank=True)  #: to whom it went, or why it did not

    class Meta:
        ordering = ["-moment", "-id"]
        indexes = [models.Index(fields=["state"]), models.Index(fields=["mail", "mail_due"])]

    def __str__(self) -> str:
        return f"{self.report}, {self.moment:%Y-%m-%d %H:%M} UTC"
