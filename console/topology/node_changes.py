"""Drain nodes and spread queues over them, for a page or the REST API: check permissions, write the audit log.

A node owns queues of any name: changing one needs the permission for all destinations.
"""

from __future__ import annotations

from django.http import HttpRequest

from brokerapp.admin.nodes import DRAIN_SECONDS, DrainOutcome
from console.access.permissions import Permission, require_everywhere
from console.audit import trail
from console.broker.gateway import PATIENCE, gateway
from console.broker.mirror import mirror


def drain_node(request: HttpRequest, node: str) -> DrainOutcome:
    """Hand the queues of a node over to other nodes and let its clients go. Raises RequestRefused, PermissionDenied."""
    require_everywhere(request, Permission.NODES)
    with trail.recording(request, "drain node", node) as change:
        outcome: DrainOutcome = gateway().run(gateway().admin.membership.drain(node), DRAIN_SECONDS + PATIENCE)
        change.after = outcome.to_json()
    _wait_for_mirror(node, is_drained=True)
    return outcome


def end_drain(request: HttpRequest, node: str) -> None:
    """Let a drained node serve again. Raises RequestRefused, PermissionDenied."""
    require_everywhere(request, Permission.NODES)
    with trail.recording(request, "end drain of node", node):
        gateway().run(gateway().admin.membership.end_drain(node))
    _wait_for_mirror(node, is_drained=False)


def rebalance_nodes(request: HttpRequest) -> dict[str, int]:
    """Spread queues evenly over the nodes. Return how many each owns. Raises RequestRefused, PermissionDenied."""
    require_everywhere(request, Permission.NODES)
    admin = gateway().admin.membership
    before = {"owned": gateway().run(admin.owned_counts())}
    with trail.recording(request, "rebalance nodes", "", before=before) as change:
        owned: dict[str, int] = gateway().run(admin.rebalance())
        change.after = {"owned": owned}
    return owned


def _wait_for_mirror(node: str, *, is_drained: bool) -> None:
    """Wait briefly until the mirror shows the change."""
    mirror().wait_until(
        lambda picture: any(
            each.name == node and bool(each.homes.get("draining")) is is_drained for each in picture.nodes
        )
    )
