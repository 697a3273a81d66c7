"""Describe the cluster of this broker for pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.errors import BrokerError
from console.broker.gateway import gateway
from console.topology.diagram import MEMBER_LEVELS


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A broker of the cluster, as a row of its table."""

    stats: MemberStatus
    shows_counts: (
        bool  #: whether its counters are shown: not of this broker, nor to users who see only some destinations
    )

    @property
    def level(self) -> str:
        """Return the color of its state."""
        return MEMBER_LEVELS[self.stats.state]

    @property
    def is_self(self) -> bool:
        """Return whether it is this broker."""
        return self.stats.state is MemberState.SELF

    @property
    def since(self) -> datetime | None:
        """Return the time of its last change of state; None for this broker or one without an attempt."""
        return datetime.fromtimestamp(self.stats.since_ms / 1000, UTC) if self.stats.since_ms else None


def cluster_now() -> ClusterStatus | None:
    """Read the cluster from a node; None without a cluster or without an answer."""
    try:
        return gateway().run(gateway().admin.cluster())
    except BrokerError:
        return None


def cluster_context(cluster: ClusterStatus | None, sees_all: bool) -> dict[str, Any]:
    """Collect what the cluster section shows. Sums are hidden from users who do not see all destinations."""
    members = [
        MemberRow(each, sees_all and each.state is not MemberState.SELF)
        for each in (cluster.members if cluster else ())
    ]
    return {"cluster": cluster, "members": members, "master": next((m for m in members if m.stats.is_master), None)}
