"""Define the audit entry, apart from other models: `brokerctl` imports it and must start fast."""

from __future__ import annotations

from django.db import models

#: Outcomes as pages show them.
OUTCOME_LABELS = {
    "done": "Done",
    "asked": "Awaiting approval",
    "denied": "Denied",
    "refused": "Rejected",
    "failed": "Failed",
}


class AuditEntry(models.Model):
    """Store one change, sign-in or denied action; entries are never changed."""

    class Outcome(models.TextChoices):
        """Name how an action ended."""

        DONE = "done"
        ASKED = "asked"  #: nothing is done yet: somebody with the right to is asked to approve
        DENIED = "denied"
        REFUSED = "refused"
        FAILED = "failed"

    class Via(models.TextChoices):
        """Name the interface that was used."""

        CONSOLE = "console"
        API = "api"
        BROKERCTL = "brokerctl"
        WORKER = "worker"

    time = models.DateTimeField(auto_now_add=True, db_index=True)
    who = models.CharField(max_length=150)
    address = models.CharField(max_length=64, blank=True)  #: from where
    agent = models.CharField(max_length=300, blank=True)  #: the browser or program
    via = models.CharField(max_length=16, choices=Via, default=Via.CONSOLE)
    action = models.CharField(max_length=64)  #: a verb, e.g. `purge`
    object = models.CharField(max_length=500)  #: what it was done to, e.g. `queue://orders`
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    outcome = models.CharField(max_length=16, choices=Outcome)
    detail = models.TextField(blank=True)  #: why it was denied, refused or failed

    class Meta:
        # The order in which they were written; each way to filter has an index that also orders, for millions of rows.
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["who", "-id"], name="audit_by_who"),
            models.Index(fields=["action", "-id"], name="audit_by_action"),
            models.Index(fields=["outcome", "-id"], name="audit_by_outcome"),
        ]

    @property
    def outcome_label(self) -> str:
        """Return the label of the outcome."""
        return OUTCOME_LABELS.get(self.outcome, self.outcome)

    @property
    def badge_class(self) -> str:
        """Return the CSS class of the outcome's badge."""
        return {"done": "badge-good", "denied": "badge-look", "asked": "badge-look"}.get(self.outcome, "badge-act")
