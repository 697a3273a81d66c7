"""Store objectives."""

from __future__ import annotations

from django.db import models

from brokerapp.model.destination import Destination
from console.objectives.targets import Target


class Objective(models.Model):
    """Store an objective: `percent` of the messages of the queues are acknowledged within `seconds`, over `days`."""

    name = models.CharField(max_length=80, unique=True)
    pattern = models.CharField(max_length=1100)  #: of queues, without their kind
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
        return Target(self.pattern, self.percent, self.seconds, self.days)

    @property
    def destination(self) -> Destination:
        """Return the pattern of queues as a destination."""
        return Destination.queue(self.pattern)
