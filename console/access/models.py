"""Store role assignments, masking rules and the version of permissions."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from console.access.masking_rules import MaskRule
from console.access.roles import RoleGrant


class Assignment(models.Model):
    """Store a role of a user or of all members of a group, for some destinations or for all."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="assignments")
    group = models.ForeignKey("auth.Group", models.CASCADE, null=True, related_name="assignments")
    role = models.CharField(max_length=16)  #: a Role
    scopes = models.JSONField(default=list)  #: patterns of destinations; none: everywhere
    extras = models.JSONField(
        default=list
    )  #: names of permissions in lower case, of those that EXTRAS lets the role have

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
    def grant(self) -> RoleGrant:
        """Return the grant that this assignment gives."""
        return RoleGrant.parse(self.role, self.scopes, self.extras)


class MaskingRule(models.Model):
    """Store a masking rule; see `console.access.masking_rules`."""

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
    def rule(self) -> MaskRule:
        """Return the rule as masking applies it."""
        return MaskRule.parse(self.role, self.scope, self.place, self.pattern, self.action, self.replacement)

    @property
    def target_label(self) -> str:
        """Return what the rule hides, as pages name it."""
        return {"json": "JSON value", "header": "Header"}.get(self.place, "Body text")

    @property
    def action_label(self) -> str:
        """Return what the rule does with a value, as pages name it."""
        return {"last4": "Show last four characters", "replace": "Replace with", "remove": "Remove"}.get(
            self.action, "Show"
        )


class RightsVersion(models.Model):
    """Count changes of permissions in one row; see `console.access.permission_version`."""

    version = models.BigIntegerField(default=0)
