"""Ports of the broker's parts that only its nodes use, and the broker that `assemble_nodes` takes them from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from brokerapp.core.ports import (
    AccountingPort,
    BrokerContext,
    BrokerEvents,
    ConsumersPort,
    DeadLettersPort,
    DispatcherPort,
    DurablesPort,
    FlowControlPort,
    GaugesPort,
    QueueLifecycle,
    ReconnectWindowPort,
    Replies,
    RoutingPort,
    SubscriptionsPort,
    TemporaryRecovery,
    TopicDispatcherPort,
)
from brokerapp.core.ports.commits import Commits
from brokerapp.engine.clients.branch_parts import BranchStep
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.subscription_recovery import RetainedMessage
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.tracing.consumers import ConsumerRecorder


class OwnedLogConsumers(ConsumersPort, Protocol):
    """Attaches consumers to logs that this node owns, whichever node their clients are at."""

    def attach_local(self, subscription: Subscription, log: MessageLog) -> None: ...

    def detach_all(self, subscription: Subscription, log: MessageLog, *, keeps_groups: bool = False) -> None: ...

    def mark(self, log: MessageLog) -> None: ...


class OwnedDurables(DurablesPort, Protocol):
    """Durable subscriptions whose logs move between nodes."""

    def find_identity(self, wanted: SubscriptionIdentity) -> DurableSubscription | None: ...

    def find_conflicting(self, wanted: SubscriptionIdentity) -> DurableSubscription | None: ...

    def refusal(self, wanted: SubscriptionIdentity) -> RequestRefused | None: ...

    def adopt(self, durable: DurableSubscription, subscription: Subscription) -> None: ...

    def moved(self, log: MessageLog) -> None: ...

    def remove(self, durable: DurableSubscription) -> None: ...

    def discard(self, log: str) -> None: ...


class DamagedMessages(DeadLettersPort, Protocol):
    """Dead-letters messages that the store damaged."""

    def fail_damaged(self, log: MessageLog, entry: LogEntry) -> None: ...


class LocalBranches(Protocol):
    """Handles branches of distributed transactions that this node's clients take part in."""

    def on_step(
        self, session: str, step: BranchStep, name: str, connection: str, then: Callable[[str], None]
    ) -> None: ...

    def on_node_lost(self, session: str) -> None: ...


class ClientIds(Protocol):
    """Knows which client ids are taken at this node."""

    def is_reconnecting(self, client: Client) -> bool: ...

    def check_conflicts(self, client: Client, *, steal: bool) -> None: ...

    def disconnect_conflicting(self, client: Client, *, steal: bool) -> None: ...


class RetainedSource(Protocol):
    """Knows what topics retain."""

    def keeps(self, message: Message, topic: Destination) -> bool: ...

    def all(self) -> Iterator[tuple[Destination, RetainedMessage, bool]]: ...

    def learn(
        self, topic: Destination, retained: RetainedMessage | None, recent: Iterable[RetainedMessage]
    ) -> None: ...


class RepeatedMessages(Protocol):
    """Recognises messages that bridges bring to several nodes."""

    def record_arrival(self, message: Message, topic: Destination, by: str) -> bool: ...


class LocalAdvisories(Protocol):
    """Knows what exists at this node, and publishes advisories to its listeners alone."""

    def existing_here(self) -> Iterator[tuple[str, dict[str, Any]]]: ...  # a document is JSON

    def exists_here(self, document: dict[str, Any]) -> bool: ...

    def publish_here(self, topic: str, document: dict[str, Any]) -> None: ...


class BridgeBids(Protocol):
    """Knows which consumers of bridges compete for the same messages."""

    def local_bids(
        self,
    ) -> list[tuple[str, str, Sequence[Any]]]: ...  # of several types

    def on_remote_bids(
        self, session: str, rows: Iterable[tuple[str, str, Sequence[Any] | None]], *, replace: bool
    ) -> None: ...

    def forget(self, session: str) -> None: ...


class ScheduledJobsOwner(Protocol):
    """Runs scheduled jobs."""

    def start(self) -> None: ...


class LogDiscovery(Protocol):
    """Learns of logs that other nodes declare or remove."""

    def learn(self, name: str, attributes: str | None) -> None: ...


class LocalBroker(Protocol):
    """The parts of this node's broker that its nodes are built with."""

    session: str
    accounting: AccountingPort
    advisories: LocalAdvisories
    bridges: RepeatedMessages
    joint_branches: LocalBranches
    clients: Mapping[str, Client]
    commits: Commits
    connections: ClientIds
    consumer_recorder: ConsumerRecorder
    consumers: OwnedLogConsumers
    dead_letters: DamagedMessages
    dispatcher: DispatcherPort
    duplicates: BridgeBids
    durables: OwnedDurables
    events: BrokerEvents
    flow_control: FlowControlPort
    gauges: GaugesPort
    queues: QueueLifecycle
    reconnect_window: ReconnectWindowPort
    replies: Replies
    retained: RetainedSource
    routing: RoutingPort
    scheduled_jobs: ScheduledJobsOwner
    store_recovery: LogDiscovery
    subscriptions: SubscriptionsPort
    temporaries: TemporaryRecovery
    topic_dispatcher: TopicDispatcherPort

    def context(self) -> BrokerContext: ...
