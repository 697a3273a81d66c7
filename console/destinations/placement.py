"""Finds the owner node of a queue and the node of a connection, and summarizes the state of nodes. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import NodeStatus
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from console.ui.formatting import number_format

#: Status of a node with connections while the ownership of some queues is changing.
MOVING = "queues are changing owner"


def owner_node(nodes: Sequence[NodeStatus], destination: Destination) -> str:
    """Return the name of the node that owns a queue; "" with a single node or none."""
    if len(nodes) < 2 or not destination.is_queue:
        return ""
    members = NodeMembers(0, [_member(each) for each in nodes], "")
    return node_name(nodes, members.owner_of(str(destination.physical)))


def _member(node: NodeStatus) -> NodeMember:
    is_draining, assigned = bool(node.homes.get("draining")), frozenset(node.homes.get("assigned", ()))
    return NodeMember(node.name, node.node, is_draining=is_draining, assigned=assigned)


def node_name(nodes: Sequence[NodeStatus], session: str) -> str:
    """Return the name of the node of this session; "" if it no longer runs."""
    return next((each.name for each in nodes if each.node == session), "")


def node_of_connection(nodes: Sequence[NodeStatus], connection: str) -> str:
    """Return the name of the node that accepted a connection, derived from the connection's id."""
    return node_name(nodes, connection.rpartition("-")[0])


@dataclass(frozen=True, slots=True)
class NodeStatusView:
    """State of one node of a broker with several."""

    level: str  #: class of the badge: good, look or act
    says: str  #: what the node owns; "" with a single node


def node_status_view(node: NodeStatus, sees_all: bool = True) -> NodeStatusView:
    """Summarize the state of a node. Totals are left out for users who may not see all destinations."""
    homes = node.homes
    if not homes:
        return NodeStatusView("good", "")
    if homes["unreached"]:
        return NodeStatusView("act", f"cannot reach {', '.join(homes['unreached'])}")
    if homes.get("draining"):
        return NodeStatusView("look", homes["draining"])
    if not homes["settled"]:
        return NodeStatusView("look", MOVING)
    if not sees_all:
        return NodeStatusView("good", "")
    serves = (
        f", serves {number_format.pluralize_count(homes['served'], 'consumer')} of other nodes"
        if homes["served"]
        else ""
    )
    return NodeStatusView("good", f"owns {number_format.pluralize_count(homes['logs'], 'queue')}{serves}")
