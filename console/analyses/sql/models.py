"""Store SQL statements that users keep and share."""

from __future__ import annotations

from django.db import models


class SavedQuery(models.Model):
    """Store a statement with its time range and chart, and with whom it is shared."""

    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    statement = models.TextField()
    window = models.CharField(max_length=8, default="24h")  #: as in AnalysisRequest
    chart = models.JSONField(default=dict)  #: parameters chart, x, y and series
    owner = models.CharField(max_length=150)  #: the user who may change it
    everyone = models.BooleanField(default=False)  #: shared with all users who may write SQL
    roles = models.JSONField(default=list)  #: shared with those of them who are in one of these roles
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="query_name_of_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def parameters(self) -> dict[str, str]:
        """Return the parameters of a run of it."""
        return {"statement": self.statement, "window": self.window, **self.chart}
