"""Store alert rules, their firings and the notifications to send."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models, transaction


class AlertRule(models.Model):
    """Store an alert rule: metric, threshold and recipients. See console.alerts.rules."""

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
    """Store a time in which a subject violated a rule: pending first, firing after the hold time."""

    class State(models.TextChoices):
        """The states of an alert."""

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
    """Store one notification to a recipient about a firing."""

    class State(models.TextChoices):
        """The states of a notification; the last three are final."""

        QUEUED = "queued"
        SENT = "sent"
        FAILED = "failed"
        HELD = "held"  #: there were too many within the hour

    #: Why an alert is over that still held when nobody judged it any more, by the event that tells so.
    REASONS: ClassVar = {"off": "rule disabled", "deleted": "rule deleted"}

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
