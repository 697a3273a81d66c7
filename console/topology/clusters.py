"""The cluster of this broker, as pages show it."""

from __future__ import annotations

from typing import Any

from brokerapp.cluster.status import ClusterStatus
from brokerapp.errors import BrokerError
from console.gateway import gateway
from console.topology.drawn import MEMBER_MOODS


def cluster_now() -> ClusterStatus | None:
    """The cluster as a node sees it; None for none, and where no node can say."""
    try:
        return gateway().run(gateway().admin.cluster())
    except BrokerError:
        return None


def cluster_context(cluster: ClusterStatus | None) -> dict[str, Any]:
    """What the part about the cluster shows."""
    members = [(each, MEMBER_MOODS[each.state]) for each in cluster.members] if cluster else []
    return {"cluster": cluster, "members": members}
