"""Broker: what clients ask, decided with the engine and handed to the committer. Synchronous; nothing here waits.

Its parts, a module each: `connecting` (who is there), `publishing` (SEND), `storing` (what must be kept), `runs` (many
at once), `subscribing` (SUBSCRIBE, UNSUBSCRIBE), `settling` (ACK, NACK), `transactions`, `failures` (dead letters),
`queues` (the logs), `restoring` (what is stored), `consuming` (who consumes from which), `delivery` (what goes out to
consumers), `advisories` (what the broker tells about itself). `perform` says which part does which action.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.core.advisories import Advisories
from brokerapp.core.clients.bridge_clients import BridgeClients
from brokerapp.core.clients.connections import ClientRegistry
from brokerapp.core.destinations.auto_creation import AutoCreation
from brokerapp.core.destinations.idle_destinations import IdleDestinations
from brokerapp.core.destinations.queue_registry import QueueRegistry
from brokerapp.core.destinations.reconnect_window import ReconnectWindow
from brokerapp.core.destinations.store_recovery import StoreRecovery
from brokerapp.core.destinations.temporary_destinations import TemporaryDestinations
from brokerapp.core.dispatch.acknowledgements import Acknowledgements
from brokerapp.core.dispatch.browser import Browsers
from brokerapp.core.dispatch.counters import DestinationCounters
from brokerapp.core.dispatch.dispatcher import Dispatcher
from brokerapp.core.flow_control.limits import DestinationLimits
from brokerapp.core.flow_control.producer_flow import FlowControl
from brokerapp.core.publishing.batch_publisher import BatchPublisher
from brokerapp.core.publishing.concurrent_dispatch import ConcurrentDispatch
from brokerapp.core.publishing.group_commit import GroupCommit
from brokerapp.core.publishing.message_writer import MessageWriter
from brokerapp.core.publishing.producers import ProducerRegistry
from brokerapp.core.publishing.publisher import Publisher
from brokerapp.core.publishing.scheduled_jobs import ScheduledJobs
from brokerapp.core.publishing.scheduler import MessageScheduler
from brokerapp.core.publishing.transactions import Transactions
from brokerapp.core.redelivery.dead_lettering import DeadLettering
from brokerapp.core.redelivery.expiration import ExpirationSweeper
from brokerapp.core.redelivery.redelivery import RedeliveryHandler
from brokerapp.core.subscriptions.consumers import Consumers
from brokerapp.core.subscriptions.duplicate_suppression import DuplicateSuppression
from brokerapp.core.subscriptions.durable_subscriptions import DurableSubscriptions
from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.core.subscriptions.slow_consumers import SlowConsumers
from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.quotas import Quotas
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selector_cache import SelectorCache, SelectorCachePolicy
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.authorization import AuthorizationMap
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.errors import AccessDenied, ProtocolError, RequestRefused
from brokerapp.model.commands import (
    AbortCommand,
    AckBatchCommand,
    BeginCommand,
    ClientCommand,
    CommitCommand,
    ConnectCommand,
    SendBatchCommand,
    SendCommand,
    SettleCommand,
    SubscribeCommand,
    UnsubscribeCommand,
)
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.settings import DEFAULT_SETTINGS, Settings
from brokerapp.model.stats_records import DestinationStats
from brokerapp.nodes.ownership.coordinator import Homes
from brokerapp.store import PendingWrite
from brokerapp.system import clock
from brokerapp.system.timers import Timers
from brokerapp.tracing.recorder import TraceRecorder

if TYPE_CHECKING:
    from brokerapp.cluster.cluster import Cluster

#: Milliseconds between two looks for remembered selectors that nobody used for too long.
SELECTOR_EXPIRY_MS = 10_000
#: What a right allows, as ActiveMQ's errors call it.
_TO_BE_AUTHORIZED_TO = {"read": "read from", "write": "write to", "admin": "create"}


class Broker:
    """One node's view of the broker.

    `session` tells this run of the node from all others; message-ids begin with it.
    """

    def __init__(
        self,
        name: str,
        session: str,
        committer: GroupCommit,
        recorder: TraceRecorder,
        stats: DestinationCounters,
        definitions: Definitions,
        settings: Settings = DEFAULT_SETTINGS,
    ) -> None:
        self.name, self.session, self.settings = name, session, settings
        self.url = ""  #: where clients reach this node, once it listens
        self.timers = Timers()  #: what is to be done later; the node does it when its time comes
        self.commits, self.tracer, self.counters = committer, recorder, stats
        self.access: AuthorizationMap | None = None  #: None: everybody may do everything
        self.clients: dict[str, Client] = {}
        self.connections, self.store_recovery = ClientRegistry(self), StoreRecovery(self)
        self.dead_letters = DeadLettering(self)
        self.dispatcher = Dispatcher(committer, recorder, stats, self.dead_letters.expire, self.may)
        self.queues = QueueRegistry(committer, self.dispatcher, stats, _cache(settings))
        self.placement = self.dispatcher.homes = Homes(self)
        self.queues.placed = self.placement.place
        self.consumers = Consumers(self.queues, committer, self.dispatcher, stats, self.may, self.timers)
        self.consumers.abroad, self.consumers.changed = self.placement.abroad, self.placement.wanted.changed
        self.consumers.holders = self.placement.inbound_consumers.holders
        self.queues.topology = self.topology = RoutingTable(definitions, self._interest)
        self.publisher, self.writer = Publisher(self), MessageWriter(self)
        self.subscriptions, self.producers = Subscriptions(self), ProducerRegistry(self)
        self.batches, self.concurrent = BatchPublisher(self), ConcurrentDispatch(self)
        self.acknowledgements, self.transactions = Acknowledgements(self), Transactions(self)
        self.browsers = Browsers(self)
        self.limits = DestinationLimits(self)
        self.flow_control = FlowControl(self)
        self.quotas = Quotas(settings.memory_limit)
        self.bridges, self.duplicates = BridgeClients(self), DuplicateSuppression(self)
        self.slow_consumers = SlowConsumers(self)
        self.durables, self.retained = DurableSubscriptions(self), RetroactiveRecovery(self)
        self.dispatcher.remember, self.dispatcher.lose = self.retained.published, self.dead_letters.lose
        self.dispatcher.sound = self.dead_letters.sound
        self.temporaries, self.reconnect_window = TemporaryDestinations(self), ReconnectWindow(self)
        self.creation, self.idle_destinations = AutoCreation(self), IdleDestinations(self)
        if settings.selector_cache is not None and settings.selector_cache.expire_after:
            self.timers.every(SELECTOR_EXPIRY_MS, self._expire_selectors, clock.now_ms())
        self.cluster: Cluster | None = None  #: the one it is in
        self.advisories = Advisories(self)
        self.dispatcher.advisories = self.advisories
        stats.crowded = self.idle_destinations.bound_topics
        stats.appeared, stats.vanished = self.advisories.destination_added, self.advisories.destination_removed
        self.expiration, self.scheduled_jobs = ExpirationSweeper(self), ScheduledJobs(self)
        self.scheduler, self.redelivery = MessageScheduler(self), RedeliveryHandler(self)
        self.consumers.left_behind = self.redelivery.left_behind
        self.expiration.watch()
        self.slow_consumers.watch()
        self.scheduled_jobs.start()
        self.idle_destinations.watch()
        #: Who does what a client asks. Each may raise RequestRefused.
        self.perform: dict[type[ClientCommand], Callable[[Client, Any], None]] = {
            SendCommand: self.scheduler.send if settings.scheduler_support else self.publisher.send,
            SendBatchCommand: self.batches.send,
            SubscribeCommand: self.subscriptions.subscribe,
            UnsubscribeCommand: self.subscriptions.unsubscribe,
            SettleCommand: self.acknowledgements.settle,
            AckBatchCommand: self.acknowledgements.settle_run,
            BeginCommand: self.transactions.begin,
            CommitCommand: self.transactions.commit,
            AbortCommand: self.transactions.abort,
        }

    def redefine(self, definitions: Definitions) -> None:
        """Route by these from now on. What is on its way keeps the way it was given."""
        queues, feeds, bindings = self.topology.queues, self.topology.feeds, self.topology.bindings
        self.queues.topology = self.topology = RoutingTable(definitions, self._interest, queues, feeds, bindings)
        self.queues.retune()
        self.durables.retune()
        self.placement.wanted.redefined()
        self.limits.refresh()
        self.advisories.redefined()
        self.expiration.watch()

    def _interest(self, queue: Destination, headers: Mapping[str, str]) -> bool:
        """Whether a consumer of the queue, present or remembered, would take such a message (selectorAware)."""
        log = self.queues.get(str(queue))
        if log is None:
            return False
        wanted = self.placement.wanted.conditions(log)  # equal ones are asked once
        if None in wanted or any(selector.matches(headers) for selector in wanted):
            return True
        return self.queues.remembering.wants(str(queue), headers)

    def _expire_selectors(self) -> None:
        self.queues.remembering.expire(self.queues)

    def measure(self, numbers: DestinationStats) -> None:
        """Bring those numbers up to date that are kept elsewhere."""
        destination = numbers.destination
        if not destination.is_queue:
            online = sum(len(each.log.consumers) for each in self.durables.of_topic(destination))
            numbers.ConsumerCount = len(self.dispatcher.subscribers(destination)) + online
        elif destination in self.queues:  # a composite that only forwards has numbers, but no messages of its own
            log = self.queues.find(destination)
            numbers.QueueSize, numbers.InFlightCount, numbers.Paused = log.depth, log.in_flight, log.paused

    def delete(self, log: MessageLog) -> None:
        """Remove an empty queue that has no consumers and nothing on its way."""
        self.producers.forget(log.destination)
        self.queues.delete(log)

    def delete_topics(self, topics: Collection[Destination]) -> None:
        """Remove topics that have no subscribers."""
        for topic in topics:
            self.creation.forget(topic)
            self.retained.forget(topic)
            self.counters.forget(topic)
        self.producers.forget(*topics)

    # -- clients

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Who does what this client asks, where that is not `perform`. Raises ProtocolError when it may not come in."""
        if self.cluster is not None:
            return self.cluster.admit(client, connect)
        if connect.cluster is not None:
            raise ProtocolError(f"{self.name} is in no cluster")
        return {}

    def require(self, client: Client, verb: str, destination: Destination) -> None:
        """Raise AccessDenied unless the client may; the first at a destination must be allowed to create it, too."""
        if self.access is None or client.internal:
            return
        may, verbs = self.access.may, [verb]
        if destination.is_pattern and verb == "read":
            may = self.access.may_some  # it is given what it may read
        elif not self._exists(destination):
            verbs.append("admin")
        for each in verbs:
            self._require(client, may, each, destination)
        if destination.address and self.queues.would_bind(destination) and not self.access.names(destination):
            self._require(client, may, "read", Destination.topic(destination.address))  # what will come to the queue

    def require_read(self, client: Client, destination: Destination) -> None:
        """Raise AccessDenied unless the client may read there (or some of a pattern), whether it exists or not."""
        if self.access is not None:
            may = self.access.may_some if destination.is_pattern else self.access.may
            self._require(client, may, "read", destination)

    def _require(self, client: Client, may: Callable[..., bool], verb: str, destination: Destination) -> None:
        if not may(client.principal, verb, destination):
            user, what = client.principal.name, _TO_BE_AUTHORIZED_TO[verb]
            raise AccessDenied(f"User {user} is not authorized to {what}: {destination}")

    def _exists(self, destination: Destination) -> bool:
        if destination.is_temporary:  # whoever may have one made it
            return True
        return self.creation.exists(destination)

    def may(self, subscription: Subscription, verb: str, destination: Destination) -> bool:
        """Whether who subscribed has a right at a destination; a bridge has none at those that it leaves alone."""
        client: Client = subscription.client
        if subscription.crossing is not None and subscription.crossing.leaves_alone(destination.name):
            return False
        if self.access is None or (client.internal and subscription.principal is None):
            return True
        return self.access.may(subscription.principal or client.principal, verb, destination)

    # -- telling the client

    def barrier(self, client: Client, receipt: str | None, then: Callable[[], None] | None = None) -> None:
        """Confirm, after all that the client asked before is done."""

        def done(_seq: int = 0, _refused: bool = False) -> None:
            client.ended_unit()
            self.confirm(client, receipt)
            if then is not None:
                then()

        client.started_unit()
        if client.pending > 1 or self.commits.busy:
            self.commits.submit(PendingWrite(then=done))
        else:
            done()

    def attempt(self, client: Client, perform: Callable[[Client, Any], None], action: Any) -> None:
        """Do one of several things a client asked at once: what is refused does not stop the others."""
        try:
            perform(client, action)
        except RequestRefused as error:
            self.refuse(client, error, action.receipt)

    def confirm(self, client: Client, *receipts: str | None) -> None:
        """Tell the client that what it asked is done, if it wants to know."""
        wanted = [receipt for receipt in receipts if receipt is not None]
        if wanted:
            client.sink.receipts(wanted)
            self.dispatcher.dirty[client] = None

    def refuse(self, client: Client, error: RequestRefused, receipt: str | None) -> None:
        """Tell the client that what it asked cannot be done."""
        client.sink.refuse(error, receipt)
        self.dispatcher.dirty[client] = None


def _cache(settings: Settings) -> SelectorCache | None:
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
