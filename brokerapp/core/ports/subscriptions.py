"""Ports of the parts that know who consumes what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.store import LogState


class SubscriptionsPort(Protocol):
    """Ends subscriptions."""

    def end(self, client: Client, subscription: Subscription) -> None: ...


class ConsumersPort(Protocol):
    """Attaches consumers to logs, and detaches them."""

    def join(self, subscription: Subscription, queue: Destination) -> None: ...

    def attach(self, subscription: Subscription, log: MessageLog) -> None: ...

    def part(self, subscription: Subscription) -> None: ...

    def detach_keeping_unacked(self, subscription: Subscription) -> None: ...

    def detach(self, subscription: Subscription, log: MessageLog) -> None: ...

    def requeue(self, entries: Iterable[LogEntry], *, seen: bool = True) -> None: ...

    def requeue_ownerless(self, log: MessageLog) -> None: ...

    def readable(self, subscription: Subscription, queue: Destination) -> list[MessageLog]: ...


class DurablesPort(Protocol):
    """Knows durable and shared subscriptions."""

    def __iter__(self) -> Iterator[DurableSubscription]: ...

    def find(self, client_id: str, name: str) -> DurableSubscription: ...

    def find_identity(self, wanted: SubscriptionIdentity) -> DurableSubscription | None: ...

    def of_log(self, log: MessageLog) -> DurableSubscription: ...

    def known(self, log: str) -> DurableSubscription | None: ...

    def of_topic(self, topic: Destination) -> list[DurableSubscription]: ...

    def logs_kept_for_bridges(self, path: Iterable[str]) -> set[Destination]: ...

    def claim(self, wanted: SubscriptionIdentity, retroactive: bool = False) -> DurableSubscription: ...

    def join(self, subscription: Subscription, durable: DurableSubscription) -> None: ...

    def on_consumer_detached(self, durable: DurableSubscription) -> None: ...

    def remove_unused_of_bridge(self, client_id: str, names: Collection[str]) -> None: ...


class DurableChanges(DurablesPort, Protocol):
    """Compares durable subscriptions with what clients want, and removes them."""

    def find_identity(self, wanted: SubscriptionIdentity) -> DurableSubscription | None: ...

    def would_change(self, wanted: SubscriptionIdentity) -> bool: ...

    def remove(self, durable: DurableSubscription) -> None: ...


class DurableRecovery(DurablesPort, Protocol):
    """Restores durable and shared subscriptions."""

    def recover(self, state: LogState) -> None: ...

    def described(self, log: MessageLog, attributes: Mapping[str, Any]) -> None: ...

    def on_removed_remotely(self, log: MessageLog) -> None: ...

    def on_removal_completed(self, log: str) -> None: ...


class DuplicatesPort(Protocol):
    """Chooses one of several bridges that lead to the same consumers."""

    def admits(self, subscription: Subscription) -> bool: ...

    def update_origins(self, subscription: Subscription, crossing: BridgeEligibility, priority: int) -> None: ...

    def is_suppressed(self, subscription: Subscription) -> bool: ...

    def left(self, subscription: Subscription) -> bool: ...


class RetainedPort(Protocol):
    """Keeps messages of topics for retroactive consumers."""

    def published(self, messages: Sequence[Message], copy: RoutedCopy) -> Sequence[Message]: ...

    def subscribed(self, subscription: Subscription, asks: bool) -> None: ...

    def forget(self, topic: Destination) -> None: ...


class BridgesPort(Protocol):
    """Recognises messages that bridges bring twice."""

    def is_repeated(self, message: Message, topic: Destination, sender: Client | None) -> bool: ...
