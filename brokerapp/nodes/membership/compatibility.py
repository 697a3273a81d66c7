"""Decide which nodes may be members of one broker at the same time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerapp.errors import ConfigurationRefused

#: What others read of a node: whether its broker is in a cluster.
CLUSTERED = "clustered"
RULE = "a broker of a cluster (clusterBrokers) is one node with a store of its own"


def check_compatibility(node: str, is_named: bool, clustered: bool, others: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ConfigurationRefused where a broker of a cluster would have several nodes.

    Each of them would have links of its own to the other brokers, of which those take one. `others` are the live nodes
    of the broker, by their names.
    """
    if clustered and is_named:
        raise ConfigurationRefused(f"--node {node}: {RULE}, and the configuration of this node has one")
    if clustered and others:
        raise ConfigurationRefused(f"{RULE}: other nodes of this one are running: {', '.join(sorted(others))}")
    for name, about in others.items():
        if about.get(CLUSTERED):
            raise ConfigurationRefused(f"{RULE}: node {node} cannot join node {name}, whose broker is in one")
