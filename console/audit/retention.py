"""Delete old audit entries."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from console.audit import trail
from console.audit.models import AuditEntry

#: Entries deleted at a time, so that others may write in between.
BATCH = 5000


def purge(days: int) -> int:
    """Delete entries older than `days` (0: none) and write an entry about it; return their number."""
    if not days:
        return 0
    limit = timezone.now() - timedelta(days=days)
    count = 0
    while ids := list(AuditEntry.objects.filter(time__lt=limit).order_by("id").values_list("id", flat=True)[:BATCH]):
        count += AuditEntry.objects.filter(id__in=ids).delete()[0]
    if count:
        actor = trail.AuditActor("retention", via=AuditEntry.Via.WORKER)
        with trail.recording(actor, "forget", "audit trail") as change:
            change.after = {"entries": count, "older than": limit.isoformat()}
    return count
