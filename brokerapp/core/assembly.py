"""Builds the broker of a node from its parts.

Each part is given by keyword what it uses. Six parts are used by parts that they use themselves: what is sent is
stored, what is stored is dispatched, and what fails, expires or is retained is sent again. These six are allocated
first, so that the others can be given them, and initialised when all that they use is there. No part calls another one
while it is constructed.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerapp.core.advisories.advisory_publisher import AdvisoryPublisher
from brokerapp.core.advisories.audience import AdvisoryAudience
from brokerapp.core.advisories.destination_measurements import DestinationMeasurements
from brokerapp.core.advisories.existing import ExistingState
from brokerapp.core.advisories.lifecycle import LifecycleAdvisories
from brokerapp.core.advisories.message_advisories import MessageAdvisories
from brokerapp.core.advisories.remote_advisories import RemoteAdvisories
from brokerapp.core.advisories.replay import AdvisoryReplay
from brokerapp.core.advisories.statistics_documents import StatisticsDocuments
from brokerapp.core.advisories.statistics_plugin import StatisticsPlugin
from brokerapp.core.advisories.virtual_consumers import VirtualConsumers
from brokerapp.core.broker import Broker
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
from brokerapp.core.dispatch.counters import DestinationCounters
from brokerapp.core.dispatch.dispatcher import Dispatcher
from brokerapp.core.dispatch.rejections import Rejections
from brokerapp.core.event_handlers import add_event_handlers
from brokerapp.core.flow_control.limits import DestinationLimits
from brokerapp.core.flow_control.producer_flow import FlowControl
from brokerapp.core.ports import BrokerContext
from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.core.publishing.concurrent_dispatch import ConcurrentDispatch
from brokerapp.core.publishing.group_commit import GroupCommit
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
from brokerapp.core.subscriptions.consumers import Consumers
from brokerapp.core.subscriptions.duplicate_suppression import DuplicateSuppression
from brokerapp.core.subscriptions.durable_subscriptions import DurableSubscriptions
from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.core.subscriptions.slow_consumers import SlowConsumers
from brokerapp.core.subscriptions.sources import SubscriptionSources
from brokerapp.core.subscriptions.subscribe_handler import SubscribeHandler
from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.core.subscriptions.unsubscribe_handler import UnsubscribeHandler
from brokerapp.engine.clients.quotas import Quotas
from brokerapp.engine.dispatch.selector_cache import SelectorCache, SelectorCachePolicy
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.model.commands import (
    AbortCommand,
    AckBatchCommand,
    BeginCommand,
    CommitCommand,
    NackCommand,
    SendBatchCommand,
    SubscribeCommand,
    UnsubscribeCommand,
)
from brokerapp.model.definitions import Definitions
from brokerapp.model.settings import DEFAULT_SETTINGS, Settings
from brokerapp.nodes.ownership.coordinator import OwnershipCoordinator
from brokerapp.nodes.ownership.orphaned_temporaries import OrphanedTemporaries
from brokerapp.store import StoreLimits
from brokerapp.system import clock
from brokerapp.tracing.recorder import TraceRecorder

#: Milliseconds between two looks for remembered selectors that nobody used for too long.
SELECTOR_EXPIRY_MS = 10_000


def assemble(
    name: str,
    session: str,
    store: CommitStore,
    limits: StoreLimits,
    after_batch: Callable[[], None],
    tracer: TraceRecorder,
    definitions: Definitions,
    settings: Settings = DEFAULT_SETTINGS,
    access: AuthorizationMap | None = None,
) -> Broker:
    """Build the broker of a node. `session` tells this run of the node from all others; message-ids begin with it."""
    broker = Broker(name, session, settings, tracer)
    broker.quotas = Quotas(settings.memory_limit)
    _allocate(broker)
    broker.placement = OwnershipCoordinator(broker)
    broker.routing = CurrentRouting(
        definitions=definitions, is_wanted=lambda queue, headers: broker.queues.is_wanted(queue, headers)
    )
    broker.counters = DestinationCounters(
        on_added=broker.events.destination_added, on_removed=broker.events.destination_removed,
        on_too_many=lambda: broker.idle_destinations.bound_topics(),
    )  # fmt: skip
    broker.commits = GroupCommit(
        store=store, session=session, store_limits=limits, after_batch=after_batch,
        is_followed=broker.writer.is_followed, announce=lambda logs: broker.placement.propagation.declare_logs(logs),
        on_batch=broker.flow_control.on_batch,
    )  # fmt: skip
    context = broker.context()
    _construct(broker, context, access)
    _initialise_allocated(broker, context)
    _construct_users(broker, context)
    _construct_advisories(broker, context)
    add_event_handlers(broker)
    broker.commands = {
        SendBatchCommand: broker.publisher.send,
        SubscribeCommand: _subscribe_handler(broker).subscribe,
        UnsubscribeCommand: _unsubscribe_handler(broker).unsubscribe,
        AckBatchCommand: broker.acknowledgements.acknowledge,
        NackCommand: broker.rejections.reject,
        BeginCommand: broker.transactions.begin,
        CommitCommand: broker.transactions.commit,
        AbortCommand: broker.transactions.abort,
    }
    _start(broker)
    return broker


def _allocate(broker: Broker) -> None:
    """Allocate the parts that are used by parts that they use."""
    broker.dispatcher = Dispatcher.__new__(Dispatcher)
    broker.temporaries = TemporaryDestinations.__new__(TemporaryDestinations)
    broker.scheduled_jobs = ScheduledJobs.__new__(ScheduledJobs)
    broker.writer = MessageWriter.__new__(MessageWriter)
    broker.flow_control = FlowControl.__new__(FlowControl)
    broker.durables = DurableSubscriptions.__new__(DurableSubscriptions)


def _construct(broker: Broker, context: BrokerContext, access: AuthorizationMap | None) -> None:
    """Construct the parts that use the allocated ones, and that these use."""
    selectors = _selector_cache(broker.settings)
    broker.replies = ClientReplies(context=context, dispatcher=broker.dispatcher)
    broker.audience = AdvisoryAudience(context=context, dispatcher=broker.dispatcher, routing=broker.routing)
    broker.limits = DestinationLimits(
        context=context, dispatcher=broker.dispatcher, durables=broker.durables, routing=broker.routing,
    )  # fmt: skip
    broker.producers = ProducerRegistry(
        context=context, clients=broker.clients, events=broker.events, routing=broker.routing,
        temporaries=broker.temporaries,
    )  # fmt: skip
    broker.queues = QueueRegistry(
        context=context, dispatcher=broker.dispatcher, events=broker.events, placement=broker.placement,
        routing=broker.routing, selectors=selectors,
    )  # fmt: skip
    broker.messages = MessageFactory(context=context, routing=broker.routing)
    broker.router = MessageRouter(
        context=context, durables=broker.durables, queues=broker.queues, routing=broker.routing,
        temporaries=broker.temporaries, writer=broker.writer,
    )  # fmt: skip
    broker.creation = AutoCreation(context=context, queues=broker.queues, routing=broker.routing)
    broker.gauges = DestinationGauges(dispatcher=broker.dispatcher, durables=broker.durables, queues=broker.queues)
    broker.reconnect_window = ReconnectWindow(
        context=context, events=broker.events, queues=broker.queues, temporaries=broker.temporaries,
    )  # fmt: skip
    broker.authorizer = ClientAuthorizer(access=access, creation=broker.creation, queues=broker.queues)
    broker.admission = SendAdmission(
        authorizer=broker.authorizer, creation=broker.creation, producers=broker.producers, queues=broker.queues,
        temporaries=broker.temporaries,
    )  # fmt: skip
    broker.advisory_publisher = AdvisoryPublisher(
        context=context, audience=broker.audience, dispatcher=broker.dispatcher,
        publish=broker.router.publish_internal, url=lambda: broker.url,
    )  # fmt: skip
    broker.message_advisories = MessageAdvisories(
        context=context, audience=broker.audience, publisher=broker.advisory_publisher, routing=broker.routing,
    )  # fmt: skip
    broker.bridges = BridgeClients(
        context=context, authorizer=broker.authorizer, clients=broker.clients, events=broker.events,
    )  # fmt: skip
    broker.dead_letters = DeadLettering(
        context=context, advisories=broker.message_advisories, durables=broker.durables, placement=broker.placement,
        queues=broker.queues, router=broker.router, routing=broker.routing, writer=broker.writer,
    )  # fmt: skip
    broker.retained = RetroactiveRecovery(
        context=context, authorizer=broker.authorizer, dispatcher=broker.dispatcher, queues=broker.queues,
        router=broker.router, routing=broker.routing,
    )  # fmt: skip
    broker.scheduler = MessageScheduler(
        context=context, admission=broker.admission, authorizer=broker.authorizer, messages=broker.messages,
        quotas=broker.quotas, replies=broker.replies, router=broker.router, scheduled_jobs=broker.scheduled_jobs,
        temporaries=broker.temporaries, writer=broker.writer,
    )  # fmt: skip
    broker.expiration = ExpirationSweeper(
        context=context, dead_letters=broker.dead_letters, dispatcher=broker.dispatcher, queues=broker.queues,
        routing=broker.routing,
    )  # fmt: skip
    broker.redelivery = RedeliveryHandler(
        context=context, dead_letters=broker.dead_letters, messages=broker.messages, router=broker.router,
        routing=broker.routing, scheduled_jobs=broker.scheduled_jobs, temporaries=broker.temporaries,
        writer=broker.writer,
    )  # fmt: skip
    broker.removal = DestinationRemoval(
        context=context, creation=broker.creation, dispatcher=broker.dispatcher, producers=broker.producers,
        queues=broker.queues, retained=broker.retained, routing=broker.routing,
    )  # fmt: skip
    broker.consumers = Consumers(
        context=context, authorizer=broker.authorizer, dead_letters=broker.dead_letters,
        dispatcher=broker.dispatcher, placement=broker.placement, queues=broker.queues,
        redelivery=broker.redelivery, routing=broker.routing,
    )  # fmt: skip
    broker.browsers = Browsers(
        context=context, consumers=broker.consumers, dispatcher=broker.dispatcher, expiration=broker.expiration,
        queues=broker.queues, replies=broker.replies, routing=broker.routing,
    )  # fmt: skip
    broker.concurrent = ConcurrentDispatch(
        context=context, consumers=broker.consumers, dispatcher=broker.dispatcher, flow_control=broker.flow_control,
        placement=broker.placement, queues=broker.queues, quotas=broker.quotas, routing=broker.routing,
        writer=broker.writer,
    )  # fmt: skip
    broker.served = ServedSubscriptions(
        context=context, consumers=broker.consumers, dispatcher=broker.dispatcher, events=broker.events,
        retained=broker.retained, temporaries=broker.temporaries,
    )  # fmt: skip
    broker.transactions = Transactions(
        context=context, consumers=broker.consumers, expiration=broker.expiration, placement=broker.placement,
        queues=broker.queues, quotas=broker.quotas, replies=broker.replies, router=broker.router,
        writer=broker.writer,
    )  # fmt: skip
    broker.publisher = Publisher(
        admission=broker.admission, expiration=broker.expiration, messages=broker.messages, replies=broker.replies,
        router=broker.router, scheduler=broker.scheduler, transactions=broker.transactions, writer=broker.writer,
    )  # fmt: skip
    broker.acknowledgements = Acknowledgements(
        context=context, dispatcher=broker.dispatcher, placement=broker.placement, queues=broker.queues,
        replies=broker.replies, transactions=broker.transactions, writer=broker.writer,
    )  # fmt: skip
    broker.rejections = Rejections(
        context=context, acknowledgements=broker.acknowledgements, dead_letters=broker.dead_letters,
        dispatcher=broker.dispatcher, placement=broker.placement, queues=broker.queues, redelivery=broker.redelivery,
        replies=broker.replies,
    )  # fmt: skip


def _initialise_allocated(broker: Broker, context: BrokerContext) -> None:
    """Give the allocated parts what they use."""
    Dispatcher.__init__(
        broker.dispatcher, context=context, advisories=broker.message_advisories, authorizer=broker.authorizer,
        dead_letters=broker.dead_letters, flow_control=broker.flow_control, placement=broker.placement,
        retained=broker.retained,
    )  # fmt: skip
    TemporaryDestinations.__init__(
        broker.temporaries, context=context, orphans=OrphanedTemporaries(broker), authorizer=broker.authorizer,
        events=broker.events, placement=broker.placement, queues=broker.queues,
        reconnect_window=broker.reconnect_window, removal=broker.removal, routing=broker.routing,
    )  # fmt: skip
    ScheduledJobs.__init__(
        broker.scheduled_jobs, context=context, dead_letters=broker.dead_letters, redelivery=broker.redelivery,
        scheduler=broker.scheduler, writer=broker.writer,
    )  # fmt: skip
    MessageWriter.__init__(
        broker.writer, context=context, acknowledgements=broker.acknowledgements,
        advisories=broker.message_advisories, bridges=broker.bridges, clients=broker.clients,
        concurrent=broker.concurrent, dispatcher=broker.dispatcher, flow_control=broker.flow_control,
        placement=broker.placement, queues=broker.queues, replies=broker.replies, router=broker.router,
        scheduled_jobs=broker.scheduled_jobs, temporaries=broker.temporaries,
    )  # fmt: skip
    FlowControl.__init__(
        broker.flow_control, context=context, advisories=broker.message_advisories, clients=broker.clients,
        dispatcher=broker.dispatcher, limits=broker.limits, writer=broker.writer,
    )  # fmt: skip
    DurableSubscriptions.__init__(
        broker.durables, context=context, authorizer=broker.authorizer, consumers=broker.consumers,
        events=broker.events, placement=broker.placement, queues=broker.queues, routing=broker.routing,
        served=broker.served,
    )  # fmt: skip


def _construct_users(broker: Broker, context: BrokerContext) -> None:
    """Construct the parts that no other part was given so far."""
    broker.sources = SubscriptionSources(
        authorizer=broker.authorizer, creation=broker.creation, queues=broker.queues,
        temporaries=broker.temporaries,
    )  # fmt: skip
    broker.duplicates = DuplicateSuppression(events=broker.events, placement=broker.placement, served=broker.served)
    broker.subscriptions = Subscriptions(
        consumers=broker.consumers, duplicates=broker.duplicates, durables=broker.durables, events=broker.events,
        quotas=broker.quotas, replies=broker.replies, served=broker.served, sources=broker.sources,
    )  # fmt: skip
    broker.slow_consumers = SlowConsumers(
        context=context, clients=broker.clients, events=broker.events, replies=broker.replies,
        routing=broker.routing, subscriptions=broker.subscriptions,
    )  # fmt: skip
    broker.connections = ClientRegistry(
        clients=broker.clients, events=broker.events, flow_control=broker.flow_control, placement=broker.placement,
        quotas=broker.quotas, replies=broker.replies,
    )  # fmt: skip
    broker.idle_destinations = IdleDestinations(
        context=context, creation=broker.creation, dispatcher=broker.dispatcher, placement=broker.placement,
        queues=broker.queues, removal=broker.removal, routing=broker.routing,
    )  # fmt: skip
    broker.stale = StaleNonPersistent(
        context=context, dead_letters=broker.dead_letters, dispatcher=broker.dispatcher,
        idle_destinations=broker.idle_destinations, queues=broker.queues,
    )  # fmt: skip
    measurements = DestinationMeasurements(
        context=context, dispatcher=broker.dispatcher, gauges=broker.gauges, placement=broker.placement,
        queues=broker.queues,
    )  # fmt: skip
    documents = StatisticsDocuments(
        context=context, clients=broker.clients, measurements=measurements, quotas=broker.quotas,
        routing=broker.routing, url=lambda: broker.url,
    )  # fmt: skip
    broker.statistics = StatisticsPlugin(
        context=context, messages=broker.messages, placement=broker.placement, router=broker.router,
        temporaries=broker.temporaries, consumers=broker.consumers, dispatcher=broker.dispatcher,
        documents=documents,
    )  # fmt: skip
    broker.store_recovery = StoreRecovery(
        context=context, creation=broker.creation, durables=broker.durables, events=broker.events,
        placement=broker.placement, queues=broker.queues, reconnect_window=broker.reconnect_window,
        temporaries=broker.temporaries,
    )  # fmt: skip


def _subscribe_handler(broker: Broker) -> SubscribeHandler:
    return SubscribeHandler(
        browsers=broker.browsers, durables=broker.durables, placement=broker.placement, replies=broker.replies,
        routing=broker.routing, served=broker.served, sources=broker.sources, subscriptions=broker.subscriptions,
    )  # fmt: skip


def _unsubscribe_handler(broker: Broker) -> UnsubscribeHandler:
    return UnsubscribeHandler(
        authorizer=broker.authorizer, durables=broker.durables, placement=broker.placement, replies=broker.replies,
        subscriptions=broker.subscriptions,
    )  # fmt: skip


def _construct_advisories(broker: Broker, context: BrokerContext) -> None:
    """Construct the parts that publish advisories about what exists."""
    virtual = VirtualConsumers(
        context=context, clients=broker.clients, duplicates=broker.duplicates, durables=broker.durables,
        publisher=broker.advisory_publisher, routing=broker.routing,
    )  # fmt: skip
    broker.remote_advisories = RemoteAdvisories(
        placement=broker.placement, here=lambda: existing.of_clients(), tell=broker.advisory_publisher.tell_local
    )
    existing = ExistingState(
        context=context, clients=broker.clients, duplicates=broker.duplicates, durables=broker.durables,
        gauges=broker.gauges, virtual=virtual, remote=broker.remote_advisories,
    )  # fmt: skip
    replay = AdvisoryReplay(
        context=context, authorizer=broker.authorizer, existing=existing, placement=broker.placement,
        publisher=broker.advisory_publisher, remote=broker.remote_advisories,
    )  # fmt: skip
    broker.advisories = LifecycleAdvisories(
        context=context, existing=existing, publisher=broker.advisory_publisher, replay=replay, virtual=virtual
    )


def _start(broker: Broker) -> None:
    """Start what the parts do periodically."""
    selectors = broker.settings.selector_cache
    if selectors is not None and selectors.expire_after:
        expire = broker.queues.remembering.expire
        broker.timers.call_every(SELECTOR_EXPIRY_MS, lambda: expire(broker.queues), clock.now_ms())
    broker.expiration.apply_policies()
    broker.slow_consumers.watch()
    broker.scheduled_jobs.start()
    broker.idle_destinations.watch()


def _selector_cache(settings: Settings) -> SelectorCache | None:
    wanted = settings.selector_cache
    if wanted is None:
        return None
    return SelectorCache(
        SelectorCachePolicy(
            single=wanted.single_selector_per_destination,
            ignore_wildcards=wanted.ignore_wildcard_selectors,
            persist_interval_ms=wanted.persist_interval,
            expire_after_ms=wanted.expire_after,
        )
    )
