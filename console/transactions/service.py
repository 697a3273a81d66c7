"""Prepared transactions for pages and the REST API: listing, commit and rollback by an operator."""

from __future__ import annotations

from django.http import HttpRequest

from brokerapp.admin.transactions import PreparedTransaction
from console.access.permissions import AnyUser, Permission, require_everywhere, visible
from console.access.roles import everything
from console.audit import trail
from console.broker.gateway import gateway


def prepared(user: AnyUser) -> tuple[list[PreparedTransaction], int]:
    """Return the prepared transactions, oldest first, and how many are hidden: they may concern any destination."""
    found = gateway().run(gateway().admin.transactions.prepared())
    if visible(user, Permission.BROWSE) is not everything:
        return [], len(found)
    return found, 0


def end(request: HttpRequest, id: str, *, commit: bool) -> None:
    """Commit or roll back a prepared transaction, with an audit entry. Raises TransactionNotFound, PermissionDenied."""
    require_everywhere(request, Permission.REMOVE)
    admin = gateway().admin.transactions
    found = next((each.to_json() for each in gateway().run(admin.prepared()) if each.id == id), None)
    with trail.recording(request, "commit transaction" if commit else "roll back transaction", id, before=found):
        gateway().run(admin.end(id, commit=commit))
