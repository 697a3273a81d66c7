"""What only the console owns: runs of analyses, the audit trail, who has which role, a user's settings. The rest is the
broker's."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models, transaction

from console.access.masking_rules import Rule
from console.access.roles import Grant
from console.analyses.reports.models import Edition, Report
from console.audit.models import AuditEntry
from console.messages.jobs.models import Job, JobOutcome, Replacement, SavedSelector, Template
from console.messages.search.models import MessageSearch, SearchHit
from console.routing.drafts.models import Draft, DraftRemark  # noqa: F401  (Django looks for models here)

__all__ = [
    "AnalysisRun",
    "Assignment",
    "AuditEntry",
    "Edition",
    "Job",
    "JobOutcome",
    "MessageSearch",
    "Replacement",
    "Report",
    "SavedSelector",
    "SearchHit",
    "Template",
    "UserSetting",
]


class Runs(models.Manager):
    """Runs without the definitions that trials judge, which are large: they are read when somebody asks for them."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().defer("trial")


class AnalysisRun(models.Model):
    """One execution of an analysis, from the click or the schedule to its end."""

    class State(models.TextChoices):
        """Where a run stands; the last three are final."""

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
    trial = models.JSONField(
        null=True
    )  #: what is judged, see analytics/requests/whatif_request.py; None where nothing is
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    stage = models.CharField(max_length=200, blank=True)  #: what it is doing, in words
    progress = models.FloatField(default=0)  #: 0 to 1
    reason = models.TextField(blank=True)  #: why it failed or was cancelled, or is tried again
    sentence = models.TextField(blank=True)  #: its result in one sentence
    asked_by = models.CharField(max_length=150)  #: a user name, or the name of a report
    edition = models.ForeignKey(Edition, models.SET_NULL, null=True, related_name="runs")  #: of a report it is part of
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

    objects = Runs()

    class Meta:
        ordering = ["-created"]
        indexes = [models.Index(fields=["-created"]), models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"{self.title}, {self.created:%Y-%m-%d %H:%M}"

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self.state in self.FINAL

    @property
    def person(self) -> str:
        """Whose turn it is when it is this run's: all reports together are one."""
        return "" if self.edition_id else self.asked_by


class Assignment(models.Model):
    """A role that a user, or everybody in a group, has: for some destinations, or for all."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="assignments")
    group = models.ForeignKey("auth.Group", models.CASCADE, null=True, related_name="assignments")
    role = models.CharField(max_length=16)  #: a Role
    scopes = models.JSONField(default=list)  #: patterns of destinations; none: everywhere
    extras = models.JSONField(default=list)  #: names of verbs in lower case, of those that EXTRAS lets the role have

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(user__isnull=False, group__isnull=True)
                | models.Q(user__isnull=True, group__isnull=False),
                name="assignment_has_one_holder",
            )
        ]

    @property
    def grant(self) -> Grant:
        """What it gives."""
        return Grant.of(self.role, self.scopes, self.extras)


class MaskingRule(models.Model):
    """What some roles do not see of messages; see `console.access.masking_rules`."""

    order = models.IntegerField(default=0)
    active = models.BooleanField(default=True)
    role = models.CharField(max_length=16, blank=True)  #: a Role; "": every one
    scope = models.CharField(max_length=500, default=">")
    place = models.CharField(max_length=16)
    pattern = models.CharField(max_length=500, blank=True)
    action = models.CharField(max_length=16)
    replacement = models.CharField(max_length=200, blank=True)
    comment = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["order", "id"]

    @property
    def rule(self) -> Rule:
        """What it does."""
        return Rule.of(self.role, self.scope, self.place, self.pattern, self.action, self.replacement)


class RightsVersion(models.Model):
    """One row: how often anybody's rights have changed; see `console.access.permission_version`."""

    version = models.BigIntegerField(default=0)


class UserSetting(models.Model):
    """What a user chose for their own screen."""

    class Theme(models.TextChoices):
        """The system's own choice, or an override."""

        AUTO = "auto", "System"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"
        CONTRAST = "contrast", "Contrast"  #: high contrast, light or dark as the system says

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="setting")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.AUTO)
    zone = models.CharField(max_length=64, default="UTC")  #: the name of the time zone in which pages tell times
    bell_seen = models.DateTimeField(null=True)  #: when the bell was last opened
    single_keys = models.BooleanField(
        default=True
    )  #: whether single letters do something (WCAG 2.1.4 lets users say no)


