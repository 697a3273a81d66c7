"""Serve the audit log to API clients."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from brokerapp.errors import RequestRefused
from console.access.permissions import require_everywhere
from console.access.roles import Permission
from console.api.common.operations import operation
from console.audit.search.queries import AuditQuery

router = Router(tags=["audit"])


class AuditEntryOut(Schema):
    """Describe one audit entry."""

    id: int
    time: datetime
    who: str
    address: str
    agent: str
    via: str
    action: str
    object: str
    before: Any
    after: Any
    outcome: str
    detail: str


class AuditEntryPage(Schema):
    """Describe entries, newest first; continue with `before` set to the last id while `has_older`."""

    items: list[AuditEntryOut]
    has_older: bool


@operation(router, "GET", "", Permission.AUDIT, response=AuditEntryPage)
def list_entries(
    request: HttpRequest, q: str = "", who: str = "", action: str = "", object: str = "", outcome: str = "",
    since: str = "", until: str = "", before: str = "",
) -> Any:  # fmt: skip
    """Search the audit log."""
    require_everywhere(request, Permission.AUDIT)
    query = AuditQuery(q, who, action, object, outcome, since, until, before)
    if query.wrong:
        raise RequestRefused("; ".join(f"{name}: {rule}" for name, rule in query.wrong.items()))
    page = query.page()
    return {"items": page.entries, "has_older": page.has_older}
