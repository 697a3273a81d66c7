"""Store objectives."""

from __future__ import annotations

from django.db import models

from brokerapp.model.destination import Destination, DestinationKind
from console.objectives.targets import Target


class Objective(models.Model):
    """Store an objective: `percent` of the messages of the queues, or durable subscriptions, are acknowledged within
    `seconds`, over `days`.
    """

    class Kind(models.TextChoices):
        """What the messages are stored for."""

        QUEUE = str(DestinationKind.QUEUE), "Queues"
        SUBSCRIPTION = str(DestinationKind.SUBSCRIPTION), "Durable subscriptions"

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.QUEUE)
    pattern = models.CharField(max_length=1100)  #: of queues, or of the topics of subscriptions, without their kind
    subscription = models.CharField(max_length=1100, blank=True, default="")  #: see Target
    percent = models.FloatField()
    seconds = models.PositiveIntegerField()
    days = models.PositiveSmallIntegerField()
    author = models.CharField(max_length=150)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def target(self) -> Target:
        """Return what the objective demands."""
        kind = DestinationKind(self.kind)
        return Target(self.pattern, self.percent, self.seconds, self.days, kind, self.subscription)

    @property
    def destination(self) -> Destination:
        """Return the pattern of queues or topics as a destination."""
        return self.target.destination
