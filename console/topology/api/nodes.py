"""REST operations on the nodes of the broker."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from console.access.roles import Permission
from console.api.common.operations import operation
from console.broker.gateway import gateway

router = Router(tags=["nodes"])


class NodeOut(Schema):
    """A running node of the broker."""

    name: str
    node: str
    broker: str
    started_ms: int
    seen_ms: int
    address: list[str]
    listeners: list[dict[str, Any]]
    trace: dict[str, Any]
    store: dict[str, Any]
    homes: dict[str, Any]
    definitions: int | None = Field(None, description="Version of the definitions that it applies; null: not reported")


@operation(router, "GET", "", Permission.SEE, response=list[NodeOut])
def list_nodes(request: HttpRequest) -> Any:
    """List the running nodes with their listeners and store usage."""
    return gateway().nodes()
