"""The parts that join a node with the other nodes of its broker, as the rest of the node uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerapp.core.ports import Destinations
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.delivery.append_notices import AppendNotices
from brokerapp.nodes.delivery.bridge_bids import BridgeBidExchange
from brokerapp.nodes.delivery.depth_recount import DepthRecount
from brokerapp.nodes.delivery.inbound_consumers import InboundConsumers
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccounts
from brokerapp.nodes.delivery.outbound_consumers import OutboundConsumers
from brokerapp.nodes.delivery.outbound_deliveries import OutboundDeliveries
from brokerapp.nodes.delivery.outbound_settlement import OutboundSettlement
from brokerapp.nodes.delivery.remote_appends import RemoteAppends
from brokerapp.nodes.delivery.remote_deliveries import RemoteDeliveries
from brokerapp.nodes.delivery.remote_unacked import RemoteUnacked
from brokerapp.nodes.delivery.selector_interest import SelectorInterest
from brokerapp.nodes.delivery.subscription_takeover import SubscriptionTakeover
from brokerapp.nodes.links.handoff_state import HandoffState
from brokerapp.nodes.links.inbox import PeerInbox
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.pending_confirmations import PendingConfirmations
from brokerapp.nodes.membership.branch_exchange import BranchExchange
from brokerapp.nodes.membership.client_id_claims import ClientIdClaims
from brokerapp.nodes.membership.stats_aggregation import StatsAggregation
from brokerapp.nodes.ownership.coordinator import OwnershipCoordinator
from brokerapp.nodes.ownership.handoff_announcements import HandoffAnnouncements
from brokerapp.nodes.ownership.handoff_in import HandoffIn
from brokerapp.nodes.ownership.log_declarations import Declaration, LogDeclarations
from brokerapp.nodes.ownership.orphaned_temporaries import OrphanedTemporaries
from brokerapp.nodes.ownership.outbound_handoff import OutboundHandoff
from brokerapp.nodes.ownership.subscription_removal import SubscriptionRemoval
from brokerapp.nodes.topics.remote_advisories import RemoteAdvisories
from brokerapp.nodes.topics.retained_sync import RetainedSync
from brokerapp.nodes.topics.topic_listeners import TopicListeners
from brokerapp.store import PendingWrite


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlacement:
    """Where the logs of the broker are, seen from one node, and what is exchanged with the others. A Placement."""

    queues: Destinations
    peers: Peers
    requests: NodeRequests
    coordinator: OwnershipCoordinator
    declarations: LogDeclarations
    inbox: PeerInbox
    # consumers
    inbound_consumers: InboundConsumers
    remote_unacked: RemoteUnacked
    outbound_accounts: OutboundAccounts
    outbound_consumers: OutboundConsumers
    outbound_deliveries: OutboundDeliveries
    outbound_settlement: OutboundSettlement
    pending_confirmations: PendingConfirmations
    subscription_removal: SubscriptionRemoval
    subscription_takeover: SubscriptionTakeover
    selector_interest: SelectorInterest
    bridge_bids: BridgeBidExchange
    client_id_claims: ClientIdClaims
    orphaned_temporaries: OrphanedTemporaries
    # messages
    append_notices: AppendNotices
    remote_appends: RemoteAppends
    remote_deliveries: RemoteDeliveries
    topic_listeners: TopicListeners
    remote_advisories: RemoteAdvisories
    retained_sync: RetainedSync
    # handoff, and numbers
    handoff: HandoffState
    handoff_in: HandoffIn
    outbound_handoff: OutboundHandoff
    handoff_announcements: HandoffAnnouncements
    depth_recount: DepthRecount
    branch_exchange: BranchExchange
    stats_aggregation: StatsAggregation
    submit: Callable[[PendingWrite], None]
    request_dispatch: Callable[[], None]
    can_dispatch: Callable[[], bool]

    @property
    def is_alone(self) -> bool:
        """Whether no other node is a member of the broker."""
        return not self.peers.other_sessions

    def is_local(self, log: str) -> bool:
        """Return whether this node owns a log."""
        return self.peers.is_local(log)

    def is_other_member(self, session: str) -> bool:
        """Return whether this is another live member."""
        return self.peers.is_other_member(session)

    def on_log_added(self, log: MessageLog) -> None:
        """Say of a new log whether this node owns it."""
        self.coordinator.on_log_added(log)

    def on_log_removed(self, log: str) -> None:
        """Forget a log that does not exist any more."""
        self.declarations.on_log_removed(log)

    async def declare(self, declarations: Sequence[Declaration]) -> None:
        """Return when all nodes know that these logs were declared in the store, or removed there."""
        await self.declarations.declare(declarations)

    def announce_removed(self, log: str) -> None:
        """Tell other nodes that the name of a log may be used again."""
        self.declarations.announce_removed(log)

    def when_propagated(self, then: Callable[[], None]) -> None:
        """Call back when all nodes know what our clients have asked so far."""
        if self.is_alone:
            then()
        else:
            self.submit(PendingWrite(callback=lambda *_: self.requests.when_confirmed(then)))

    def status(self) -> Mapping[str, Any]:
        """Return what the node tells operators of its place among the others; nothing if it is alone.

        `epoch`: of the members; `logs`: owned by this node; `served`: consumers of other nodes' clients; `unreached`:
        names of live nodes without a link; `settled`: whether this node dispatches from all logs that it owns;
        `assigned`: logs that it owns whatever they hash to.
        """
        if self.is_alone:
            return {}
        members = self.peers.members
        return {
            "epoch": members.epoch,
            "logs": sum(not log.is_remote for log in self.queues),
            "served": self.inbound_consumers.count,
            "unreached": sorted(each.name for each in members.others if not self.peers.is_linked(each.session)),
            "settled": self.handoff_in.is_settled,
            **({"assigned": assigned} if (assigned := members.assigned_to(members.session)) else {}),
        }
