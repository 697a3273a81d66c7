"""Hold the parts of one node's broker by name.

`commands` says which part does what a client asks. Synchronous; nothing here waits. The assembly builds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.audience import AdvisoryAudience
from brokerapp.core.advisories.lifecycle import LifecycleAdvisories
from brokerapp.core.advisories.message_advisories import MessageAdvisories
from brokerapp.core.advisories.statistics_plugin import StatisticsPlugin
from brokerapp.core.clients.authorizer import ClientAuthorizer
from brokerapp.core.clients.bridge_clients import BridgeClients
from brokerapp.core.clients.connections import ClientRegistry
from brokerapp.core.clients.replies import ClientReplies
from brokerapp.core.destinations.auto_creation import AutoCreation
from brokerapp.core.destinations.current_routing import CurrentRouting
from brokerapp.core.destinations.gauges import DestinationGauges
from brokerapp.core.destinations.idle_destinations import IdleDestinations
from brokerapp.core.destinations.queue_registry import QueueRegistry
from brokerapp.core.destinations.reconnect_window import ReconnectWindow
from brokerapp.core.destinations.removal import DestinationRemoval
from brokerapp.core.destinations.store_recovery import StoreRecovery
from brokerapp.core.destinations.temporary_destinations import TemporaryDestinations
from brokerapp.core.dispatch.acknowledgements import Acknowledgements
from brokerapp.core.dispatch.browser import Browsers
from brokerapp.core.dispatch.consumer_windows import ConsumerWindows
from brokerapp.core.dispatch.counters import DestinationCounters
from brokerapp.core.dispatch.delivery_accounting import DeliveryAccounting
from brokerapp.core.dispatch.dispatcher import Dispatcher
from brokerapp.core.dispatch.rejections import Rejections
from brokerapp.core.dispatch.topic_dispatcher import TopicDispatcher
from brokerapp.core.dispatch.topic_subscribers import SubscriberRegistry
from brokerapp.core.flow_control.held_sends import HeldSends
from brokerapp.core.flow_control.limits import DestinationLimits
from brokerapp.core.flow_control.producer_flow import FlowControl
from brokerapp.core.ports import BrokerContext, BrokerEvents, ClusterPort, Placement
from brokerapp.core.publishing.arrivals import MessageArrivals
from brokerapp.core.publishing.concurrent_dispatch import ConcurrentDispatch
from brokerapp.core.publishing.message_factory import MessageFactory
from brokerapp.core.publishing.message_router import MessageRouter
from brokerapp.core.publishing.message_writer import MessageWriter
from brokerapp.core.publishing.producers import ProducerRegistry
from brokerapp.core.publishing.publisher import Publisher
from brokerapp.core.publishing.scheduled_jobs import ScheduledJobs
from brokerapp.core.publishing.scheduler import MessageScheduler
from brokerapp.core.publishing.send_admission import SendAdmission
from brokerapp.core.publishing.transactions import Transactions
from brokerapp.core.redelivery.dead_lettering import DeadLettering
from brokerapp.core.redelivery.expiration import ExpirationSweeper
from brokerapp.core.redelivery.redelivery import RedeliveryHandler
from brokerapp.core.redelivery.stale_nonpersistent import StaleNonPersistent
from brokerapp.core.shards.shard_placement import ShardPlacement
from brokerapp.core.shards.sharded_commits import ShardedCommits
from brokerapp.core.subscriptions.consumers import Consumers
from brokerapp.core.subscriptions.duplicate_suppression import DuplicateSuppression
from brokerapp.core.subscriptions.durable_subscriptions import DurableSubscriptions
from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.core.subscriptions.slow_consumers import SlowConsumers
from brokerapp.core.subscriptions.sources import SubscriptionSources
from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.core.xa.joint_branches import JointBranches
from brokerapp.core.xa.prepared_branches import PreparedBranches
from brokerapp.core.xa.prepared_transactions import PreparedTransactions
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.quotas import Quotas
from brokerapp.errors import ProtocolError
from brokerapp.model.commands import ClientCommand, ConnectCommand
from brokerapp.model.definitions import Definitions
from brokerapp.model.settings import Settings
from brokerapp.system.timers import Timers
from brokerapp.tracing.consumers import ConsumerRecorder
from brokerapp.tracing.recorder import TraceRecorder


class Broker:
    """The parts of one node's broker by name, and what concerns all of them. The assembly fills it."""

    routing: CurrentRouting
    replies: ClientReplies
    authorizer: ClientAuthorizer
    counters: DestinationCounters
    commits: ShardedCommits
    shard_placement: ShardPlacement
    connections: ClientRegistry
    bridges: BridgeClients
    queues: QueueRegistry
    temporaries: TemporaryDestinations
    reconnect_window: ReconnectWindow
    creation: AutoCreation
    idle_destinations: IdleDestinations
    removal: DestinationRemoval
    gauges: DestinationGauges
    store_recovery: StoreRecovery
    dispatcher: Dispatcher
    accounting: DeliveryAccounting
    subscribers: SubscriberRegistry
    topic_dispatcher: TopicDispatcher
    acknowledgements: Acknowledgements
    rejections: Rejections
    windows: ConsumerWindows
    browsers: Browsers
    publisher: Publisher
    writer: MessageWriter
    arrivals: MessageArrivals
    admission: SendAdmission
    messages: MessageFactory
    router: MessageRouter
    concurrent: ConcurrentDispatch
    producers: ProducerRegistry
    transactions: Transactions
    branches: PreparedBranches
    joint_branches: JointBranches
    prepared: PreparedTransactions
    scheduler: MessageScheduler
    scheduled_jobs: ScheduledJobs
    subscriptions: Subscriptions
    served: ServedSubscriptions
    sources: SubscriptionSources
    consumers: Consumers
    durables: DurableSubscriptions
    retained: RetroactiveRecovery
    duplicates: DuplicateSuppression
    slow_consumers: SlowConsumers
    dead_letters: DeadLettering
    expiration: ExpirationSweeper
    redelivery: RedeliveryHandler
    stale: StaleNonPersistent
    limits: DestinationLimits
    flow_control: FlowControl
    held: HeldSends
    statistics: StatisticsPlugin
    advisories: LifecycleAdvisories
    audience: AdvisoryAudience
    advisory_publisher: AdvisoryPublisher
    message_advisories: MessageAdvisories
    placement: Placement
    quotas: Quotas
    #: Who does what a client asks. Each may raise RequestRefused.
    commands: dict[type[ClientCommand], Callable[[Client, Any], None]]

    def __init__(self, name: str, session: str, settings: Settings, tracer: TraceRecorder) -> None:
        self.name, self.session, self.settings, self.tracer = name, session, settings, tracer
        self.url = ""  #: where clients reach this node, once it listens
        self.timers = Timers()  #: what is to be done later; the node does it when its time comes
        self.consumer_recorder = ConsumerRecorder(tracer)  #: who consumes from where, for the record
        self.clients: dict[str, Client] = {}
        self.events = BrokerEvents()
        self.cluster: ClusterPort | None = None  #: the one it is in

    def context(self) -> BrokerContext:
        """Return what every part is given."""
        return BrokerContext(
            name=self.name, session=self.session, settings=self.settings, timers=self.timers,
            commits=self.commits, tracer=self.tracer, counters=self.counters,
        )  # fmt: skip

    def apply_definitions(self, definitions: Definitions) -> None:
        """Route by these definitions from now on. Messages on their way keep their route."""
        self.routing.replace(definitions)
        self.queues.retune()
        self.durables.retune()
        self.placement.selector_interest.on_definitions_changed()
        self.limits.refresh()
        self.message_advisories.on_subscribers_changed()
        self.advisories.on_definitions_changed()
        self.expiration.apply_policies()

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Return the handlers that this client has of its own. Raises ProtocolError to refuse it."""
        if self.cluster is not None:
            return self.cluster.admit(client, connect)
        if connect.cluster is not None:
            raise ProtocolError(f"{self.name} is not part of a cluster")
        return {}
