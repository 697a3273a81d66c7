"""REST operations on prepared transactions."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from console.access.roles import Permission
from console.api.common.operations import operation
from console.transactions import service

router = Router(tags=["transactions"])


class PreparedTransactionOut(Schema):
    """A prepared transaction (XA)."""

    id: str
    client_id: str
    user: str
    prepared_ms: int
    sends: int
    acks: int
    size: int


@operation(router, "GET", "", Permission.BROWSE, response=list[PreparedTransactionOut])
def list_transactions(request: HttpRequest) -> Any:
    """List prepared transactions, oldest first; none for users with a scope."""
    return service.prepared(request.user)[0]


@operation(router, "POST", "/{transaction}/commit", Permission.REMOVE, response={204: None})
def commit_transaction(request: HttpRequest, transaction: str) -> Any:
    """Commit a prepared transaction, whatever its transaction manager decides later."""
    service.end(request, transaction, commit=True)
    return Status(204, None)


@operation(router, "POST", "/{transaction}/rollback", Permission.REMOVE, response={204: None})
def roll_back_transaction(request: HttpRequest, transaction: str) -> Any:
    """Roll back a prepared transaction, whatever its transaction manager decides later."""
    service.end(request, transaction, commit=False)
    return Status(204, None)
