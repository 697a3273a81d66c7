"""Ports of the nodes that form one broker: which of them owns a log, and what the others must know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from brokerapp.engine.clients.branch_parts import BranchStep
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import Selector

#: Called with the reason why other nodes refused, or "".
OnAnswer = Callable[[str | RequestRefused], None]


class OutboundSettlementPort(Protocol):
    """Settles entries of logs that other nodes own, and returns the credit of their consumers."""

    def settle(self, entries: Sequence[LogEntry], client: Client) -> None: ...

    def on_settled(self, name: str, entries: Sequence[LogEntry], client: Client | None) -> None: ...

    def give_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None: ...

    def take_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None: ...

    def requeue(self, name: str, entries: Sequence[LogEntry], *, seen: bool = True) -> None: ...


class OutboundConsumersPort(Protocol):
    """Consumers of this node's clients at logs that other nodes own."""

    def attach(self, subscription: Subscription, log: MessageLog) -> None: ...

    def when_known(self, subscription: Subscription, then: Callable[[], None]) -> None: ...

    def detach(self, subscription: Subscription, log: MessageLog) -> None: ...

    def drop_consumer(self, subscription: Subscription, log: str) -> None: ...

    def drain(self, subscription: Subscription) -> None: ...

    def change_credit(self, subscription: Subscription, count: int) -> None: ...

    def forget(self, subscription: Subscription) -> None: ...

    def on_log_removed(self, log: str) -> None: ...


class RemoteUnackedPort(Protocol):
    """Knows what consumers of other nodes hold of logs that this node owns."""

    def sessions(self, log: str) -> Iterable[str]: ...


class SubscriptionTakeoverPort(Protocol):
    """Knows who may still consume from a subscription."""

    def maybe_consumed(self, log: str) -> bool: ...


class SubscriptionRemovalPort(Protocol):
    """Removes a durable subscription unless somebody consumes it at another node."""

    def remove(self, durable: DurableSubscription, then: OnAnswer) -> None: ...

    def question_before_claim(self, wanted: SubscriptionIdentity) -> Callable[[OnAnswer], None] | None: ...


class TopicListenersPort(Protocol):
    """Knows who listens to topics on all nodes, and sends messages there."""

    def add(self, topic: Destination) -> None: ...

    def remove(self, topic: Destination) -> None: ...

    def names(self, kind: DestinationKind) -> list[str]: ...

    def sessions_listening(self, topic: Destination) -> Iterable[str]: ...

    def publish(
        self, messages: Sequence[Message], copy: RoutedCopy, delivering_bridge: Callable[[Message], str | None]
    ) -> None: ...


class RemoteAdvisoriesPort(Protocol):
    """Knows what exists at other nodes, as its advisories describe it."""

    def known(self, family: str) -> list[tuple[str, dict[str, Any]]]: ...  # documents are JSON

    def is_known(self, topic: str, document: dict[str, Any]) -> bool: ...

    def publish_there(self, topic: str, message: Message) -> None: ...

    def on_listener_removed(self, topic: Destination) -> None: ...

    def listen(self, wanted: Iterable[Destination], then: Callable[[], None]) -> None: ...


class BridgeBidsPort(Protocol):
    """Tells other nodes which consumers of bridges compete for the same messages."""

    def announce(self, target: Destination, key: str, bid: Sequence[Any] | None) -> None: ...  # of several types


class AppendNoticesPort(Protocol):
    """Tells the owner of a log what this node appended to it."""

    def wants_entries(self, log: str) -> bool: ...

    def add(self, log: MessageLog, count: int, upto: int, entries: Sequence[LogEntry], before: int | None) -> None: ...


class PendingConfirmationsPort(Protocol):
    """Clients' requests that wait for other nodes."""

    def wait(
        self, client: Client, receipt: str | None, ask: Callable[[OnAnswer], None], then: Callable[[], None]
    ) -> None: ...

    def defer(self, client: Client, callback: Callable[[], None]) -> bool: ...


