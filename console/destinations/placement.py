"""Homes: at which of several nodes a destination is at home and its clients are, and how the nodes stand. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import NodeStatus
from brokerapp.nodes.membership.ownership import NodeMember, NodeMembers
from console.ui.formatting import number_format

#: What is said of one with connections, while it gives out nothing of some queues.
MOVING = "queues are moving"


def home_of(nodes: Sequence[NodeStatus], destination: Destination) -> str:
    """The name of the node that gives out the messages of a queue; "" where one node has all, or none runs."""
    if len(nodes) < 2 or not destination.is_queue:
        return ""
    members = NodeMembers(0, [NodeMember(each.name, each.node) for each in nodes], "")
    return node_at(nodes, members.home(str(destination.physical)))


def node_at(nodes: Sequence[NodeStatus], session: str) -> str:
    """The name of the node of this session; "" for one that runs no more."""
    return next((each.name for each in nodes if each.node == session), "")


def node_of(nodes: Sequence[NodeStatus], connection: str) -> str:
    """The name of the node that a connection is at, by the id of the connection."""
    return node_at(nodes, connection.rpartition("-")[0])


@dataclass(frozen=True, slots=True)
class Standing:
    """A node among the others of its broker."""

    mood: str  #: good, look or act
    says: str  #: what is at home there; "" where it has all


def standing_of(node: NodeStatus, sees_all: bool = True) -> Standing:
    """How it stands. Who does not see all destinations is told no sums of all."""
    homes = node.homes
    if not homes:
        return Standing("good", "")
    if homes["unreached"]:
        return Standing("act", f"does not reach {', '.join(homes['unreached'])}")
    if not homes["settled"]:
        return Standing("look", MOVING)
    if not sees_all:
        return Standing("good", "")
    serves = (
        f", serves {number_format.pluralize_count(homes['served'], 'consumer')} of others" if homes["served"] else ""
    )
    return Standing("good", f"home of {number_format.pluralize_count(homes['logs'], 'queue')}{serves}")
