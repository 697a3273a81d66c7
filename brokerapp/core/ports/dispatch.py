"""Ports of the parts that hand messages to consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from brokerapp.engine.clients.client import Client, Transaction
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import SnapshotCursor, Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.topic_batch import TopicBatch, TopicEntries
from brokerapp.model.commands import AckBatchCommand, SubscribeCommand
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy


class RemoteClient(Protocol):
    """Client of another node."""

    @property
    def client_id(self) -> str: ...

    @property
    def bridge(self) -> str: ...


class TopicSubscribers(Protocol):
    """Knows the subscribers of topics."""

    def add(self, subscription: Subscription, topic: Destination) -> None: ...

    def remove(self, subscription: Subscription, topic: Destination) -> None: ...

    def of(self, topic: Destination) -> list[Subscription]: ...

    def has_any(self, topic: Destination) -> bool: ...


class DispatchQueue(Protocol):
    """Schedules work for the next tick."""

    def touch(self, log: MessageLog) -> None: ...

    def untouch(self, log: MessageLog) -> None: ...

    def wake(self, client: Client) -> None: ...

    def resume(self, subscription: Subscription) -> None: ...

    is_stopped: bool


class DispatcherPort(DispatchQueue, Protocol):
    """Hands messages of logs to consumers."""

    def when_exhausted(self, subscription: Subscription, then: Callable[[], None]) -> None: ...

    def dispatch(self, log: MessageLog, subscription: Subscription, entries: list[LogEntry]) -> None: ...

    @staticmethod
    def ack_ids(subscription: Subscription, entries: Sequence[LogEntry]) -> list[str]: ...


class TopicDispatcherPort(Protocol):
    """Hands messages of topics to their subscribers."""

    def add_pending(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None: ...

    def retry(self, subscription: Subscription) -> None: ...

    def drop_pending(self, subscription: Subscription) -> None: ...

    def clear_pending(self) -> None: ...

    def run_once(self) -> None: ...

    def publish(self, published: Sequence[TopicBatch], sender: Client | None = None) -> None: ...

    def publish_here(self, published: Sequence[TopicBatch], sender: Client | None = None) -> None: ...

    def publish_locally(self, published: Sequence[TopicBatch], sender: Client | None = None) -> None: ...

    def offer_to_subscriber(
        self,
        subscription: Subscription,
        message: Message,
        copy: RoutedCopy,
        queue: Destination | None = None,
    ) -> None: ...


class AccountingPort(Protocol):
    """Accounts for what consumers are handed and acknowledge."""

    def on_acknowledged(
        self, log: MessageLog, entries: list[LogEntry], client: Client | RemoteClient, now_us: int
    ) -> None: ...

    def on_remote_acknowledged(
        self, log: MessageLog, entries: list[LogEntry], client: Client | RemoteClient, now_us: int
    ) -> None: ...

    def count_acknowledged(self, log: MessageLog, entries: Sequence[LogEntry]) -> None: ...

    def acknowledge_topic(self, subscription: Subscription, entries: Sequence[LogEntry], now_us: int) -> None: ...

    def count_dispatched(self, subscribers: Sequence[Subscription], part: TopicEntries, now_us: int) -> None: ...

    def record(self, kind: int, log: str, entries: Sequence[LogEntry], consumer: str, now_us: int) -> None: ...


class AcknowledgementsPort(Protocol):
    """Settles acknowledged messages, and accounts for them."""

    def acknowledge(self, client: Client, acks: AckBatchCommand) -> None: ...

    def find_unacked(
        self, client: Client, ack_id: str, named: str | None, transaction: Transaction | None = None
    ) -> tuple[Subscription, str] | None: ...

    def grant_credit(self, subscription: Subscription, entries: Sequence[LogEntry]) -> None: ...

    def count_settled(self, settled: Sequence[tuple[Subscription, str, LogEntry]]) -> None: ...


class RejectionsPort(Protocol):
    """Takes messages back that clients cannot use."""

    def expire_remote(self, client: Client, ack_id: str) -> None: ...


class BrowsersPort(Protocol):
    """Serves queue browsers."""

    @staticmethod
    def check(subscribe: SubscribeCommand, targets: Iterable[Destination]) -> None: ...

    def prefetch(self, queue: Destination) -> int: ...

    def join(self, subscription: Subscription) -> SnapshotCursor: ...
