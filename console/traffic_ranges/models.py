"""Store the expected traffic of destinations."""

from __future__ import annotations

from django.db import models

from analytics.model.traffic_comparison import ExpectedHour
from analytics.rollups.expected_traffic import ExpectedTraffic


class TrafficRange(models.Model):
    """Store the expected ranges of a destination: of past days, as they were expected then, and of the next day."""

    destination = models.CharField(max_length=1100, unique=True)  #: in native form
    first = models.IntegerField()  #: hour of the first range, in hours since the epoch
    ranges = models.JSONField(default=list)  #: low end, median and high end of each hour; none: too little history
    recorded_hours = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("destination",)

    def __str__(self) -> str:
        return self.destination

    @property
    def expected(self) -> ExpectedTraffic:
        """Return the ranges."""
        return ExpectedTraffic(self.first, [ExpectedHour(*each) for each in self.ranges], self.recorded_hours)
