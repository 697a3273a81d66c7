"""The cluster of this broker, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.errors import BrokerError
from console.broker.gateway import gateway
from console.topology.diagram import MEMBER_MOODS


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One broker of it."""

    stats: MemberStatus
    shows_counts: bool  #: whether its numbers are told: it is another one, and who looks sees all they are about

    @property
    def mood(self) -> str:
        """How its state is coloured."""
        return MEMBER_MOODS[self.stats.state]

    @property
    def is_self(self) -> bool:
        """Whether it is this broker."""
        return self.stats.state is MemberState.SELF

    @property
    def since(self) -> datetime | None:
        """When it came into its state; None: it is this one, or was never tried."""
        return datetime.fromtimestamp(self.stats.since_ms / 1000, UTC) if self.stats.since_ms else None


def cluster_now() -> ClusterStatus | None:
    """The cluster as a node sees it; None for none, and where no node can say."""
    try:
        return gateway().run(gateway().admin.cluster())
    except BrokerError:
        return None


def cluster_context(cluster: ClusterStatus | None, sees_all: bool) -> dict[str, Any]:
    """What the part about the cluster shows. Who does not see all destinations is told no sums of all."""
    members = [
        MemberRow(each, sees_all and each.state is not MemberState.SELF)
        for each in (cluster.members if cluster else ())
    ]
    return {"cluster": cluster, "members": members, "master": next((m for m in members if m.stats.is_master), None)}
