"""Builds the parts that join a node with the other nodes of its broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.pending_confirmations import PendingConfirmations
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.membership.branch_exchange import BranchExchange
from brokerapp.nodes.membership.client_id_claims import ClientIdClaims
from brokerapp.nodes.membership.stats_aggregation import StatsAggregation
from brokerapp.nodes.ownership.consumer_handoff import ConsumerHandoff
from brokerapp.nodes.ownership.coordinator import OwnershipCoordinator
from brokerapp.nodes.ownership.handoff_announcements import HandoffAnnouncements
from brokerapp.nodes.ownership.handoff_in import HandoffIn
from brokerapp.nodes.ownership.handoff_out import HandoffOut
from brokerapp.nodes.ownership.log_declarations import LogDeclarations
from brokerapp.nodes.ownership.log_reassignment import LogReassignment
from brokerapp.nodes.ownership.orphaned_temporaries import OrphanedTemporaries
from brokerapp.nodes.ownership.outbound_handoff import OutboundHandoff
from brokerapp.nodes.ownership.subscription_removal import SubscriptionRemoval
from brokerapp.nodes.placement import NodePlacement
from brokerapp.nodes.ports import LocalBroker
from brokerapp.nodes.topics.remote_advisories import RemoteAdvisories
from brokerapp.nodes.topics.remote_publications import RemotePublications
from brokerapp.nodes.topics.retained_sync import RetainedSync
from brokerapp.nodes.topics.topic_listeners import TopicListeners


class NodeAssembly:
    """Builds what joins a broker's node with the others. A PlacementBuilder.

    The placement is allocated first, as the parts of the broker that it uses are given it when they are constructed.
    `request_dispatch` asks for a round of dispatch, `can_dispatch` says whether the node is certain to be a member.
    """

    def __init__(self, *, request_dispatch: Callable[[], None], can_dispatch: Callable[[], bool]) -> None:
        self.placement = NodePlacement.__new__(NodePlacement)
        self._request_dispatch, self._can_dispatch = request_dispatch, can_dispatch

    def initialise(self, broker: LocalBroker) -> None:
        """Give the placement its parts, and these the parts of the broker that they use."""
        request_dispatch = self._request_dispatch
        context, queues = broker.context(), broker.queues
        peers = Peers(broker.session)
        requests = NodeRequests(peers=peers)
        handoff = HandoffState(peers=peers, queues=queues)
        depth_recount = DepthRecount(context=context, queues=queues)

        # -- consumers of our clients at logs of other owners, and theirs at ours
        accounts = OutboundAccounts(peers=peers)
        unacked = RemoteUnacked(
            context=context, peers=peers, queues=queues, consumers=broker.consumers, dispatcher=broker.dispatcher,
            accounting=broker.accounting, dead_letters=broker.dead_letters, handoff=handoff,
            depth_recount=depth_recount,
        )  # fmt: skip
        settlement = OutboundSettlement(
            context=context, peers=peers, accounts=accounts, queues=queues, accounting=broker.accounting,
            unacked=unacked, handoff=handoff,
        )  # fmt: skip
        deliveries = OutboundDeliveries(
            peers=peers, accounts=accounts, settlement=settlement, queues=queues, dispatcher=broker.dispatcher,
            dead_letters=broker.dead_letters, request_dispatch=request_dispatch,
        )  # fmt: skip
        outbound_consumers = OutboundConsumers(
            context=context, peers=peers, requests=requests, accounts=accounts, deliveries=deliveries,
            settlement=settlement, subscriptions=broker.subscriptions, replies=broker.replies,
        )  # fmt: skip
        takeover = SubscriptionTakeover(
            context=context, peers=peers, requests=requests, queues=queues, outbound_consumers=outbound_consumers,
            handoff=handoff,
        )  # fmt: skip
        inbound_consumers = InboundConsumers(
            peers=peers, commits=broker.commits, queues=queues, consumers=broker.consumers, durables=broker.durables,
            dispatcher=broker.dispatcher, unacked=unacked, takeover=takeover,
        )  # fmt: skip
        selector_interest = SelectorInterest(
            peers=peers, requests=requests, queues=queues, routing=broker.routing, outbound_consumers=outbound_consumers
        )
        append_notices = AppendNotices(peers=peers, accounts=accounts)
        remote_appends = RemoteAppends(
            context=context, peers=peers, queues=queues, durables=broker.durables, dispatcher=broker.dispatcher,
            store_recovery=broker.store_recovery, unacked=unacked,
        )  # fmt: skip
        remote_deliveries = RemoteDeliveries(
            context=context, peers=peers, append_notices=append_notices, deliveries=deliveries,
            request_dispatch=request_dispatch,
        )  # fmt: skip
        bridge_bids = BridgeBidExchange(peers=peers, requests=requests, bids=broker.duplicates)
        removal = SubscriptionRemoval(
            context=context, peers=peers, requests=requests, durables=broker.durables, takeover=takeover
        )

        # -- topics
        topic_listeners = TopicListeners(peers=peers, requests=requests, retained=broker.retained, events=broker.events)
        remote_advisories = RemoteAdvisories(
            peers=peers, requests=requests, listeners=topic_listeners, advisories=broker.advisories
        )
        publications = RemotePublications(
            topic_dispatcher=broker.topic_dispatcher, bridges=broker.bridges, remote_advisories=remote_advisories
        )
        retained_sync = RetainedSync(peers=peers, requests=requests, retained=broker.retained)

        # -- what belongs to all nodes
        claims = ClientIdClaims(peers=peers, requests=requests, clients=broker.connections)
        branch_exchange = BranchExchange(peers=peers, requests=requests, branches=broker.joint_branches)
        stats = StatsAggregation(context=context, peers=peers, gauges=broker.gauges)
        orphans = OrphanedTemporaries(
            peers=peers, temporaries=broker.temporaries, reconnect_window=broker.reconnect_window
        )

        # -- logs come and go
        announcements = HandoffAnnouncements(peers=peers, commits=broker.commits)
        outbound_handoff = OutboundHandoff(
            accounts=accounts, deliveries=deliveries, clients=broker.clients, flow_control=broker.flow_control
        )
        handoff_out = HandoffOut(
            commits=broker.commits, queues=queues, consumers=broker.consumers, durables=broker.durables,
            recorder=broker.consumer_recorder, inbound_consumers=inbound_consumers, outbound_handoff=outbound_handoff,
            announcements=announcements,
        )  # fmt: skip
        consumer_handoff = ConsumerHandoff(
            commits=broker.commits, consumers=broker.consumers, durables=broker.durables,
            inbound_consumers=inbound_consumers,
        )  # fmt: skip

        def on_taken_over(log: MessageLog) -> None:
            announcements.on_log_removed(log.name)
            depth_recount.mark_stale(log)
            broker.dispatcher.touch(log)
            handoff_out.suspend_if_leaving(log)  # the members may be about to change again

        handoff_in = HandoffIn(
            context=context, peers=peers, queues=queues, handoff=handoff, unacked=unacked,
            outbound_handoff=outbound_handoff, consumer_handoff=consumer_handoff, on_taken_over=on_taken_over,
        )  # fmt: skip
        reassignment = LogReassignment(
            peers=peers, queues=queues, dispatcher=broker.dispatcher, depth_recount=depth_recount,
            inbound_consumers=inbound_consumers, outbound_consumers=outbound_consumers, announcements=announcements,
            scheduled_jobs=broker.scheduled_jobs,
        )  # fmt: skip
        handlers: dict[PeerMessageType, Callable[..., None]] = {
            PeerMessageType.LISTENERS: topic_listeners.on_listeners,
            PeerMessageType.STATS: stats.on_stats,
            PeerMessageType.SELECTORS: selector_interest.on_selectors,
            PeerMessageType.CLAIM: claims.on_claim,
            PeerMessageType.BRIDGE_BIDS: bridge_bids.on_bids,
            PeerMessageType.BRANCH: branch_exchange.on_branch,
            PeerMessageType.CONFIRMED: requests.on_confirmed,
            PeerMessageType.APPENDED: remote_appends.on_appended,
            PeerMessageType.ATTACH: inbound_consumers.on_attach,
            PeerMessageType.DETACH: inbound_consumers.on_detach,
            PeerMessageType.CREDIT: inbound_consumers.on_credit,
            PeerMessageType.UNACKED: inbound_consumers.on_unacked,
            PeerMessageType.DISPATCHED: handoff.on_dispatched,
            PeerMessageType.TAKEN_OVER: handoff.on_taken_over,
            PeerMessageType.SETTLED: unacked.on_settled,
            PeerMessageType.REQUEUED: unacked.on_requeued,
            PeerMessageType.REMOVE_SUBSCRIPTION: removal.on_remove,
            PeerMessageType.IS_CONSUMED: takeover.on_query,
            PeerMessageType.DELIVER: remote_deliveries.on_delivery,
            PeerMessageType.WANT_ENTRIES: append_notices.on_wish,
            PeerMessageType.PUBLISH: publications.on_published,
            PeerMessageType.GET_RETAINED: retained_sync.on_page_requested,
            PeerMessageType.RETAINED: retained_sync.on_page,
            PeerMessageType.GET_CONSUMERS: remote_advisories.on_requested,
            PeerMessageType.CONSUMERS: remote_advisories.on_consumers,
        }
        inbox = PeerInbox(peers=peers, handlers=handlers, request_dispatch=request_dispatch)
        observers: Sequence[NodeObserver] = (
            handoff, announcements, inbox, requests, topic_listeners, selector_interest, bridge_bids, remote_advisories,
            remote_deliveries, takeover, inbound_consumers, reassignment, append_notices, retained_sync, stats, orphans,
            branch_exchange, peers,
        )  # fmt: skip
        declarations = LogDeclarations(
            peers=peers, requests=requests, store_recovery=broker.store_recovery, observers=observers
        )
        coordinator = OwnershipCoordinator(
            peers=peers, inbox=inbox, append_notices=append_notices, handoff_in=handoff_in, handoff_out=handoff_out,
            reassignment=reassignment, observers=observers,
        )  # fmt: skip
        handlers[PeerMessageType.LOGS] = declarations.on_logs
        handlers[PeerMessageType.EPOCH_DONE] = coordinator.on_epoch_done
        NodePlacement.__init__(
            self.placement,
            queues=queues, peers=peers, requests=requests, coordinator=coordinator, declarations=declarations,
            inbox=inbox,
            inbound_consumers=inbound_consumers, remote_unacked=unacked, outbound_accounts=accounts,
            outbound_consumers=outbound_consumers, outbound_deliveries=deliveries, outbound_settlement=settlement,
            pending_confirmations=PendingConfirmations(clients=broker.clients, replies=broker.replies),
            subscription_removal=removal, subscription_takeover=takeover, selector_interest=selector_interest,
            bridge_bids=bridge_bids, client_id_claims=claims, orphaned_temporaries=orphans,
            append_notices=append_notices, remote_appends=remote_appends, remote_deliveries=remote_deliveries,
            topic_listeners=topic_listeners, remote_advisories=remote_advisories, retained_sync=retained_sync,
            handoff=handoff, handoff_in=handoff_in, outbound_handoff=outbound_handoff,
            handoff_announcements=announcements, depth_recount=depth_recount, branch_exchange=branch_exchange,
            stats_aggregation=stats,
            submit=broker.commits.submit, request_dispatch=request_dispatch, can_dispatch=self._can_dispatch,
        )  # fmt: skip
