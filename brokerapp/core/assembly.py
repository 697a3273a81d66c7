"""Build the broker of a node from its parts.

Each part is given by keyword what it uses. Some parts are used by parts that they use themselves: what is sent is
stored, what is stored is dispatched, and what fails, expires or is retained is sent again. These are allocated first,
so that the others can be given them, and initialised when all that they use is there. No part calls another one while
it is constructed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.audience import AdvisoryAudience
from brokerapp.core.advisories.destination_measurements import DestinationMeasurements
from brokerapp.core.advisories.existing import ExistingState
from brokerapp.core.advisories.lifecycle import LifecycleAdvisories
from brokerapp.core.advisories.message_advisories import MessageAdvisories
from brokerapp.core.advisories.replay import AdvisoryReplay
from brokerapp.core.advisories.statistics_documents import StatisticsDocuments
from brokerapp.core.advisories.statistics_plugin import StatisticsPlugin
from brokerapp.core.advisories.virtual_consumers import VirtualConsumers
from brokerapp.core.broker import Broker
from brokerapp.core.clients.authorizer import ClientAuthorizer
from brokerapp.core.clients.bridge_clients import BridgeClients
from brokerapp.core.clients.connections import ClientRegistry
from brokerapp.core.clients.replies import ClientReplies
from brokerapp.core.command_handlers import command_handlers
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
from brokerapp.core.event_handlers import add_event_handlers
from brokerapp.core.flow_control.held_sends import HeldSends
from brokerapp.core.flow_control.limits import DestinationLimits
from brokerapp.core.flow_control.producer_flow import FlowControl
from brokerapp.core.ports import BrokerContext, PlacementBuilder
from brokerapp.core.ports.commit_store import CommitStore
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
from brokerapp.core.shards.assembly import CommitsBuilder
from brokerapp.core.shards.shard_placement import LogClaims, ShardPlacement
from brokerapp.core.subscriptions.consumers import Consumers
from brokerapp.core.subscriptions.duplicate_suppression import DuplicateSuppression
from brokerapp.core.subscriptions.durable_subscriptions import DurableSubscriptions
from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.core.subscriptions.selector_memory import selector_cache_of
from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.core.subscriptions.slow_consumers import SlowConsumers
from brokerapp.core.subscriptions.sources import SubscriptionSources
from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.core.xa.branch_preparation import BranchPreparation
from brokerapp.core.xa.joint_branches import JointBranches
from brokerapp.core.xa.prepared_branches import PreparedBranches
from brokerapp.core.xa.prepared_transactions import PreparedTransactions
from brokerapp.engine.clients.quotas import Quotas
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.model.definitions import Definitions
from brokerapp.model.settings import DEFAULT_SETTINGS, Settings
from brokerapp.store import StoreLimits
from brokerapp.tracing.recorder import TraceRecorder


class AssembledBroker(Broker):
    """The broker of a node, with all its parts. `session` tells this run of the node from all others.

    `nodes` builds what joins the node with others, which the parts use and which uses them. `store` answers
    questions about all logs, `stores` are its shards with their limits, of which `claims` says where logs are.
    """

    def __init__(
        self,
        name: str,
        session: str,
        store: CommitStore,
        stores: Mapping[int, tuple[CommitStore, StoreLimits]],
        claims: LogClaims,
        after_batch: Callable[[], None],
        tracer: TraceRecorder,
        definitions: Definitions,
        nodes: PlacementBuilder,
        settings: Settings = DEFAULT_SETTINGS,
        access: AuthorizationMap | None = None,
    ) -> None:
        super().__init__(name, session, settings, tracer)
        self.quotas = Quotas(settings.memory_limit)
        self._allocate()
        self.placement = nodes.placement
        self.routing = CurrentRouting(
            definitions=definitions, is_wanted=lambda queue, headers: self.queues.is_wanted(queue, headers)
        )
        self.counters = DestinationCounters(
            on_added=self.events.destination_added, on_removed=self.events.destination_removed,
            on_too_many=lambda: self.idle_destinations.bound_topics(),
        )  # fmt: skip
        self.shard_placement = ShardPlacement(lambda: self.routing.table.definitions, claims)
        self.commits_builder = CommitsBuilder(
            store=store, stores=stores, session=session, placement=self.shard_placement,
            on_spread=self._on_spread, on_batch=self.flow_control.on_batch, after_batch=after_batch,
            is_followed=self.arrivals.is_followed, is_room_wanted=lambda: bool(self.flow_control.places),
            announce=lambda logs: self.placement.declare(logs),
        )  # fmt: skip
        self.commits = self.commits_builder.commits
        context = self.context()
        self._construct_destinations(context, access)
        self._construct_redelivery(context)
        self._construct_consumption(context)
        self._initialise_allocated(context)
        self._construct_users(context)
        self._construct_advisories(context)
        nodes.initialise(self)
        add_event_handlers(self)
        self.commands = command_handlers(self)
        self._start()

    def _on_spread(self, logs: Iterable[str]) -> None:
        """Expect messages for these logs that are told of later than what follows them."""
        for name in logs:
            log = self.queues.get(name)
            if log is not None:
                log.is_spread = True

    def _allocate(self) -> None:
        """Allocate the parts that are used by parts that they use."""
        self.dispatcher = Dispatcher.__new__(Dispatcher)
        self.topic_dispatcher = TopicDispatcher.__new__(TopicDispatcher)
        self.temporaries = TemporaryDestinations.__new__(TemporaryDestinations)
        self.scheduled_jobs = ScheduledJobs.__new__(ScheduledJobs)
        self.writer = MessageWriter.__new__(MessageWriter)
        self.arrivals = MessageArrivals.__new__(MessageArrivals)
        self.flow_control = FlowControl.__new__(FlowControl)
        self.held = HeldSends.__new__(HeldSends)
        self.durables = DurableSubscriptions.__new__(DurableSubscriptions)

    def _construct_destinations(self, context: BrokerContext, access: AuthorizationMap | None) -> None:
        """Construct the parts that find, create and limit destinations, and say who may use them."""
        selectors = selector_cache_of(self.settings)
        self.replies = ClientReplies(context=context, dispatcher=self.dispatcher, held=self.held)
        self.subscribers = SubscriberRegistry(
            may=lambda *wanted: self.authorizer.may(*wanted), placement=self.placement, recorder=self.consumer_recorder,
        )  # fmt: skip
        self.audience = AdvisoryAudience(context=context, subscribers=self.subscribers, routing=self.routing)
        self.limits = DestinationLimits(
            context=context, subscribers=self.subscribers, durables=self.durables, routing=self.routing,
        )  # fmt: skip
        self.producers = ProducerRegistry(
            context=context, clients=self.clients, events=self.events, routing=self.routing,
            temporaries=self.temporaries,
        )  # fmt: skip
        self.queues = QueueRegistry(
            context=context, dispatcher=self.dispatcher, events=self.events, placement=self.placement,
            routing=self.routing, selectors=selectors,
        )  # fmt: skip
        self.messages = MessageFactory(context=context, routing=self.routing)
        self.router = MessageRouter(
            context=context, durables=self.durables, queues=self.queues, routing=self.routing,
            temporaries=self.temporaries, arrivals=self.arrivals,
        )  # fmt: skip
        self.creation = AutoCreation(context=context, queues=self.queues, routing=self.routing)
        self.gauges = DestinationGauges(subscribers=self.subscribers, durables=self.durables, queues=self.queues)
        self.reconnect_window = ReconnectWindow(
            context=context, events=self.events, queues=self.queues, temporaries=self.temporaries,
        )  # fmt: skip
        self.authorizer = ClientAuthorizer(access=access, creation=self.creation, queues=self.queues)
        self.admission = SendAdmission(
            context=context, authorizer=self.authorizer, creation=self.creation, producers=self.producers,
            queues=self.queues, replies=self.replies, temporaries=self.temporaries,
        )  # fmt: skip
        self.advisory_publisher = AdvisoryPublisher(
            context=context, audience=self.audience, topic_dispatcher=self.topic_dispatcher,
            publish=self.router.publish_internal, url=lambda: self.url,
        )  # fmt: skip
        self.message_advisories = MessageAdvisories(
            context=context, audience=self.audience, publisher=self.advisory_publisher, routing=self.routing,
        )  # fmt: skip
        self.accounting = DeliveryAccounting(context=context, advisories=self.message_advisories)
        self.bridges = BridgeClients(
            context=context, authorizer=self.authorizer, clients=self.clients, events=self.events,
        )  # fmt: skip

    def _construct_redelivery(self, context: BrokerContext) -> None:
        """Construct the parts that expire, redeliver, schedule, retain and dead-letter messages."""
        self.dead_letters = DeadLettering(
            context=context, advisories=self.message_advisories, durables=self.durables, placement=self.placement,
            queues=self.queues, router=self.router, routing=self.routing, arrivals=self.arrivals,
        )  # fmt: skip
        self.retained = RetroactiveRecovery(
            context=context, authorizer=self.authorizer, queues=self.queues, router=self.router,
            routing=self.routing, topic_dispatcher=self.topic_dispatcher,
        )  # fmt: skip
        self.scheduler = MessageScheduler(
            context=context, admission=self.admission, arrivals=self.arrivals, authorizer=self.authorizer,
            messages=self.messages, quotas=self.quotas, replies=self.replies, router=self.router,
            scheduled_jobs=self.scheduled_jobs, temporaries=self.temporaries, writer=self.writer,
        )  # fmt: skip
        self.expiration = ExpirationSweeper(
            context=context, dead_letters=self.dead_letters, dispatcher=self.dispatcher, queues=self.queues,
            routing=self.routing,
        )  # fmt: skip
        self.redelivery = RedeliveryHandler(
            context=context, dead_letters=self.dead_letters, messages=self.messages, router=self.router,
            routing=self.routing, scheduled_jobs=self.scheduled_jobs, temporaries=self.temporaries,
            arrivals=self.arrivals,
        )  # fmt: skip
        self.removal = DestinationRemoval(
            context=context, creation=self.creation, subscribers=self.subscribers, producers=self.producers,
            queues=self.queues, retained=self.retained, routing=self.routing,
        )  # fmt: skip

    def _construct_consumption(self, context: BrokerContext) -> None:
        """Construct the parts that serve consumers and browsers."""
        self.consumers = Consumers(
            context=context, authorizer=self.authorizer, dead_letters=self.dead_letters,
            dispatcher=self.dispatcher, placement=self.placement, queues=self.queues,
            recorder=self.consumer_recorder, redelivery=self.redelivery, routing=self.routing,
        )  # fmt: skip
        self.browsers = Browsers(
            context=context, consumers=self.consumers, dispatcher=self.dispatcher, expiration=self.expiration,
            queues=self.queues, replies=self.replies, routing=self.routing,
        )  # fmt: skip
        self.concurrent = ConcurrentDispatch(
            context=context, consumers=self.consumers, dispatcher=self.dispatcher, flow_control=self.flow_control,
            placement=self.placement, queues=self.queues, quotas=self.quotas, routing=self.routing,
            arrivals=self.arrivals,
        )  # fmt: skip
        self.served = ServedSubscriptions(
            context=context, consumers=self.consumers, dispatcher=self.dispatcher, events=self.events,
            retained=self.retained, subscribers=self.subscribers, temporaries=self.temporaries,
            topic_dispatcher=self.topic_dispatcher,
        )  # fmt: skip
        self.transactions = Transactions(
            context=context, consumers=self.consumers, expiration=self.expiration, placement=self.placement,
            queues=self.queues, quotas=self.quotas, replies=self.replies, router=self.router,
            writer=self.writer,
        )  # fmt: skip
        self.publisher = Publisher(
            admission=self.admission, expiration=self.expiration, messages=self.messages, replies=self.replies,
            router=self.router, scheduler=self.scheduler, transactions=self.transactions, writer=self.writer,
        )  # fmt: skip
        self.acknowledgements = Acknowledgements(
            context=context, accounting=self.accounting, dispatcher=self.dispatcher, placement=self.placement,
            queues=self.queues, replies=self.replies, transactions=self.transactions, writer=self.writer,
        )  # fmt: skip
        self.branches = PreparedBranches(
            context=context, arrivals=self.arrivals, expiration=self.expiration, held=self.held,
            placement=self.placement, router=self.router, scheduled_jobs=self.scheduled_jobs,
            temporaries=self.temporaries, transactions=self.transactions,
        )  # fmt: skip
        preparation = BranchPreparation(
            context=context, acknowledgements=self.acknowledgements, branches=self.branches, limits=self.limits,
            router=self.router, transactions=self.transactions,
        )  # fmt: skip
        self.joint_branches = JointBranches(
            context=context, branches=self.branches, placement=self.placement, preparation=preparation,
            transactions=self.transactions,
        )  # fmt: skip
        self.prepared = PreparedTransactions(
            context=context, branches=self.branches, joint_branches=self.joint_branches, replies=self.replies,
            transactions=self.transactions,
        )  # fmt: skip
        self.windows = ConsumerWindows(context=context, dispatcher=self.dispatcher, placement=self.placement)
        self.rejections = Rejections(
            context=context, acknowledgements=self.acknowledgements, dead_letters=self.dead_letters,
            dispatcher=self.dispatcher, placement=self.placement, queues=self.queues, redelivery=self.redelivery,
            replies=self.replies,
        )  # fmt: skip

    def _initialise_allocated(self, context: BrokerContext) -> None:
        """Give the allocated parts what they use."""
        Dispatcher.__init__(
            self.dispatcher, context=context, accounting=self.accounting, advisories=self.message_advisories,
            dead_letters=self.dead_letters, held=self.held, placement=self.placement,
            topic_dispatcher=self.topic_dispatcher,
        )  # fmt: skip
        TopicDispatcher.__init__(
            self.topic_dispatcher, context=context, accounting=self.accounting, advisories=self.message_advisories,
            dead_letters=self.dead_letters, dispatcher=self.dispatcher, flow_control=self.flow_control,
            placement=self.placement, retained=self.retained, subscribers=self.subscribers,
        )  # fmt: skip
        TemporaryDestinations.__init__(
            self.temporaries, context=context, authorizer=self.authorizer,
            events=self.events, placement=self.placement, queues=self.queues,
            reconnect_window=self.reconnect_window, removal=self.removal, replies=self.replies, routing=self.routing,
        )  # fmt: skip
        ScheduledJobs.__init__(
            self.scheduled_jobs, context=context, dead_letters=self.dead_letters, redelivery=self.redelivery,
            scheduler=self.scheduler, arrivals=self.arrivals,
        )  # fmt: skip
        MessageWriter.__init__(
            self.writer, context=context, acknowledgements=self.acknowledgements, arrivals=self.arrivals,
            clients=self.clients, flow_control=self.flow_control, held=self.held, replies=self.replies,
            router=self.router, scheduled_jobs=self.scheduled_jobs,
        )  # fmt: skip
        HeldSends.__init__(
            self.held, timers=self.timers, arrivals=self.arrivals, replies=self.replies, store=self.writer.store_held,
        )  # fmt: skip
        MessageArrivals.__init__(
            self.arrivals, context=context, advisories=self.message_advisories, bridges=self.bridges,
            concurrent=self.concurrent, dispatcher=self.dispatcher, placement=self.placement, queues=self.queues,
            temporaries=self.temporaries, topic_dispatcher=self.topic_dispatcher,
        )  # fmt: skip
        FlowControl.__init__(
            self.flow_control, context=context, advisories=self.message_advisories, clients=self.clients,
            dispatcher=self.dispatcher, limits=self.limits, writer=self.writer,
        )  # fmt: skip
        DurableSubscriptions.__init__(
            self.durables, context=context, authorizer=self.authorizer, consumers=self.consumers,
            events=self.events, placement=self.placement, queues=self.queues, routing=self.routing,
            served=self.served,
        )  # fmt: skip

    def _construct_users(self, context: BrokerContext) -> None:
        """Construct the parts that no other part was given so far."""
        self.sources = SubscriptionSources(
            authorizer=self.authorizer, creation=self.creation, queues=self.queues,
            temporaries=self.temporaries,
        )  # fmt: skip
        self.duplicates = DuplicateSuppression(events=self.events, placement=self.placement, served=self.served)
        self.subscriptions = Subscriptions(
            consumers=self.consumers, duplicates=self.duplicates, durables=self.durables, events=self.events,
            quotas=self.quotas, replies=self.replies, served=self.served, sources=self.sources,
        )  # fmt: skip
        self.slow_consumers = SlowConsumers(
            context=context, clients=self.clients, events=self.events, replies=self.replies,
            routing=self.routing, subscriptions=self.subscriptions,
        )  # fmt: skip
        self.connections = ClientRegistry(
            clients=self.clients, events=self.events, flow_control=self.flow_control, placement=self.placement,
            quotas=self.quotas, replies=self.replies,
        )  # fmt: skip
        self.idle_destinations = IdleDestinations(
            context=context, creation=self.creation, subscribers=self.subscribers, placement=self.placement,
            queues=self.queues, removal=self.removal, routing=self.routing,
        )  # fmt: skip
        self.stale = StaleNonPersistent(
            context=context, dead_letters=self.dead_letters, dispatcher=self.dispatcher,
            idle_destinations=self.idle_destinations, queues=self.queues,
        )  # fmt: skip
        measurements = DestinationMeasurements(
            context=context, subscribers=self.subscribers, gauges=self.gauges, placement=self.placement,
            queues=self.queues,
        )  # fmt: skip
        documents = StatisticsDocuments(
            context=context, clients=self.clients, measurements=measurements, quotas=self.quotas,
            routing=self.routing, url=lambda: self.url,
        )  # fmt: skip
        self.statistics = StatisticsPlugin(
            context=context, messages=self.messages, placement=self.placement, router=self.router,
            temporaries=self.temporaries, consumers=self.consumers, subscribers=self.subscribers,
            documents=documents,
        )  # fmt: skip
        self.store_recovery = StoreRecovery(
            context=context, creation=self.creation, durables=self.durables, events=self.events,
            placement=self.placement, queues=self.queues, reconnect_window=self.reconnect_window,
            temporaries=self.temporaries,
        )  # fmt: skip

    def _construct_advisories(self, context: BrokerContext) -> None:
        """Construct the parts that publish advisories about what exists."""
        virtual = VirtualConsumers(
            context=context, clients=self.clients, duplicates=self.duplicates, durables=self.durables,
            publisher=self.advisory_publisher, routing=self.routing,
        )  # fmt: skip
        existing = ExistingState(
            context=context, clients=self.clients, duplicates=self.duplicates, durables=self.durables,
            gauges=self.gauges, virtual=virtual, placement=self.placement, path_of=self.temporaries.path_of,
        )  # fmt: skip
        replay = AdvisoryReplay(
            context=context, authorizer=self.authorizer, existing=existing, placement=self.placement,
            publisher=self.advisory_publisher,
        )  # fmt: skip
        self.advisories = LifecycleAdvisories(
            context=context, existing=existing, placement=self.placement, publisher=self.advisory_publisher,
            replay=replay, virtual=virtual,
        )  # fmt: skip

    def _start(self) -> None:
        """Start what the parts do periodically."""
        self.queues.remembering.watch(self.queues, self.timers)
        self.expiration.apply_policies()
        self.slow_consumers.watch()
        self.scheduled_jobs.start()
        self.branches.start()
        self.idle_destinations.watch()
