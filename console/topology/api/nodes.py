"""REST operations on the nodes of the broker."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from console.access.roles import Permission
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.broker.gateway import gateway
from console.topology import node_changes

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


class DrainIn(RequestBody):
    """Whether a node is drained."""

    draining: bool


class DrainOut(Schema):
    """A node, and what was handed over and let go when it was drained; null when a drain ended."""

    node: str
    draining: bool
    handed_over: int | None
    clients_released: int | None


@operation(router, "GET", "", Permission.SEE, response=list[NodeOut])
def list_nodes(request: HttpRequest) -> Any:
    """List the running nodes with their listeners and store usage."""
    return gateway().nodes()


@operation(router, "PUT", "/{name:name}/draining", Permission.NODES, response=DrainOut)
def drain_node(request: HttpRequest, name: str, wanted: DrainIn) -> Any:
    """Hand the queues of a node over and let its clients go, or let a drained node serve again."""
    if not wanted.draining:
        node_changes.end_drain(request, name)
        return DrainOut(node=name, draining=False, handed_over=None, clients_released=None)
    done = node_changes.drain_node(request, name)
    return DrainOut(node=name, draining=True, handed_over=done.owned_count, clients_released=done.released_count)


@operation(router, "POST", "/rebalance", Permission.NODES, response=dict[str, int])
def rebalance_nodes(request: HttpRequest) -> Any:
    """Spread queues evenly over the nodes. Returns how many each node owns."""
    return node_changes.rebalance_nodes(request)
