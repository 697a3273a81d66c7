"""Find the node that a request concerns, whichever node received it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerapp.model.destination import Destination
from brokerapp.nodes.links.members import NETWORK, NodeMembers

#: How the verbs of requests about network connectors begin.
NETWORK_VERBS = "network"


def other_node_for(members: NodeMembers, verb: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the name of the node that is to answer a request, if that is another one."""
    session = members.session
    if verb.startswith(NETWORK_VERBS):
        session = members.leader_of(NETWORK)
    elif "id" in arguments:
        session = arguments["id"].partition("-")[0]
    elif (log := log_of_request(arguments)) is not None:
        session = members.owner_of(log)
    return next((each.name for each in members.others if each.session == session), None)


def log_of_request(arguments: Mapping[str, Any]) -> str | None:
    """Return the name of the log that a request is about, if it is about one."""
    name = arguments.get("queue") or arguments.get("destination")
    return str(Destination.parse(name).physical) if name else None