class ApiToken(models.Model):
    """A key to the API and the machine endpoints, instead of its user's password and with no more than their rights."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)  #: what it is for
    digest = models.CharField(max_length=64, unique=True)  #: SHA-256 of the token, which nobody keeps
    hint = models.CharField(max_length=16)  #: how the token begins
    verbs = models.JSONField(default=list)  #: names of verbs in lower case
    scopes = models.JSONField(default=list)  #: patterns of destinations; none: wherever its user has the right
    made_by = models.CharField(max_length=150)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)  #: last, to the minute
    used_from = models.CharField(max_length=64, blank=True)
    revoked = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created", "-id"]


class Star(models.Model):
    """What a user has starred. What can be: console.ui.preferences.favourites."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="stars")
    MAX_SUBJECT = 1100
    subject = models.CharField(max_length=MAX_SUBJECT)  #: `queue://orders`, `client://billing`

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "subject"], name="star_once")]


class SavedView(models.Model):
    """What a list shows, as a user keeps it under a name."""

    #: Views of one list that a user may keep, and characters of a name.
    MOST, MAX_NAME = 20, 40

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="views")
    page = models.CharField(max_length=32)  #: name of the list's page
    name = models.CharField(max_length=MAX_NAME)
    query = models.CharField(max_length=500, blank=True)  #: as in the URL, with its `?`

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="view_once")]


class AlertRule(models.Model):
    """A rule on a number, and who is told when it is broken. What it means: console.alerts.rules."""

    name = models.CharField(max_length=80, unique=True)
    metric = models.CharField(max_length=16)  #: a Metric
    pattern = models.CharField(max_length=1100, default=">")  #: of destinations
    threshold = models.FloatField()
    below = models.BooleanField(default=False)
    hold = models.PositiveIntegerField(default=0)  #: seconds
    is_on = models.BooleanField(default=True)
    silenced_until = models.DateTimeField(null=True)  #: nobody is told until then; it is judged all the same
    mail = models.CharField(max_length=500, blank=True)  #: addresses, comma separated
    webhook = models.CharField(max_length=500, blank=True)
    secret = models.CharField(max_length=100, blank=True)  #: signs what the webhook is sent
    author = models.CharField(max_length=150)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Delete the rule; its firings keep the secret that signs what is still to be sent about them."""
        with transaction.atomic():
            unsent = models.Q(deliveries__state=AlertDelivery.State.QUEUED)
            still_open = ~models.Q(state=AlertFiring.State.ENDED)
            kept = self.firings.filter(unsent | still_open).values_list("pk", flat=True)
            AlertFiring.objects.filter(pk__in=list(kept)).update(secret=self.secret)
            return super().delete(*args, **kwargs)


class AlertFiring(models.Model):
    """A time in which a rule was broken by one subject. It begins pending, and fires when it was held long enough."""

    class State(models.TextChoices):
        """Where it stands."""

        PENDING = "pending"
        FIRING = "firing"
        ENDED = "ended"

    rule = models.ForeignKey(AlertRule, models.SET_NULL, null=True, related_name="firings")
    rule_name = models.CharField(max_length=80)  #: as it was called then
    subject = models.CharField(max_length=1100)  #: a destination in native form, or `broker`
    topics = models.JSONField(default=list)  #: of a subject that is a subscription, in native form
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    since = models.DateTimeField()  #: it is broken
    fired = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    value = models.FloatField()  #: the latest
    worst = models.FloatField()
    sentence = models.TextField()  #: what was told
    secret = models.CharField(max_length=100, blank=True)  #: of a deleted rule: signs what is still sent about this

    class Meta:
        ordering = ["-since", "-id"]
        indexes = [models.Index(fields=["state"]), models.Index(fields=["-since"])]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "subject"], condition=~models.Q(state="ended"), name="alert_open_once"
            )
        ]


class AlertDelivery(models.Model):
    """One message to somebody outside about a firing."""

    class State(models.TextChoices):
        """Where it stands; the last three are final."""

        QUEUED = "queued"
        SENT = "sent"
        FAILED = "failed"
        HELD = "held"  #: there were too many within the hour

    #: Why an alert is over that still held when nobody judged it any more, by the event that tells so.
    REASONS: ClassVar = {"off": "its rule was switched off", "deleted": "its rule was deleted"}

    firing = models.ForeignKey(AlertFiring, models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=8)  #: mail or webhook
    event = models.CharField(max_length=8)  #: fired, ended, or one of REASONS
    target = models.CharField(max_length=500)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    due = models.DateTimeField()  #: when it is to be tried
    detail = models.TextField(blank=True)  #: why it failed
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created", "-id"]
        indexes = [models.Index(fields=["state", "due"])]

    @property
    def reason(self) -> str:
        """Why it is over, where that is not that the rule is kept again; "" else."""
        return self.REASONS.get(self.event, "")
