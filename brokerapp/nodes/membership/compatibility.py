"""Decide which nodes may be members of one broker at the same time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerapp.errors import ConfigurationRefused

#: What others read of a node: whether its broker is in a cluster.
CLUSTERED = "clustered"


def check_compatibility(node: str, clustered: bool, others: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ConfigurationRefused where some nodes of a broker are in a cluster and others are not.

    `others` are the live nodes of the broker, by their names.
    """
    for name, about in others.items():
        if bool(about.get(CLUSTERED)) is not clustered:
            here, there = ("is", "is not") if clustered else ("is not", "is")
            raise ConfigurationRefused(
                f"node {node} {here} configured for a cluster (clusterBrokers), node {name} {there}: "
                "all nodes of a broker have the same setting"
            )