class ClientIdClaimsPort(Protocol):
    """Grants client ids when all nodes agree."""

    def is_needed(self, client: Client, client_id: str | None) -> bool: ...

    def hold(self, client: Client, *, steals: bool) -> AbstractAsyncContextManager[None]: ...


class BranchExchangePort(Protocol):
    """Asks other nodes about branches of distributed transactions."""

    def others(self) -> Collection[str]: ...

    def ask(
        self,
        step: BranchStep,
        name: str,
        then: Callable[[Mapping[str, str]], None],
        *,
        sessions: Collection[str] | None = None,
        connection: str = "",
    ) -> None: ...


class StatsAggregationPort(Protocol):
    """Adds up what the nodes counted of one destination."""

    def with_remote_parts(self, own: DestinationStats) -> DestinationStats: ...

    def report(self, changed: Iterable[DestinationStats]) -> list[DestinationStats]: ...

    def forget(self, destinations: Iterable[Destination]) -> None: ...


class SelectorInterestPort(Protocol):
    """Knows the selectors of all nodes' consumers of a queue."""

    def on_consumers_changed(self, log: MessageLog) -> None: ...

    def on_definitions_changed(self) -> None: ...

    def selectors_of(self, log: MessageLog) -> set[Selector | None]: ...


class OrphanedTemporariesPort(Protocol):
    """Temporary destinations that other nodes have."""

    def add(self, destination: Destination, session: str, owner: TemporaryOwner | None) -> None: ...

    def remove(self, destination: Destination) -> None: ...

    def on_client_connected(self, client: Client) -> None: ...


class Placement(Protocol):
    """Says which node owns a log, and joins the parts of this node with those of the others."""

    @property
    def is_alone(self) -> bool: ...

    def is_local(self, log: str) -> bool: ...

    def is_other_member(self, session: str) -> bool: ...

    def on_log_added(self, log: MessageLog) -> None: ...

    def on_log_removed(self, log: str) -> None: ...

    def announce_removed(self, log: str) -> None: ...

    async def declare(self, declarations: Sequence[tuple[str, str | None]]) -> None: ...

    def status(self) -> Mapping[str, Any]: ...  # JSON

    def when_propagated(self, then: Callable[[], None]) -> None: ...

    @property
    def request_dispatch(self) -> Callable[[], None]: ...

    @property
    def can_dispatch(self) -> Callable[[], bool]: ...

    @property
    def outbound_consumers(self) -> OutboundConsumersPort: ...

    @property
    def outbound_settlement(self) -> OutboundSettlementPort: ...

    @property
    def remote_unacked(self) -> RemoteUnackedPort: ...

    @property
    def append_notices(self) -> AppendNoticesPort: ...

    @property
    def pending_confirmations(self) -> PendingConfirmationsPort: ...

    @property
    def subscription_removal(self) -> SubscriptionRemovalPort: ...

    @property
    def subscription_takeover(self) -> SubscriptionTakeoverPort: ...

    @property
    def topic_listeners(self) -> TopicListenersPort: ...

    @property
    def remote_advisories(self) -> RemoteAdvisoriesPort: ...

    @property
    def bridge_bids(self) -> BridgeBidsPort: ...

    @property
    def client_id_claims(self) -> ClientIdClaimsPort: ...

    @property
    def branch_exchange(self) -> BranchExchangePort: ...

    @property
    def stats_aggregation(self) -> StatsAggregationPort: ...

    @property
    def selector_interest(self) -> SelectorInterestPort: ...

    @property
    def orphaned_temporaries(self) -> OrphanedTemporariesPort: ...


class PlacementBuilder(Protocol):
    """Builds a placement, which the parts of the broker use, from those parts.

    `placement` is given to the parts, and may be called once `initialise` was called.
    """

    @property
    def placement(self) -> Placement: ...

    def initialise(self, broker: Any) -> None: ...  # the Broker, whose parts use these ports
