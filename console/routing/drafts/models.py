"""Models of drafts: changes that are prepared, discussed and approved before they are applied."""

from __future__ import annotations

from django.db import models

from console.routing.definitions.changes import DefinitionChange


class Draft(models.Model):
    """Several changes that are applied together."""

    class State(models.TextChoices):
        """States of a draft; the last two are final."""

        OPEN = "open"
        ASKED = "asked"  #: awaiting approval by a user who may apply it
        APPLIED = "applied"
        DROPPED = "dropped"

    OPEN_STATES = (State.OPEN, State.ASKED)

    name = models.CharField(max_length=120)
    author = models.CharField(max_length=150)
    changes = models.JSONField(default=list)  #: of Change.to_json
    base_version = models.PositiveIntegerField()  #: of the definitions that it was derived from
    revision = models.PositiveIntegerField(default=0)  #: grows with each change of the draft itself
    state = models.CharField(max_length=16, choices=State, default=State.OPEN, db_index=True)
    applied_version = models.PositiveIntegerField(null=True)
    decided_by = models.CharField(max_length=150, blank=True)  #: the user who applied or discarded it
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-changed", "-id"]

    @property
    def is_open(self) -> bool:
        """Return whether the draft can be changed."""
        return self.state in self.OPEN_STATES

    def read_changes(self) -> list[DefinitionChange]:
        """Read the changes. Raises DefinitionRefused if this version of the broker does not support them."""
        return [DefinitionChange.from_json(each) for each in self.changes]


class DraftRemark(models.Model):
    """A comment on a draft, or a step of it."""

    draft = models.ForeignKey(Draft, on_delete=models.CASCADE, related_name="remarks")
    author = models.CharField(max_length=150)
    time = models.DateTimeField(auto_now_add=True)
    what = models.CharField(max_length=32)  #: `said`, `began`, `changed`, `asked`, `returned`, ...
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["time", "id"]
