"""Ports of the nodes that form one broker: which of them owns a log, and what the others must be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.subscription_identity import SubscriptionIdentity

#: Called with the reason why other nodes refused, or "".
Then = Callable[[Any], None]


class OutboundCredit(Protocol):
    """Settles entries of logs that other nodes own, and returns the credit of their consumers."""

    def settle(self, entries: Sequence[LogEntry], client: Client) -> None: ...

    def on_settled(self, name: str, entries: Sequence[LogEntry], client: Client | None) -> None: ...

    def give_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None: ...

    def take_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None: ...

    def requeue(self, name: str, entries: Sequence[LogEntry]) -> None: ...

    def on_log_removed(self, log: str) -> None: ...


class OutboundConsumersPort(OutboundCredit, Protocol):
    """Consumers of this node's clients at logs that other nodes own."""

    session: str

    def attach(self, subscription: Subscription, log: MessageLog) -> None: ...

    def detach(self, subscription: Subscription, log: MessageLog) -> None: ...

    def drop_consumer(self, subscription: Subscription, log: str) -> None: ...

    def drain(self, subscription: Subscription) -> None: ...

    def forget(self, subscription: Subscription) -> None: ...


class InboundConsumersPort(Protocol):
    """Consumers of other nodes' clients at logs that this node owns."""

    def holding_sessions(self, log: str) -> Iterable[str]: ...

    def maybe_consumed(self, log: str) -> bool: ...


class TopicListeners(Protocol):
    """Knows to which topics clients of other nodes listen."""

    def sessions_listening(self, topic: Destination) -> Iterable[str]: ...

    def listened_topics(self, kind: DestinationKind) -> list[str]: ...


class PropagationPort(TopicListeners, Protocol):
    """Tells other nodes what they must know, and waits until they confirm it."""

    def request(self, sessions: Iterable[str], word: int, facts: tuple[Any, ...], then: Then) -> None: ...

    def when_propagated(self, then: Callable[[], None]) -> None: ...

    def announce_removed(self, log: str) -> None: ...

    def add_listener(self, topic: Destination) -> None: ...

    def remove_listener(self, topic: Destination) -> None: ...

    def local_listener_count(self, topic: Destination) -> int: ...

    def publish_to_listeners(self, message: Message, copy: RoutedCopy, by: str | None) -> None: ...


class AppendNoticesPort(Protocol):
    """Tells the owner of a log what this node appended to it."""

    def wants_entries(self, log: str) -> bool: ...

    def add(self, log: MessageLog, count: int, upto: int, entries: Sequence[LogEntry], before: int | None) -> None: ...


class PendingConfirmationsPort(Protocol):
    """Clients' requests that wait for other nodes."""

    def wait(
        self, client: Client, receipt: str | None, ask: Callable[[Then], None], then: Callable[[], None]
    ) -> None: ...

    def defer(self, client: Client, farewell: Callable[[], None]) -> bool: ...


class SubscriptionRemovalPort(Protocol):
    """Removes a durable subscription unless somebody consumes it at another node."""

    def remove(self, durable: DurableSubscription, then: Then) -> None: ...


class SubscriptionTakeoverPort(Protocol):
    """Asks the owner of a subscription's log before a consumer replaces the subscription."""

    def question_before_claim(self, wanted: SubscriptionIdentity) -> Callable[[Then], None] | None: ...


class StatsAggregationPort(Protocol):
    """Adds up what the nodes counted of one destination."""

    def with_remote_parts(self, own: DestinationStats) -> DestinationStats: ...


class SelectorInterestPort(Protocol):
    """Knows the selectors of all nodes' consumers of a queue."""

    def on_consumers_changed(self, log: MessageLog) -> None: ...

    def selectors_of(self, log: MessageLog) -> Any: ...


class OrphanedTemporariesPort(Protocol):
    """Temporary destinations that other nodes have."""

    def add(self, destination: Destination, at: str, belongs: Any) -> None: ...

    def remove(self, destination: Destination) -> None: ...

    def on_client_connected(self, client: Client) -> None: ...


class Ownership(Protocol):
    """Says which node owns a log, and whether this node is surely a member of the broker."""

    other_sessions: list[str]
    can_dispatch: Callable[[], bool]
    request_dispatch: Callable[[], None]

    def is_local(self, log: str) -> bool: ...

    def on_log_added(self, log: MessageLog) -> None: ...

    def on_log_removed(self, log: str) -> None: ...

    def is_other_member(self, session: str) -> bool: ...

    def when_propagated(self, then: Callable[[], None]) -> None: ...

    def send(self, session: str, word: int, *facts: Any) -> None: ...


class Placement(Ownership, Protocol):
    """The other nodes of the broker as its parts see them."""

    outbound_consumers: OutboundConsumersPort
    inbound_consumers: InboundConsumersPort
    propagation: PropagationPort
    append_notices: AppendNoticesPort
    pending_confirmations: PendingConfirmationsPort
    subscription_removal: SubscriptionRemovalPort
    subscription_takeover: SubscriptionTakeoverPort
    stats_aggregation: StatsAggregationPort
    selector_interest: SelectorInterestPort
