"""Store the executions of analyses."""

from __future__ import annotations

import uuid

from django.db import models


class RunManager(models.Manager):
    """Defer the definitions of what-if runs, which are large, until they are read."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().defer("trial")


class AnalysisRun(models.Model):
    """Store one execution of an analysis, from its request to its end."""

    class State(models.TextChoices):
        """Name the state of a run; the last three are final."""

        QUEUED = "queued"
        STARTING = "starting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    FINAL = frozenset({State.DONE, State.FAILED, State.CANCELLED})

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=64)
    title = models.CharField(max_length=200)
    request = models.JSONField(default=dict)  #: what analytics was asked: the kind and its parameters
    #: The definitions of a what-if run, see analytics/requests/whatif_request.py; None for other analyses.
    trial = models.JSONField(null=True)
    #: What the views show a run of SQL, see analytics/sql/access.py; None for other analyses, and before it is known.
    access = models.JSONField(null=True)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    stage = models.CharField(max_length=200, blank=True)  #: what it is doing, in words
    progress = models.FloatField(default=0)  #: 0 to 1
    reason = models.TextField(blank=True)  #: why it failed or was cancelled, or is tried again
    sentence = models.TextField(blank=True)  #: its result in one sentence
    asked_by = models.CharField(max_length=150)  #: a user name, or the name of a report
    #: The edition of a report that it is part of.
    edition = models.ForeignKey("console.Edition", models.SET_NULL, null=True, related_name="runs")
    worker = models.CharField(max_length=150, blank=True)  #: the worker that has it, by its name in Celery
    tries = models.PositiveSmallIntegerField(default=0)  #: that ended with their worker, or with Spark's server
    rows = models.PositiveBigIntegerField(null=True)  #: recorded events in the files that its window touches
    pinned = models.BooleanField(default=False)  #: kept for ever
    created = models.DateTimeField(auto_now_add=True)
    sent = models.DateTimeField(null=True)  #: to the workers; until then it waits for its turn
    started = models.DateTimeField(null=True)
    changed = models.DateTimeField(auto_now=True)
    finished = models.DateTimeField(null=True)
    result = models.CharField(max_length=500, blank=True)  #: the result file, relative to the folder of results

    objects = RunManager()

    class Meta:
        ordering = ["-created"]
        indexes = [models.Index(fields=["-created"]), models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"{self.title}, {self.created:%Y-%m-%d %H:%M}"

    @property
    def is_final(self) -> bool:
        """Return whether the run has ended."""
        return self.state in self.FINAL

    @property
    def person(self) -> str:
        """Return whose turn in the queue the run uses; all reports share one."""
        return "" if self.edition_id else self.asked_by
